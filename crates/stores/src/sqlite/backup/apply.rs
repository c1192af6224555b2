//! Bringing a copy of a store to the state of the next backup.

use super::take::{WHOLE, copy, ended};
use crate::sqlite::append;
use crate::sqlite::blocks::Blocks;
use crate::sqlite::error::statement;
use crate::sqlite::projection::Tables;
use crate::sqlite::{rebuild, sums};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;
use store::StoreError;

/// Applies an increment. Adds to `changed` the numbers of the threads whose tables have to be derived anew.
pub(super) fn apply(
    to: &Connection,
    increment: &Connection,
    changed: &mut BTreeSet<i64>,
) -> Result<(), StoreError> {
    for (no, id) in threads(to)? {
        let sql = "SELECT min(first) FROM thread_blocks WHERE thread_no = ?1";
        let first: Option<i64> = increment
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row([no], |row| row.get(0)))
            .map_err(statement)?;
        if ended(increment, no, &id)?.is_none() {
            changed.remove(&no);
            forget(to, no, 1)?;
        } else if let Some(first) = first {
            forget(to, no, first)?;
        }
    }
    let sql = "SELECT DISTINCT thread_no FROM thread_blocks";
    let mut select = increment.prepare(sql).map_err(statement)?;
    for no in select.query_map([], |row| row.get(0)).map_err(statement)? {
        changed.insert(no.map_err(statement)?);
    }
    forget_contents(to, increment)?;
    for table in WHOLE {
        to.execute(&format!("DELETE FROM {table}"), [])
            .map_err(statement)?;
        copy(increment, &format!("SELECT * FROM {table}"), [], to, table)?;
    }
    for table in ["thread_blocks", "tenant_contents"] {
        copy(increment, &format!("SELECT * FROM {table}"), [], to, table)?;
    }
    Ok(())
}

/// Derives the tables of the changed threads.
pub(super) fn derive(to: &Connection, changed: &BTreeSet<i64>) -> Result<(), StoreError> {
    for no in changed {
        rebuild::thread(to, *no)?;
    }
    for no in changed {
        Tables::of(to, *no, &Blocks::default()).find_calls()?;
        sums::seal_made(to, *no)?;
    }
    Ok(())
}

/// The numbers and ids of all threads.
pub(super) fn threads(conn: &Connection) -> Result<Vec<(i64, String)>, StoreError> {
    let sql = "SELECT no, id FROM thread_threads ORDER BY no";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let rows = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(statement)?;
    rows.collect::<Result<_, _>>().map_err(statement)
}

/// Deletes what is derived from a log, and its blocks from event `first` on.
pub(super) fn forget(to: &Connection, no: i64, first: i64) -> Result<(), StoreError> {
    append::delete_derived(to, no)?;
    let sql = "DELETE FROM thread_blocks WHERE thread_no = ?1 AND first >= ?2";
    let mut delete = to.prepare_cached(sql).map_err(statement)?;
    delete.execute([no, first]).map_err(statement)?;
    Ok(())
}

/// Deletes the contents that the store had no more.
fn forget_contents(to: &Connection, increment: &Connection) -> Result<(), StoreError> {
    let mut select = to
        .prepare("SELECT no, sha256 FROM tenant_contents")
        .map_err(statement)?;
    let rows = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(statement)?;
    let all: Vec<(i64, [u8; 32])> = rows.collect::<Result<_, _>>().map_err(statement)?;
    let mut kept = increment
        .prepare("SELECT 1 FROM kept_contents WHERE no = ?1 AND sha256 = ?2")
        .map_err(statement)?;
    for (no, sha256) in all {
        let is_kept: Option<i64> = kept
            .query_row(params![no, sha256], |row| row.get(0))
            .optional()
            .map_err(statement)?;
        if is_kept.is_none() {
            to.execute("DELETE FROM tenant_contents WHERE no = ?1", [no])
                .map_err(statement)?;
        }
    }
    Ok(())
}
