//! Checks logs against their sums, and the tables against the logs.

use super::super::blocks::{Log, Sum};
use super::super::error::statement;
use super::super::projection::Tables;
use super::super::rebuild::{fold, measured};
use super::super::sums::{self, LogEnd, Wait};
use super::super::value::{count, int};
use super::super::{waits, words};
use crate::durable::{Remedy, StoreFault};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};
use store::StoreError;

/// The columns of a thread's row that its log decides.
const THREAD: &str = "no, id, key, status, title, metadata, fork_no, fork_seq, created_at";

/// The derived tables, with the columns that identify a row.
const TABLES: [(&str, &str); 6] = [
    ("thread_contexts", "thread_no"),
    ("thread_items", "seq"),
    ("thread_executions", "seq"),
    ("thread_steps", "execution_seq, iteration"),
    ("thread_parts", "execution_seq, iteration, idx"),
    ("thread_removals", "target"),
];

/// Adds what is wrong with the logs and the tables.
pub(super) fn check(
    conn: &Connection,
    scratch: &Connection,
    found: &mut Vec<StoreFault>,
) -> Result<(), StoreError> {
    for no in words::numbers(conn)? {
        let log = Log { conn, no };
        let name = name(conn, no)?;
        match row_faults(log, &name) {
            Ok(()) => {}
            Err(StoreError::Damaged(what)) => {
                found.push(StoreFault::of_thread(&name, what, Remedy::Rebuild));
            }
            Err(other) => return Err(other),
        }
        match sums::check_tokens(conn, no) {
            Ok(()) => {}
            Err(StoreError::Damaged(what)) => {
                found.push(StoreFault::of_thread(&name, what, Remedy::Restore));
            }
            Err(other) => return Err(other),
        }
        match log_faults(log, found, &name) {
            Ok(()) => {}
            Err(StoreError::Damaged(what)) => {
                found.push(StoreFault::of_thread(&name, what, Remedy::Restore));
                continue;
            }
            Err(other) => return Err(other),
        }
        match table_faults(log, scratch, found, &name) {
            Err(StoreError::Damaged(what)) => {
                found.push(StoreFault::of_thread(&name, what, Remedy::Rebuild));
            }
            other => other?,
        }
    }
    Ok(())
}

/// Refuses rows of a thread whose sums are not theirs.
fn row_faults(log: Log<'_>, name: &str) -> Result<(), StoreError> {
    sums::check_made(log.conn, log.no)?;
    LogEnd::of(log.conn, name)?;
    let sql = format!(
        "SELECT {} FROM thread_waits w WHERE w.thread_no = ?1",
        Wait::COLUMNS
    );
    let mut select = log.conn.prepare_cached(&sql).map_err(statement)?;
    let wait = select.query_row([log.no], Wait::read).optional();
    if let Some(wait) = wait.map_err(statement)? {
        wait.checked()?;
    }
    Ok(())
}

fn name(conn: &Connection, no: i64) -> Result<String, StoreError> {
    let sql = "SELECT id FROM thread_threads WHERE no = ?1";
    let name = conn.query_row(sql, [no], |row| row.get(0)).optional();
    Ok(name.map_err(statement)?.unwrap_or_default())
}

/// Compares the end of a log with the thread's row.
fn log_faults(log: Log<'_>, found: &mut Vec<StoreFault>, name: &str) -> Result<(), StoreError> {
    let end = measured(log)?;
    let sql = "SELECT t.head_seq, t.bytes, t.updated_at, t.sum, (
                   SELECT b.sum FROM thread_blocks b WHERE b.thread_no = t.no ORDER BY first DESC LIMIT 1)
               FROM thread_threads t WHERE t.no = ?1";
    let row = log.conn.query_row(sql, [log.no], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, i64>(1)?,
            row.get::<_, i64>(2)?,
            row.get::<_, Option<Sum>>(3)?,
            row.get::<_, Option<Sum>>(4)?,
        ))
    });
    let (tail, bytes, at, sum, last) = row.map_err(statement)?;
    if tail != int(end.tail.0) {
        let what = format!(
            "its log has {} events, its row says {}",
            end.tail,
            count(tail)
        );
        found.push(StoreFault::of_thread(name, what, Remedy::Restore));
    } else if sum != last {
        let what = "the sum of its last block is not that of its row";
        found.push(StoreFault::of_thread(name, what, Remedy::Restore));
    }
    if bytes != end.bytes || end.at.is_some_and(|last| last != at) {
        let what = "its row has another size or another last instant than its log";
        found.push(StoreFault::of_thread(name, what, Remedy::Rebuild));
    }
    Ok(())
}

