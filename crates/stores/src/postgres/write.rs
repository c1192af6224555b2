//! A request to a lane.

use crate::block::{Block, ToStore, split};
use crate::sum::{Sum, Summed};
use crate::value::int;
use sha2::{Digest as _, Sha256};
use store::{Append, Appended, Created, Epoch, NewRecord, NodeId, StoreError, TenantId, Token};
use timeline::{Seq, Thread, ThreadId};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A request that waits for its commit. Nobody may be waiting for the answer any more.
pub(super) struct Write {
    pub(super) body: Body,
    /// The events as they are stored. They are encoded by the caller, not by the lane.
    pub(super) blocks: Vec<Block>,
    answer: oneshot::Sender<Result<Answer, StoreError>>,
    /// When it is refused, if the database can't be reached until then.
    pub(super) until: Instant,
    /// The sum of the first block, if a commit with it was sent and not answered.
    pub(super) doubt: Option<Sum>,
}

pub(super) enum Body {
    Append(Append),
    Create(Box<NewLog>),
}

/// The first records of a thread.
pub(super) struct NewLog {
    pub(super) tenant: TenantId,
    pub(super) thread: Thread,
    pub(super) first: Vec<NewRecord>,
    pub(super) token: Option<Token>,
    pub(super) owner: Option<NodeId>,
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    Appended(Appended),
    Created(Created),
}

/// The decision of a lane about a request.
pub(super) enum Decision {
    /// The answer, if the commit succeeds.
    Accepted(Answer),
    /// The answer, whatever becomes of the commit.
    Known(Answer),
    Refused(StoreError),
    /// An earlier request of the batch changes the same thread, so this one is for the next batch.
    Later,
}

impl Write {
    /// A request, and where its answer will be.
    pub(super) fn new(
        body: Body,
        until: Instant,
    ) -> (Self, oneshot::Receiver<Result<Answer, StoreError>>) {
        let (answer, answered) = oneshot::channel();
        let write = Self {
            blocks: encoded(body.records()),
            body,
            answer,
            until,
            doubt: None,
        };
        (write, answered)
    }

    /// The size of what it writes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.body.len()).sum()
    }

    pub(super) fn answer(self, answer: Result<Answer, StoreError>) {
        let _ = self.answer.send(answer);
    }

    /// The thread that it changes.
    pub(super) fn thread(&self) -> &ThreadId {
        match &self.body {
            Body::Append(append) => &append.thread,
            Body::Create(new) => &new.thread.id,
        }
    }

    /// The position before its events.
    pub(super) fn tail(&self) -> Seq {
        match &self.body {
            Body::Append(append) => append.tail,
            Body::Create(_) => Seq::ZERO,
        }
    }

    pub(super) fn end(&self) -> Seq {
        Seq(self
            .tail()
            .0
            .saturating_add(self.body.records().len() as u64))
    }

    /// The numbers and sums of its blocks behind a block with this sum.
    pub(super) fn chained(&self, before: Sum, epoch: Epoch) -> Vec<(Summed, Sum)> {
        let (mut first, mut sum) = (self.tail().next().0, before);
        let chained = self.blocks.iter().map(|block| {
            let summed = Summed {
                first: int(first),
                n: int(block.n as u64),
                facts: int(block.facts as u64),
                epoch: int(epoch.0),
                digest: Sha256::digest(&block.body).into(),
            };
            sum = summed.after(sum);
            first += block.n as u64;
            (summed, sum)
        });
        chained.collect()
    }
}

impl Body {
    pub(super) fn records(&self) -> &[NewRecord] {
        match self {
            Self::Append(append) => &append.records,
            Self::Create(new) => &new.first,
        }
    }
}

impl NewLog {
    pub(super) fn of(
        tenant: &TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> Result<Self, StoreError> {
        let thread = NewRecord::thread_of(&first)
            .cloned()
            .ok_or_else(|| StoreError::Damaged("a thread begins with thread.created".into()))?;
        Ok(Self {
            tenant: tenant.clone(),
            thread,
            first,
            token,
            owner,
        })
    }
}

fn encoded(records: &[NewRecord]) -> Vec<Block> {
    split(records.iter().map(|record| ToStore {
        at: record.at,
        event: record.event(),
        size: record.text().len(),
        raw: None,
    }))
}

/// The bytes of the records' texts.
pub(super) fn size(records: &[NewRecord]) -> u64 {
    records
        .iter()
        .map(|record| record.text().len() as u64)
        .sum()
}
