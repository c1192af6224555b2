//! The threads in which something waits for a person.

use super::blocks::{Blocks, Log};
use super::error::statement;
use super::projection::Tables;
use super::restore;
use super::rows::thread_of;
use super::sums::{self, Wait, changed};
use super::value::{count, instant, int};
use rusqlite::{Connection, OptionalExtension, params};
use store::waits::{CallsChange, waits_for_people};
use store::{KeyPattern, StoreError, TenantId, WaitingRow, WaitingRows};
use timeline::{Event, Seq, ThreadId};

impl Tables<'_> {
    /// Notes an event that may open a request.
    pub(super) fn note_ask(&self, seq: Seq) -> Result<(), StoreError> {
        if !self.is_indexed {
            return Ok(());
        }
        let sql = "INSERT INTO thread_waits (thread_no, tenant, asks, asked)
                   SELECT no, tenant, ?3, ?2 FROM thread_threads WHERE no = ?1
                   ON CONFLICT (thread_no) DO UPDATE SET
                       asks = min(coalesce(asks, excluded.asks), excluded.asks),
                       asked = max(coalesce(asked, excluded.asked), excluded.asked)";
        let number = self.number(seq)?;
        self.run(sql, params![self.thread, int(seq.0), number])?;
        sums::seal_wait(self.conn, self.thread)
    }

    /// Notes the calls that are open after these events of an append, once the tables have them.
    pub(super) fn note_calls<'e>(
        &self,
        events: impl DoubleEndedIterator<Item = &'e Event>,
    ) -> Result<(), StoreError> {
        match events.rev().find_map(CallsChange::of) {
            None => Ok(()),
            Some(CallsChange::None) => self.no_calls(),
            Some(CallsChange::Perhaps) => self.find_calls(),
        }
    }

    fn no_calls(&self) -> Result<(), StoreError> {
        let sql = "DELETE FROM thread_waits WHERE thread_no = ?1 AND asks IS NULL";
        self.run(sql, [self.thread])?;
        let sql = "UPDATE thread_waits SET calls = NULL, calls_at = NULL WHERE thread_no = ?1 AND calls IS NOT NULL";
        self.run(sql, [self.thread])?;
        sums::seal_wait(self.conn, self.thread)
    }

    /// Finds out which calls of the thread are open.
    pub(super) fn find_calls(&self) -> Result<(), StoreError> {
        let Some((number, at)) = open_calls(self.conn, self.thread)? else {
            return self.no_calls();
        };
        let sql = "INSERT INTO thread_waits (thread_no, tenant, calls, calls_at)
                   SELECT no, tenant, ?2, ?3 FROM thread_threads WHERE no = ?1
                   ON CONFLICT (thread_no) DO UPDATE SET calls = excluded.calls, calls_at = excluded.calls_at";
        self.run(sql, params![self.thread, number, at])?;
        sums::seal_wait(self.conn, self.thread)
    }
}

/// The number and the instant of the event that left calls open for a person, if one did.
pub(super) fn open_calls(conn: &Connection, no: i64) -> Result<Option<(i64, i64)>, StoreError> {
    let open = restore::open_calls(conn, no)?;
    let Some(open) = open.filter(|open| waits_for_people(Some(open))) else {
        return Ok(None);
    };
    let sql = "SELECT end_seq FROM thread_executions WHERE thread_no = ?1 AND id = ?2
               ORDER BY seq DESC LIMIT 1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let end = select.query_row(params![no, open.execution.id.as_str()], |row| {
        row.get::<_, Option<i64>>(0)
    });
    // A fork inherits calls with its first event.
    let end = end.optional().map_err(statement)?.flatten().unwrap_or(1);
    Log { conn, no }.numbered(Seq(count(end)))
}

/// A page of the tenant's threads in which something waits.
pub(super) fn waiting(
    conn: &Connection,
    tenant: &TenantId,
    page: &WaitingRows,
) -> Result<Vec<WaitingRow>, StoreError> {
    let tx = conn.unchecked_transaction().map_err(statement)?;
    // One thread is found by its number, many in the order of the list.
    let (one, key) = match &page.key {
        Some(KeyPattern::Key(key)) => (
            "w.thread_no = (SELECT no FROM thread_threads WHERE tenant = ?1 AND key = ?3)",
            Some(key),
        ),
        Some(KeyPattern::Prefix(prefix)) => (
            "substr((SELECT key FROM thread_threads WHERE no = w.thread_no), 1, length(?3)) = ?3",
            Some(prefix),
        ),
        None => ("?3 IS NULL", None),
    };
    let sql = format!(
        "SELECT {}, w.number FROM thread_waits w
         WHERE w.tenant = ?1 AND w.number > ?2 AND {one} ORDER BY w.number",
        Wait::COLUMNS
    );
    let mut select = tx.prepare_cached(&sql).map_err(statement)?;
    let after = page.after.map_or(0, int);
    let mut rows = select
        .query(params![tenant.as_str(), after, key])
        .map_err(statement)?;
    let mut found = Vec::new();
    while found.len() < page.limit
        && let Some(row) = rows.next().map_err(statement)?
    {
        let wait = Wait::read(row).map_err(statement)?.checked()?;
        if wait.tenant != tenant.as_str() {
            return Err(changed("the index of what waits"));
        }
        let Some(thread) = thread_of(&tx, wait.no)? else {
            continue;
        };
        found.push(WaitingRow {
            row: thread,
            calls_since: wait.calls_at.map(instant).transpose()?,
            may_ask: wait.asks.is_some(),
            number: count(row.get(7).map_err(statement)?),
        });
    }
    Ok(found)
}

/// Whether something in a thread waits for a person, or may.
pub(super) fn may_wait(conn: &Connection, no: i64) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM thread_waits WHERE thread_no = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    select.exists([no]).map_err(statement)
}

/// Notes that no request of a thread was open after an event.
pub(super) fn settle(conn: &Connection, thread: &ThreadId, seq: Seq) -> Result<(), StoreError> {
    let sql = "SELECT no FROM thread_threads WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([thread.as_str()], |row| row.get(0));
    let Some(no) = found.optional().map_err(statement)? else {
        return Ok(());
    };
    let none = Blocks::default();
    let tables = Tables::of(conn, no, &none);
    let values = params![no, int(seq.0)];
    let sql = "DELETE FROM thread_waits WHERE thread_no = ?1 AND asked <= ?2 AND calls IS NULL";
    tables.run(sql, values)?;
    let sql =
        "UPDATE thread_waits SET asks = NULL, asked = NULL WHERE thread_no = ?1 AND asked <= ?2";
    tables.run(sql, values)?;
    sums::seal_wait(conn, no)
}
