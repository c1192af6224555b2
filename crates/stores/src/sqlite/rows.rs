//! Queries of the reading threads.

use super::blocks::{Log, logged};
use super::error::statement;
use super::sums::{LogEnd, Made, changed};
use super::value::{count, instant, int, nanos};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::ops::ControlFlow;
use store::{
    Filter, KeyPattern, Logged, PageSize, StoreError, TenantId, ThreadFilter, ThreadRow, ThreadRows,
};
use timeline::{Fork, Machine, Payload, Seq, Thread, ThreadId};

// The columns of what a thread is, and those of where its log ends.
fn select_row() -> String {
    format!(
        "SELECT {}, {} FROM thread_threads t LEFT JOIN thread_threads p ON p.no = t.fork_no",
        Made::COLUMNS,
        LogEnd::COLUMNS
    )
}

/// The agent of the last run of a thread `t`.
pub(super) const AGENT: &str = "(SELECT x.agent FROM thread_executions x
    WHERE x.thread_no = t.no ORDER BY x.seq DESC LIMIT 1)";

/// The id of the tenant's thread with this key.
pub(super) fn id_of(
    conn: &Connection,
    tenant: &TenantId,
    key: &str,
) -> Result<Option<ThreadId>, StoreError> {
    match find(conn, tenant, key) {
        Ok(row) => Ok(Some(row.thread.id)),
        Err(StoreError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The row of the tenant's thread with this key.
pub(super) fn find(
    conn: &Connection,
    tenant: &TenantId,
    key: &str,
) -> Result<ThreadRow, StoreError> {
    let sql = format!("{} WHERE t.tenant = ?1 AND t.key = ?2", select_row());
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([tenant.as_str(), key], |row| Ok(thread_row(row)));
    let found = found.optional().map_err(statement)?;
    let row = found.ok_or(StoreError::NotFound)??;
    if row.tenant == *tenant && row.thread.key.as_deref() == Some(key) {
        Ok(row)
    } else {
        Err(changed("the index of keys"))
    }
}

/// The row of the thread with this id.
pub(super) fn row(conn: &Connection, thread: &ThreadId) -> Result<ThreadRow, StoreError> {
    Ok(numbered_row(conn, thread)?.1)
}

/// The number and the row of the thread with this id.
pub(super) fn numbered_row(
    conn: &Connection,
    thread: &ThreadId,
) -> Result<(i64, ThreadRow), StoreError> {
    let sql = format!("{} WHERE t.id = ?1", select_row());
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    // The number is the first column.
    let found = select.query_row([thread.as_str()], |row| Ok((row.get(0)?, thread_row(row))));
    let found = found.optional().map_err(statement)?;
    let (no, row) = found.ok_or(StoreError::NotFound)?;
    let row = row?;
    if row.thread.id == *thread {
        Ok((no, row))
    } else {
        Err(changed("the index of threads"))
    }
}

/// The row of the thread with this number, if there is one.
pub(super) fn thread_of(conn: &Connection, no: i64) -> Result<Option<ThreadRow>, StoreError> {
    let sql = format!("{} WHERE t.no = ?1", select_row());
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([no], |row| Ok(thread_row(row)));
    found.optional().map_err(statement)?.transpose()
}

/// The tenant's threads, the last changed first.
pub(super) fn list(
    conn: &Connection,
    tenant: &TenantId,
    page: &ThreadRows,
) -> Result<Vec<ThreadRow>, StoreError> {
    let (keyed, key) = match &page.key {
        None => ("?3 IS NULL", None),
        Some(KeyPattern::Key(key)) => ("t.key = ?3", Some(key)),
        Some(KeyPattern::Prefix(prefix)) => ("substr(t.key, 1, length(?3)) = ?3", Some(prefix)),
    };
    let ThreadFilter {
        status,
        agent,
        since,
        may_wait,
    } = &page.filter;
    let by_agent = match agent {
        None => "?7 IS NULL".to_owned(),
        Some(_) => format!("{AGENT} = ?7"),
    };
    // Those in which something waits are few: they are found by their numbers.
    let (tenant_is, change) = if *may_wait {
        let waits = "+t.tenant = ?1 AND t.no IN (SELECT w.thread_no FROM thread_waits w WHERE w.tenant = ?1)";
        (waits, "+t.change")
    } else {
        ("t.tenant = ?1", "t.change")
    };
    let sql = format!(
        "{} WHERE {tenant_is} AND {change} < ?2 AND {keyed}
                 AND (?5 IS NULL OR t.status = ?5) AND (?6 IS NULL OR t.updated_at >= ?6) AND {by_agent}
           ORDER BY {change} DESC LIMIT ?4",
        select_row()
    );
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let values = params![
        tenant.as_str(),
        page.after.map_or(i64::MAX, int),
        key,
        int(page.limit as u64),
        status.map(Machine::name),
        since.map(nanos),
        agent,
    ];
    let rows = select
        .query_map(values, |row| Ok(thread_row(row)))
        .map_err(statement)?;
    let is_theirs = |row: &ThreadRow| row.tenant == *tenant;
    let row = |row: rusqlite::Result<Result<ThreadRow, StoreError>>| {
        let row = row.map_err(statement)??;
        if is_theirs(&row) {
            Ok(row)
        } else {
            Err(changed("the list of threads"))
        }
    };
    rows.map(row).collect()
}

/// The tenant's threads that changed first, after a place in the order of changes.
pub(super) fn oldest(
    conn: &Connection,
    tenant: &TenantId,
    after: u64,
    limit: usize,
) -> Result<Vec<ThreadRow>, StoreError> {
    let sql = format!(
        "{} WHERE t.tenant = ?1 AND t.change > ?2 ORDER BY t.change LIMIT ?3",
        select_row()
    );
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let values = params![tenant.as_str(), int(after), int(limit as u64)];
    let rows = select
        .query_map(values, |row| Ok(thread_row(row)))
        .map_err(statement)?;
    rows.map(|row| row.map_err(statement)?).collect()
}

/// The threads that are forked from this one, in the order they were made.
pub(super) fn forks(conn: &Connection, thread: &ThreadId) -> Result<Vec<ThreadRow>, StoreError> {
    let no = number(conn, thread)?;
    let sql = format!("{} WHERE t.fork_no = ?1 ORDER BY t.no", select_row());
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let rows = select
        .query_map([no], |row| Ok(thread_row(row)))
        .map_err(statement)?;
    rows.map(|row| row.map_err(statement)?).collect()
}

pub(super) fn number(conn: &Connection, thread: &ThreadId) -> Result<i64, StoreError> {
    Ok(end_of(conn, thread)?.no)
}

/// Where the log of a thread ends.
pub(super) fn end_of(conn: &Connection, thread: &ThreadId) -> Result<LogEnd, StoreError> {
    LogEnd::of(conn, thread.as_str())?.ok_or(StoreError::NotFound)
}

/// A page of the records of a thread after a place, in order.
pub(super) fn read(
    conn: &Connection,
    thread: &ThreadId,
    after: Seq,
    limit: usize,
    filter: Filter,
) -> Result<Vec<Logged>, StoreError> {
    // One snapshot, in which the log ends where the row says.
    let conn = &conn.unchecked_transaction().map_err(statement)?;
    let end = end_of(conn, thread)?;
    let no = end.no;
    let (mut page, mut size) = (Vec::new(), PageSize::default());
    if limit == 0 {
        return Ok(page);
    }
    let mut is_whole = true;
    let last = Log { conn, no }.read(after.next(), filter, |seq, decoded| {
        let logged = logged(seq, decoded)?;
        if !size.add(logged.text.len()) {
            is_whole = false;
            return Ok(ControlFlow::Break(()));
        }
        page.push(logged);
        Ok(if page.len() < limit {
            ControlFlow::Continue(())
        } else {
            is_whole = false;
            ControlFlow::Break(())
        })
    })?;
    if is_whole && last != end.sum {
        return Err(changed(&format!("the end of the log of thread {thread}")));
    }
    Ok(page)
}

/// The threads with an execution to resume or a trigger to answer.
pub(super) fn unfinished(conn: &Connection) -> Result<Vec<ThreadId>, StoreError> {
    let sql = "SELECT id FROM thread_threads
               WHERE no IN (SELECT thread_no FROM thread_executions WHERE status = 0)
                  OR status <> 'closed' AND no IN (SELECT thread_no FROM thread_items WHERE waiting = 1)
               ORDER BY no";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let ids = select
        .query_map([], |row| row.get::<_, String>(0))
        .map_err(statement)?;
    ids.map(|id| id.map(ThreadId::from).map_err(statement))
        .collect()
}

fn thread_row(row: &Row<'_>) -> Result<ThreadRow, StoreError> {
    let made = Made::read(row).map_err(statement)?.checked()?;
    let end = LogEnd::read(row, Made::N_COLUMNS).map_err(statement)?;
    let end = LogEnd::checked(end, &made.id)?;
    let metadata = made.metadata.map(Payload::from_text).transpose();
    let fork = made.parent.zip(made.fork_seq).map(|(parent, seq)| Fork {
        thread_id: parent.into(),
        seq: Seq(count(seq)),
    });
    Ok(ThreadRow {
        tenant: made.tenant.as_str().into(),
        thread: Thread {
            id: made.id.into(),
            key: made.key,
            status: end.status,
            created_at: instant(made.created_at)?,
            updated_at: Some(instant(end.updated_at)?),
            title: made.title,
            metadata: metadata.map_err(|error| StoreError::Damaged(error.to_string()))?,
            fork,
        },
        tail: Seq(count(end.tail)),
        bytes: count(end.bytes),
        change: count(end.change),
    })
}