/// Compares the rows of a thread with those that its log makes.
fn table_faults(
    log: Log<'_>,
    scratch: &Connection,
    found: &mut Vec<StoreFault>,
    name: &str,
) -> Result<(), StoreError> {
    let no = log.no;
    let sql = "SELECT p.no, p.id FROM thread_threads t JOIN thread_threads p ON p.no = t.fork_no WHERE t.no = ?1";
    let parent = log
        .conn
        .query_row(sql, [no], |row| Ok((row.get(0)?, row.get(1)?)));
    let parent: Option<(i64, String)> = parent.optional().map_err(statement)?;
    let parent = parent.as_ref().map(|(no, id)| (*no, id.as_str()));
    clear(scratch)?;
    for (no, id) in std::iter::once((no, name)).chain(parent) {
        let sql = "INSERT INTO thread_threads (no, id, tenant, status, created_at, updated_at, head_seq, bytes)
                   VALUES (?1, ?2, '', 'open', 0, 0, 0, 0)";
        scratch.execute(sql, params![no, id]).map_err(statement)?;
    }
    fold(log, scratch, false)?;
    let sql = format!("SELECT {THREAD} FROM thread_threads WHERE no = ?1");
    let differs = first_difference(log.conn, scratch, &sql, no)?;
    if differs.is_some() {
        let what = "its row is not what its log says";
        found.push(StoreFault::of_thread(name, what, Remedy::Rebuild));
    }
    for (table, order) in TABLES {
        let sql = format!("SELECT * FROM {table} WHERE thread_no = ?1 ORDER BY {order}");
        if let Some(n) = first_difference(log.conn, scratch, &sql, no)? {
            let what = format!("row {n} of {table} is not what its log says");
            found.push(StoreFault::of_thread(name, what, Remedy::Rebuild));
        }
    }
    let sql = "SELECT calls, calls_at FROM thread_waits WHERE thread_no = ?1 AND calls IS NOT NULL";
    let calls = log
        .conn
        .query_row(sql, [no], |row| Ok((row.get(0)?, row.get(1)?)));
    if calls.optional().map_err(statement)? != waits::open_calls(log.conn, no)? {
        let what = "the list of what waits is not what its log says";
        found.push(StoreFault::of_thread(name, what, Remedy::Rebuild));
    }
    Ok(())
}

/// Removes what another thread has left.
fn clear(scratch: &Connection) -> Result<(), StoreError> {
    for table in Tables::DERIVED.into_iter().chain(["thread_threads"]) {
        let sql = format!("DELETE FROM {table}");
        scratch.execute(&sql, []).map_err(statement)?;
    }
    Ok(())
}

/// The number of the first row, from 1, that differs in two databases.
fn first_difference(
    one: &Connection,
    other: &Connection,
    sql: &str,
    no: i64,
) -> Result<Option<usize>, StoreError> {
    let mut one = one.prepare_cached(sql).map_err(statement)?;
    let mut other = other.prepare_cached(sql).map_err(statement)?;
    let n_columns = one.column_count();
    let mut rows = one.query([no]).map_err(statement)?;
    let mut expected = other.query([no]).map_err(statement)?;
    let values = |row: Option<&rusqlite::Row<'_>>| -> Result<Option<Vec<Value>>, StoreError> {
        let read = |row: &rusqlite::Row<'_>| {
            let columns = 0..n_columns;
            columns
                .map(|column| row.get(column))
                .collect::<Result<_, _>>()
        };
        row.map(read).transpose().map_err(statement)
    };
    for n in 1.. {
        let row = values(rows.next().map_err(statement)?)?;
        if row != values(expected.next().map_err(statement)?)? {
            return Ok(Some(n));
        }
        if row.is_none() {
            return Ok(None);
        }
    }
    Ok(None)
}
