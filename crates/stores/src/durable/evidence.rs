//! The chains of logs, as they are proved and sealed.

use crate::sum::{Erased, Sum, Summed, digest, seed};
use crate::value::count;
use sha2::{Digest as _, Sha256};
use store::ThreadRow;

/// A block of a thread's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainBlock {
    /// Its first event.
    pub first: u64,
    /// The number of its events.
    pub n_events: u64,
    /// The SHA-256 of its body as it was written.
    pub digest: [u8; 32],
    /// The SHA-256 of the body that it has since its content was erased.
    pub erased: Option<[u8; 32]>,
    /// The stored sum of it and of all blocks before.
    pub sum: [u8; 16],
    /// Whether it continues the chain.
    pub holds: bool,
}

/// The chain of a thread's log.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The thread.
    pub row: ThreadRow,
    /// Its blocks, to the first that does not continue the chain.
    pub blocks: Vec<ChainBlock>,
    /// The last event and the last sum, as the thread's row has them.
    pub end: ChainEnd,
    /// Whether all blocks continue the chain, and the chain ends where the thread's row says.
    pub holds: bool,
}

/// Where the chain of a thread ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainEnd {
    /// The thread.
    pub thread: String,
    /// The last event.
    pub tail: u64,
    /// The sum of the last block.
    pub sum: [u8; 16],
}

/// How a thread relates to where it was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The log has what was sealed, and may have more.
    Continues,
    /// The log ends before, at this event.
    Older(u64),
    /// The log has another block there.
    Differs,
    /// There is no such thread. The store does not keep which threads were deleted.
    Missing,
}

/// A chain in the making: each block is checked against those before.
pub(crate) struct Chaining {
    row: ThreadRow,
    before: Sum,
    next: i64,
    holds: bool,
    blocks: Vec<ChainBlock>,
}

/// The numbers of a block, and its sum.
pub(crate) struct StoredNumbers {
    pub(crate) first: i64,
    pub(crate) n: i64,
    pub(crate) facts: i64,
    pub(crate) epoch: i64,
    pub(crate) sum: Sum,
}

impl Chaining {
    pub(crate) fn of(row: ThreadRow) -> Self {
        Self {
            before: seed(row.tenant.as_str(), row.thread.id.as_str()),
            next: 1,
            holds: true,
            blocks: Vec::new(),
            row,
        }
    }

    /// Adds a block. Returns whether it continues the chain; no block follows one that does not.
    pub(crate) fn add(
        &mut self,
        numbers: &StoredNumbers,
        body: &[u8],
        erased: Option<&Erased>,
    ) -> bool {
        let digest = digest(body, erased);
        let stored: [u8; 32] = Sha256::digest(body).into();
        let &StoredNumbers {
            first,
            n,
            facts,
            epoch,
            sum,
        } = numbers;
        let summed = Summed {
            first,
            n,
            facts,
            epoch,
            digest: digest.unwrap_or(stored),
        };
        self.holds = digest.is_some() && first == self.next && summed.after(self.before) == sum;
        self.before = sum;
        self.next = first.saturating_add(n);
        self.blocks.push(ChainBlock {
            first: count(first),
            n_events: count(n),
            digest: summed.digest,
            erased: erased.map(|_| stored),
            sum,
            holds: self.holds,
        });
        self.holds
    }

    /// Compares the chain with the last event and the last sum of the thread's row.
    pub(crate) fn end(self, tail: i64, sum: Option<Sum>) -> Chain {
        let is_end = sum == Some(self.before) && tail == self.next.saturating_sub(1);
        Chain {
            holds: self.holds && is_end,
            blocks: self.blocks,
            end: ChainEnd {
                thread: self.row.thread.id.to_string(),
                tail: count(tail),
                sum: sum.unwrap_or_default(),
            },
            row: self.row,
        }
    }
}
