//! Rebuilds the tables, the full-text index and the list of what waits from the log.

use super::blocks::{Blocks, Log};
use super::error::statement;
use super::projection::Tables;
use super::sums;
use super::value::{int, nanos};
use super::words;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use store::rows::row_changes;
use store::{Filter, StoreError};
use timeline::{Event, Record, Seq};

/// Drops what the tables and the index hold and folds every log into them. Tenants, epochs, the order of lists,
/// tokens, checkpoints and objects stay: they are not in the log.
pub(super) fn rebuild(conn: &Connection) -> Result<(), StoreError> {
    words::clear(conn)?;
    for table in Tables::DERIVED {
        conn.execute(&format!("DELETE FROM {table}"), [])
            .map_err(statement)?;
    }
    let numbers = words::numbers(conn)?;
    for no in &numbers {
        thread(conn, *no)?;
    }
    for no in numbers {
        Tables::of(conn, no, &Blocks::default()).find_calls()?;
        sums::seal_made(conn, no)?;
    }
    Ok(())
}

/// Makes the full-text index anew.
pub(super) fn index(conn: &Connection) -> Result<(), StoreError> {
    words::clear(conn)?;
    for no in words::numbers(conn)? {
        Tables::of(conn, no, &Blocks::default()).add_missing()?;
    }
    Ok(())
}

/// Folds the log of one thread into the tables and the index, which have nothing of it. The calls that are open
/// are not found.
pub(super) fn thread(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let log = Log { conn, no };
    end(log)?;
    fold(log, conn, true)?;
    sums::seal_end(conn, no)
}

/// Corrects where a thread's row says that the log ends, and its size.
fn end(log: Log<'_>) -> Result<(), StoreError> {
    let End { bytes, at, .. } = measured(log)?;
    let sql = "UPDATE thread_threads SET bytes = ?2, updated_at = coalesce(?3, created_at), (head_seq, sum) =
                   (SELECT first + n - 1, b.sum FROM thread_blocks b WHERE b.thread_no = no
                    ORDER BY first DESC LIMIT 1)
               WHERE no = ?1";
    let mut update = log.conn.prepare_cached(sql).map_err(statement)?;
    update
        .execute(params![log.no, bytes, at])
        .map_err(statement)?;
    Ok(())
}

/// Where a log ends, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// The last event.
    pub(super) tail: Seq,
    /// The size of the events' texts, in bytes.
    pub(super) bytes: i64,
    /// When the last event was written.
    pub(super) at: Option<i64>,
}

/// Reads a log to its end. Decodes every event and checks every sum.
pub(super) fn measured(log: Log<'_>) -> Result<End, StoreError> {
    let mut end = End::default();
    log.read(Seq(1), Filter::All, |seq, decoded| {
        let text = decoded.text();
        let text = text.map_err(|fault| StoreError::Damaged(fault.to_string()))?;
        end = End {
            tail: seq,
            bytes: end.bytes.saturating_add(int(text.len() as u64)),
            at: Some(nanos(decoded.at)),
        };
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(end)
}

/// Folds a log into tables of a database, and into its indexes if `is_indexed`.
pub(super) fn fold(log: Log<'_>, to: &Connection, is_indexed: bool) -> Result<(), StoreError> {
    let is_first = |event: &Event| {
        matches!(
            event,
            Event::ContextCreated { .. } | Event::ItemCreated { .. }
        )
    };
    // Executions name items that the log creates after them, and items name executions.
    let mut executions = BTreeMap::new();
    log.read_ranged(|records, _| {
        for Record { seq, event, .. } in records {
            if let Event::ExecutionCreated { execution } = event {
                executions.insert(execution.id.clone(), *seq);
            }
        }
        Ok(())
    })?;
    for wants_first in [true, false] {
        log.read_ranged(|records, blocks| {
            let mut tables = Tables::of(to, log.no, blocks);
            tables.is_indexed = is_indexed;
            tables.is_sealed = false;
            let meant = records
                .iter()
                .filter(|record| is_first(&record.event) == wants_first);
            for record in meant {
                if let Event::ItemCreated { item } = &record.event
                    && let Some(id) = &item.execution_id
                    && let Some(seq) = executions.get(id)
                {
                    tables.note_execution(id.as_str(), *seq);
                }
                let changes = row_changes(std::iter::once((record.seq, record.at, &record.event)));
                tables.execute_all(&changes)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}
