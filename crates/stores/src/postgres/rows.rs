//! Threads as rows, and pages of logs.

use super::blocks::{Log, logged};
use super::connection::Conn;
use super::value::{Param, get, optional_text, stored, text};
use crate::value::{count, instant, int, nanos};
use std::ops::ControlFlow;
use store::{
    Epoch, Filter, KeyPattern, Logged, NodeId, PageSize, StoreError, TenantId, ThreadFilter,
    ThreadRow, ThreadRows,
};
use timeline::{Fork, Machine, Payload, Seq, Thread, ThreadId, ThreadStatus};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The columns of a thread `t`.
const SELECT: &str = "SELECT t.no, t.tenant, t.id, t.key, t.created_at, t.title, t.metadata, p.id, t.fork_seq, t.updated_at,
        t.head_seq, t.bytes, t.change, t.status, t.epoch, (SELECT n.id FROM nodes n WHERE n.id = t.owner)
    FROM thread_threads t LEFT JOIN thread_threads p ON p.no = t.fork_no";

/// The agent of the last run of a thread `t`.
pub(super) const AGENT: &str = "(SELECT x.agent FROM thread_executions x
    WHERE x.thread_no = t.no ORDER BY x.seq DESC LIMIT 1)";

/// A thread's row, with what only this store needs of it.
pub(super) struct Found {
    pub(super) no: i64,
    pub(super) row: ThreadRow,
    pub(super) epoch: Epoch,
    /// The living node that owns its run.
    pub(super) owner: Option<NodeId>,
}

fn found(row: &Row) -> Result<Found, StoreError> {
    let metadata = optional_text(row, 6)?.map(Payload::from_text).transpose();
    let fork_seq: Option<i64> = get(row, 8)?;
    let fork = optional_text(row, 7)?
        .zip(fork_seq)
        .map(|(parent, seq)| Fork {
            thread_id: parent.into(),
            seq: Seq(count(seq)),
        });
    let name = text(row, 13)?;
    let status = ThreadStatus::ALL
        .iter()
        .find(|it| it.name() == name)
        .copied()
        .ok_or_else(|| StoreError::Damaged(format!("{name:?} is not the status of a thread")))?;
    let owner: Option<i64> = get(row, 15)?;
    Ok(Found {
        no: get(row, 0)?,
        epoch: Epoch(count(get(row, 14)?)),
        owner: owner.map(|owner| NodeId(count(owner))),
        row: ThreadRow {
            tenant: text(row, 1)?.as_str().into(),
            thread: Thread {
                id: text(row, 2)?.into(),
                key: optional_text(row, 3)?,
                status,
                created_at: instant(get(row, 4)?)?,
                updated_at: Some(instant(get(row, 9)?)?),
                title: optional_text(row, 5)?,
                metadata: metadata.map_err(|error| StoreError::Damaged(error.to_string()))?,
                fork,
            },
            tail: Seq(count(get(row, 10)?)),
            bytes: count(get(row, 11)?),
            change: count(get(row, 12)?),
        },
    })
}

