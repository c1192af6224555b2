//! The chain of a log as evidence: what `prove` prints, and what a seal keeps outside the store.

use super::blocks::{self, Erased, Sum, Summed};
use super::error::statement;
use super::rows::row;
use super::sums::LogEnd;
use super::value::{count, int};
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest as _, Sha256};
use store::{StoreError, ThreadRow};
use timeline::ThreadId;

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

/// The chain of a thread.
pub(super) fn chain(conn: &Connection, thread: &ThreadId) -> Result<Chain, StoreError> {
    let conn = &conn.unchecked_transaction().map_err(statement)?;
    let row = row(conn, thread)?;
    let end = LogEnd::of(conn, thread.as_str())?.ok_or(StoreError::NotFound)?;
    let sql = "SELECT first, n, facts, epoch, sum, body, erased FROM thread_blocks WHERE thread_no = ?1 ORDER BY first";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let mut rows = select.query([end.no]).map_err(statement)?;
    let mut found = Vec::new();
    let (mut before, mut next) = (blocks::seed(row.tenant.as_str(), thread.as_str()), 1);
    let mut holds = true;
    while holds && let Some(row) = rows.next().map_err(statement)? {
        let body = blocks::body(row, 5)?;
        let erased: Option<Erased> = row.get(6).map_err(statement)?;
        let digest = blocks::digest(body, erased.as_ref());
        let stored: [u8; 32] = Sha256::digest(body).into();
        let summed = Summed {
            first: row.get(0).map_err(statement)?,
            n: row.get(1).map_err(statement)?,
            facts: row.get(2).map_err(statement)?,
            epoch: row.get(3).map_err(statement)?,
            digest: digest.unwrap_or(stored),
        };
        let sum: Sum = row.get(4).map_err(statement)?;
        holds = digest.is_some() && summed.first == next && summed.after(before) == sum;
        before = sum;
        next = summed.first.saturating_add(summed.n);
        found.push(ChainBlock {
            first: count(summed.first),
            n_events: count(summed.n),
            digest: summed.digest,
            erased: erased.map(|_| stored),
            sum,
            holds,
        });
    }
    Ok(Chain {
        holds: holds && end.sum == Some(before) && end.tail == next.saturating_sub(1),
        blocks: found,
        end: ChainEnd {
            thread: thread.to_string(),
            tail: count(end.tail),
            sum: end.sum.unwrap_or_default(),
        },
        row,
    })
}

/// Where the chains of all threads end, at one moment.
pub(super) fn ends(conn: &Connection) -> Result<Vec<ChainEnd>, StoreError> {
    let sql = format!(
        "SELECT t.id, {} FROM thread_threads t ORDER BY t.no",
        LogEnd::COLUMNS
    );
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(statement)? {
        let thread: String = row.get(0).map_err(statement)?;
        let end = LogEnd::checked(LogEnd::read(row, 1).map_err(statement)?, &thread)?;
        found.push(ChainEnd {
            tail: count(end.tail),
            sum: end.sum.unwrap_or_default(),
            thread,
        });
    }
    Ok(found)
}

/// Compares a thread with where it was sealed. The check of the log shows whether the sums are right.
pub(super) fn compare(conn: &Connection, sealed: &ChainEnd) -> Result<Compared, StoreError> {
    let sql = "SELECT no, head_seq FROM thread_threads WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([&sealed.thread], |row| Ok((row.get(0)?, row.get(1)?)));
    let Some((no, tail)): Option<(i64, i64)> = found.optional().map_err(statement)? else {
        return Ok(Compared::Missing);
    };
    if count(tail) < sealed.tail {
        return Ok(Compared::Older(count(tail)));
    }
    let sql = "SELECT sum FROM thread_blocks WHERE thread_no = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let sum = select.query_row(params![no, int(sealed.tail)], |row| row.get::<_, Sum>(0));
    Ok(match sum.optional().map_err(statement)? {
        Some(sum) if sum == sealed.sum => Compared::Continues,
        _ => Compared::Differs,
    })
}
