//! Queries of the reading threads.

use super::blocks::{Log, Wanted, logged};
use super::error::statement;
use super::value::{count, instant, int, nanos};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::ops::ControlFlow;
use store::{
    Filter, KeyPattern, Logged, PageSize, StoreError, TenantId, ThreadFilter, ThreadRow, ThreadRows,
};
use timeline::{Fork, Machine, Payload, Seq, Thread, ThreadId, ThreadStatus};

const ROW: &str = "SELECT t.tenant, t.id, t.key, t.status, t.created_at, t.updated_at, t.title,
                          t.metadata, p.id, t.fork_seq, t.head_seq, t.bytes, t.change
                   FROM thread_threads t LEFT JOIN thread_threads p ON p.no = t.fork_no";

/// The agent of the last run of a thread `t`.
pub(super) const AGENT: &str = "(SELECT x.agent FROM thread_executions x
    WHERE x.thread_no = t.no ORDER BY x.seq DESC LIMIT 1)";

/// The id of the tenant's thread with this key.
pub(super) fn id_of(
    conn: &Connection,
    tenant: &TenantId,
    key: &str,
) -> Result<Option<ThreadId>, StoreError> {
    let sql = "SELECT id FROM thread_threads WHERE tenant = ?1 AND key = ?2";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([tenant.as_str(), key], |row| row.get::<_, String>(0));
    Ok(found.optional().map_err(statement)?.map(ThreadId::from))
}

/// The row of the tenant's thread with this key.
pub(super) fn find(
    conn: &Connection,
    tenant: &TenantId,
    key: &str,
) -> Result<ThreadRow, StoreError> {
    let sql = format!("{ROW} WHERE t.tenant = ?1 AND t.key = ?2");
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([tenant.as_str(), key], |row| Ok(thread_row(row)));
    found
        .optional()
        .map_err(statement)?
        .ok_or(StoreError::NotFound)?
}

/// The row of the thread with this id.
pub(super) fn row(conn: &Connection, thread: &ThreadId) -> Result<ThreadRow, StoreError> {
    let sql = format!("{ROW} WHERE t.id = ?1");
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([thread.as_str()], |row| Ok(thread_row(row)));
    found
        .optional()
        .map_err(statement)?
        .ok_or(StoreError::NotFound)?
}

/// The row of the thread with this number, if there is one.
pub(super) fn thread_of(conn: &Connection, no: i64) -> Result<Option<ThreadRow>, StoreError> {
    let sql = format!("{ROW} WHERE t.no = ?1");
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
        "{ROW} WHERE {tenant_is} AND {change} < ?2 AND {keyed}
                 AND (?5 IS NULL OR t.status = ?5) AND (?6 IS NULL OR t.updated_at >= ?6) AND {by_agent}
           ORDER BY {change} DESC LIMIT ?4"
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
    rows.map(|row| row.map_err(statement)?).collect()
}

/// The threads that are forked from this one, in the order they were made.
pub(super) fn forks(conn: &Connection, thread: &ThreadId) -> Result<Vec<ThreadRow>, StoreError> {
    let no = number(conn, thread)?;
    let sql = format!("{ROW} WHERE t.fork_no = ?1 ORDER BY t.no");
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let rows = select
        .query_map([no], |row| Ok(thread_row(row)))
        .map_err(statement)?;
    rows.map(|row| row.map_err(statement)?).collect()
}

pub(super) fn number(conn: &Connection, thread: &ThreadId) -> Result<i64, StoreError> {
    let sql = "SELECT no FROM thread_threads WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([thread.as_str()], |row| row.get(0));
    found
        .optional()
        .map_err(statement)?
        .ok_or(StoreError::NotFound)
}

/// A page of the records of a thread after a place, in order.
pub(super) fn read(
    conn: &Connection,
    thread: &ThreadId,
    after: Seq,
    limit: usize,
    filter: Filter,
) -> Result<Vec<Logged>, StoreError> {
    let no = number(conn, thread)?;
    let wanted = match filter {
        Filter::All => Wanted::All,
        Filter::Facts => Wanted::Facts,
    };
    let (mut page, mut size) = (Vec::new(), PageSize::default());
    if limit == 0 {
        return Ok(page);
    }
    Log { conn, no }.read(after.next(), wanted, |seq, decoded| {
        let logged = logged(seq, decoded)?;
        if !size.add(logged.text.len()) {
            return Ok(ControlFlow::Break(()));
        }
        page.push(logged);
        Ok(if page.len() < limit {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
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

/// The status of this name.
pub(super) fn status<S: Machine>(all: &[S], name: &str) -> Result<S, StoreError> {
    let found = all.iter().copied().find(|status| status.name() == name);
    found.ok_or_else(|| StoreError::Damaged(format!("{name:?} is no status")))
}

fn thread_row(row: &Row<'_>) -> Result<ThreadRow, StoreError> {
    let text = |column| row.get::<_, String>(column).map_err(statement);
    let optional = |column| row.get::<_, Option<String>>(column).map_err(statement);
    let number = |column| row.get::<_, i64>(column).map_err(statement);
    let metadata = optional(7)?.map(Payload::from_text).transpose();
    let fork = match (
        optional(8)?,
        row.get::<_, Option<i64>>(9).map_err(statement)?,
    ) {
        (Some(parent), Some(seq)) => Some(Fork {
            thread_id: parent.into(),
            seq: Seq(count(seq)),
        }),
        _ => None,
    };
    Ok(ThreadRow {
        tenant: text(0)?.as_str().into(),
        thread: Thread {
            id: text(1)?.into(),
            key: optional(2)?,
            status: status(ThreadStatus::ALL, &text(3)?)?,
            created_at: instant(number(4)?)?,
            updated_at: Some(instant(number(5)?)?),
            title: optional(6)?,
            metadata: metadata.map_err(|error| StoreError::Damaged(error.to_string()))?,
            fork,
        },
        tail: Seq(count(number(10)?)),
        bytes: count(number(11)?),
        change: count(number(12)?),
    })
}