async fn one(conn: &Conn, condition: &str, values: &[Param<'_>]) -> Result<Found, StoreError> {
    let row = conn
        .first(&format!("{SELECT} WHERE {condition}"), values)
        .await?;
    found(&row.ok_or(StoreError::NotFound)?)
}

/// The tenant's thread with this key.
pub(super) async fn find(
    conn: &Conn,
    tenant: &TenantId,
    key: &str,
) -> Result<ThreadRow, StoreError> {
    let (tenant, key) = (stored(tenant.as_str()), stored(key));
    let values = [(&tenant as _, Type::TEXT), (&key as _, Type::TEXT)];
    Ok(one(conn, "t.tenant = $1 AND t.key = $2", &values)
        .await?
        .row)
}

/// The thread with this id.
pub(super) async fn row(conn: &Conn, thread: &ThreadId) -> Result<Found, StoreError> {
    let id = stored(thread.as_str());
    one(conn, "t.id = $1", &[(&id, Type::TEXT)]).await
}

/// The number of the thread with this id.
pub(super) async fn number(conn: &Conn, thread: &ThreadId) -> Result<i64, StoreError> {
    let id = stored(thread.as_str());
    let sql = "SELECT no FROM thread_threads WHERE id = $1";
    let row = conn.first(sql, &[(&id, Type::TEXT)]).await?;
    get(&row.ok_or(StoreError::NotFound)?, 0)
}

/// The threads with these numbers, in no order.
pub(super) async fn threads(conn: &Conn, numbers: &[i64]) -> Result<Vec<Found>, StoreError> {
    let sql = format!("{SELECT} WHERE t.no = ANY($1)");
    let rows = conn.query(&sql, &[(&numbers, Type::INT8_ARRAY)]).await?;
    rows.iter().map(found).collect()
}

/// The tenant's threads, the last changed first.
pub(super) async fn list(
    conn: &Conn,
    tenant: &TenantId,
    page: &ThreadRows,
) -> Result<Vec<ThreadRow>, StoreError> {
    let (keyed, key) = match &page.key {
        None => ("$3::text IS NULL", None),
        Some(KeyPattern::Key(key)) => ("t.key = $3", Some(key)),
        Some(KeyPattern::Prefix(prefix)) => ("starts_with(t.key, $3)", Some(prefix)),
    };
    let ThreadFilter {
        status,
        agent,
        since,
        may_wait,
    } = &page.filter;
    let by_agent = match agent {
        None => "$7::text IS NULL".to_owned(),
        Some(_) => format!("{AGENT} = $7"),
    };
    let waits = if *may_wait {
        "AND t.no IN (SELECT w.thread_no FROM thread_waits w WHERE w.tenant = $1)"
    } else {
        ""
    };
    let sql = format!(
        "{SELECT} WHERE t.tenant = $1 AND t.change < $2 AND {keyed} {waits}
             AND ($5::text IS NULL OR t.status = $5) AND ($6::bigint IS NULL OR t.updated_at >= $6) AND {by_agent}
         ORDER BY t.change DESC LIMIT $4"
    );
    let tenant = stored(tenant.as_str());
    let after = page.after.map_or(i64::MAX, int);
    let key = key.map(|key| stored(key));
    let limit = int(page.limit as u64);
    let status = status.map(Machine::name);
    let since = since.map(nanos);
    let agent = agent.as_deref().map(stored);
    let values: [Param<'_>; 7] = [
        (&tenant, Type::TEXT),
        (&after, Type::INT8),
        (&key, Type::TEXT),
        (&limit, Type::INT8),
        (&status, Type::TEXT),
        (&since, Type::INT8),
        (&agent, Type::TEXT),
    ];
    let rows = conn.query(&sql, &values).await?;
    rows.iter().map(|row| Ok(found(row)?.row)).collect()
}

/// The tenant's threads that changed first, after a place in the order of changes.
pub(super) async fn oldest(
    conn: &Conn,
    tenant: &TenantId,
    after: u64,
    limit: usize,
) -> Result<Vec<ThreadRow>, StoreError> {
    let sql = format!("{SELECT} WHERE t.tenant = $1 AND t.change > $2 ORDER BY t.change LIMIT $3");
    let (tenant, after, limit) = (stored(tenant.as_str()), int(after), int(limit as u64));
    let values: [Param<'_>; 3] = [
        (&tenant, Type::TEXT),
        (&after, Type::INT8),
        (&limit, Type::INT8),
    ];
    let rows = conn.query(&sql, &values).await?;
    rows.iter().map(|row| Ok(found(row)?.row)).collect()
}

/// The threads that are forked from this one, in the order they were made.
pub(super) async fn forks(conn: &Conn, thread: &ThreadId) -> Result<Vec<ThreadRow>, StoreError> {
    let no = number(conn, thread).await?;
    let sql = format!("{SELECT} WHERE t.fork_no = $1 ORDER BY t.no");
    let rows = conn.query(&sql, &[(&no, Type::INT8)]).await?;
    rows.iter().map(|row| Ok(found(row)?.row)).collect()
}

/// A page of the records of a thread after a place, in order.
pub(super) async fn read(
    conn: &Conn,
    thread: &ThreadId,
    after: Seq,
    limit: usize,
    filter: Filter,
) -> Result<Vec<Logged>, StoreError> {
    let (mut page, mut size) = (Vec::new(), PageSize::default());
    if limit == 0 {
        number(conn, thread).await?;
        return Ok(page);
    }
    let with = |seq, decoded: crate::block::Decoded<'_>| {
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
    };
    let log = Log::Named(thread);
    log.read(conn, after.next(), filter, Log::chunk_for(limit), with)
        .await?;
    Ok(page)
}

/// Whether a thread `t` has an execution to resume or a trigger to answer.
pub(super) const HAS_WORK: &str = "(EXISTS (SELECT 1 FROM thread_executions x WHERE x.thread_no = t.no AND x.status = 0)
    OR t.status <> 'closed' AND EXISTS (SELECT 1 FROM thread_items i WHERE i.thread_no = t.no AND i.waiting))";

/// The threads with an execution to resume or a trigger to answer.
pub(super) async fn unfinished(conn: &Conn) -> Result<Vec<ThreadId>, StoreError> {
    let sql = "SELECT t.id FROM thread_threads t
        WHERE t.no IN (SELECT thread_no FROM thread_executions WHERE status = 0)
            OR t.status <> 'closed' AND t.no IN (SELECT thread_no FROM thread_items WHERE waiting)
        ORDER BY t.no";
    let rows = conn.query(sql, &[]).await?;
    rows.iter().map(|row| Ok(text(row, 0)?.into())).collect()
}
