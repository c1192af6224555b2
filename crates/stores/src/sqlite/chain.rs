//! The chain of a log as evidence: what `prove` prints, and what a seal keeps outside the store.

use super::blocks::{self, Erased, Sum};
use super::error::statement;
use super::rows::row;
use super::sums::LogEnd;
use super::value::{count, int};
use crate::durable::{Chain, ChainEnd, Chaining, Compared, StoredNumbers};
use rusqlite::{Connection, OptionalExtension, params};
use store::StoreError;
use timeline::ThreadId;

/// The chain of a thread.
pub(super) fn chain(conn: &Connection, thread: &ThreadId) -> Result<Chain, StoreError> {
    let conn = &conn.unchecked_transaction().map_err(statement)?;
    let row = row(conn, thread)?;
    let end = LogEnd::of(conn, thread.as_str())?.ok_or(StoreError::NotFound)?;
    let sql = "SELECT first, n, facts, epoch, sum, body, erased FROM thread_blocks WHERE thread_no = ?1 ORDER BY first";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let mut rows = select.query([end.no]).map_err(statement)?;
    let mut chain = Chaining::of(row);
    while let Some(row) = rows.next().map_err(statement)? {
        let numbers = StoredNumbers {
            first: row.get(0).map_err(statement)?,
            n: row.get(1).map_err(statement)?,
            facts: row.get(2).map_err(statement)?,
            epoch: row.get(3).map_err(statement)?,
            sum: row.get(4).map_err(statement)?,
        };
        let erased: Option<Erased> = row.get(6).map_err(statement)?;
        if !chain.add(&numbers, blocks::body(row, 5)?, erased.as_ref()) {
            break;
        }
    }
    Ok(chain.end(end.tail, end.sum))
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
