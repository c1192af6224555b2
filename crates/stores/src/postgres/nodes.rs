//! The nodes that share the store, and the threads that are due.

use super::connection::{Conn, Connector, LEASE_SPARE};
use super::error::{Failure, Unavailable, failure};
use super::pool::Pool;
use super::rows::HAS_WORK;
use super::value::{Param, get, stored, text};
use crate::value::{count, int};
use jiff::Timestamp;
use std::time::{Duration, Instant};
use store::{DueSearch, Lease, NodeId, StoreError};
use timeline::{Seq, ThreadId};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// A statement about the lease may take this part of it, so that one that gets no answer can be repeated in time.
const PART: u32 = 4;

/// The lease of this process. It has a connection of its own, so that readers who take long don't delay it.
pub(super) struct NodeLease {
    connector: Connector,
    conn: Mutex<Option<Conn>>,
    pub(super) length: Duration,
}

impl NodeLease {
    pub(super) fn new(connector: &Connector, length: Duration) -> Self {
        Self {
            connector: connector
                .within(length / PART)
                .with_maximum(1 + LEASE_SPARE),
            conn: Mutex::default(),
            length,
        }
    }

    pub(super) async fn close(&self) {
        self.conn.lock().await.take();
    }

    /// Does one statement that can be repeated. Its rows are returned once it is durable.
    async fn write(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, StoreError> {
        let mut slot = self.conn.lock().await;
        // Whatever ends this early leaves no connection with an answer that nobody reads.
        let kept = slot.take().filter(|conn| !conn.is_closed());
        let is_kept = kept.is_some();
        let mut done = self.write_on(kept, sql, params).await;
        if is_kept
            && done
                .as_ref()
                .is_err_and(|it| failure(it) == Some(Failure::Lost))
        {
            done = self.write_on(None, sql, params).await;
        }
        let (conn, rows) = done?;
        *slot = Some(conn);
        Ok(rows)
    }

    async fn write_on(
        &self,
        conn: Option<Conn>,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<(Conn, Vec<Row>), StoreError> {
        let write = async {
            let conn = match conn {
                Some(conn) => conn,
                None => self.connector.connect().await?,
            };
            let rows = conn.query(sql, params).await?;
            if conn.takes_unconfirmed() {
                return Err(Unavailable::Unconfirmed.into());
            }
            Ok((conn, rows))
        };
        let written = timeout(self.length / PART, write).await;
        written.unwrap_or_else(|_| Err(Unavailable::Silent.into()))
    }
}

/// Adds a node. The earlier one of the same name has another number, so it is dead.
pub(super) async fn join(node_lease: &NodeLease, name: &str) -> Result<NodeId, StoreError> {
    let sql = "INSERT INTO nodes (name, version, lease_until) VALUES ($1, $2, now() + make_interval(secs => $3))
               ON CONFLICT (name) DO UPDATE SET
                   id = DEFAULT, version = excluded.version, lease_until = excluded.lease_until
               RETURNING id";
    let (name, version) = (stored(name), env!("CARGO_PKG_VERSION"));
    let lease = node_lease.length.as_secs_f64();
    let values: [Param<'_>; 3] = [
        (&name, Type::TEXT),
        (&version, Type::TEXT),
        (&lease, Type::FLOAT8),
    ];
    let rows = node_lease.write(sql, &values).await?;
    let id: i64 = get(rows.first().ok_or(StoreError::NotFound)?, 0)?;
    Ok(NodeId(count(id)))
}

/// Renews a lease, also one that has ended, unless another node has declared this one dead: after an outage of the
/// database all nodes live on. It fails at once while an earlier renewal is not done, so that none waits behind another.
pub(super) async fn renew(node_lease: &NodeLease, node: NodeId) -> Result<Lease, StoreError> {
    let sql = "WITH held AS (SELECT id FROM nodes WHERE id = $1 FOR UPDATE NOWAIT)
               UPDATE nodes n SET lease_until = now() + make_interval(secs => $2) FROM held WHERE n.id = held.id
               RETURNING (extract(epoch FROM now()) * 1000000)::bigint,
                   (SELECT count(*) FROM nodes WHERE lease_until >= now())";
    let (id, lease) = (int(node.0), node_lease.length.as_secs_f64());
    let sent = Instant::now();
    let values: [Param<'_>; 2] = [(&id, Type::INT8), (&lease, Type::FLOAT8)];
    let rows = node_lease.write(sql, &values).await?;
    let row = rows.first().ok_or(StoreError::DeadNode)?;
    let n_nodes: i64 = get(row, 1)?;
    Ok(Lease {
        left: node_lease.length.saturating_sub(sent.elapsed()),
        n_nodes: usize::try_from(n_nodes).unwrap_or(usize::MAX),
        now: Timestamp::from_microsecond(get(row, 0)?)
            .map_err(|error| StoreError::Damaged(error.to_string()))?,
    })
}

/// Ends a lease.
pub(super) async fn leave(node_lease: &NodeLease, node: NodeId) -> Result<(), StoreError> {
    let id = int(node.0);
    let sql = "DELETE FROM nodes WHERE id = $1";
    let left = node_lease.write(sql, &[(&id, Type::INT8)]).await;
    left.map(drop)
}

/// Declares the nodes dead whose lease has ended. Returns their number.
pub(super) async fn declare_dead(pool: &Pool) -> Result<usize, StoreError> {
    let sql = "DELETE FROM nodes WHERE lease_until < now() RETURNING id";
    Ok(pool.write(sql, &[]).await?.len())
}

/// Where the logs of these threads end.
pub(super) async fn tails(
    pool: &Pool,
    threads: &[ThreadId],
) -> Result<Vec<(ThreadId, Seq)>, StoreError> {
    let ids: Vec<_> = threads.iter().map(|it| stored(it.as_str())).collect();
    let sql = "SELECT id, head_seq FROM thread_threads WHERE id = ANY ($1)";
    let conn = pool.get().await?;
    let rows = conn.query(sql, &[(&ids, Type::TEXT_ARRAY)]).await?;
    let tail = |row| Ok((text(row, 0)?.into(), Seq(count(get(row, 1)?))));
    rows.iter().map(tail).collect()
}

/// Threads with work that no living node owns. `owner` has 0 from the append on that leaves work to nobody in
/// particular, so only threads with an owner are looked at, by their index.
pub(super) async fn due(pool: &Pool, search: &DueSearch) -> Result<Vec<ThreadId>, StoreError> {
    let conn = pool.get().await?;
    let sql = format!(
        "SELECT t.id FROM thread_threads t
         WHERE t.owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = t.owner) AND {HAS_WORK}
             AND t.tenant <> ALL ($2) AND t.id <> ALL ($3)
         LIMIT $1"
    );
    let limit = int(search.limit as u64);
    let tenants: Vec<_> = search
        .without_tenants
        .iter()
        .map(|it| stored(it.as_str()))
        .collect();
    let threads: Vec<_> = search
        .without
        .iter()
        .map(|it| stored(it.as_str()))
        .collect();
    let values: [Param<'_>; 3] = [
        (&limit, Type::INT8),
        (&tenants, Type::TEXT_ARRAY),
        (&threads, Type::TEXT_ARRAY),
    ];
    let rows = conn.query(&sql, &values).await?;
    rest(&conn).await?;
    rows.iter().map(|row| Ok(text(row, 0)?.into())).collect()
}

/// Threads with work whose run this node owns.
pub(super) async fn owned(pool: &Pool, node: NodeId) -> Result<Vec<ThreadId>, StoreError> {
    let sql = format!("SELECT t.id FROM thread_threads t WHERE t.owner = $1 AND {HAS_WORK}");
    let conn = pool.get().await?;
    let rows = conn.query(&sql, &[(&int(node.0), Type::INT8)]).await?;
    rows.iter().map(|row| Ok(text(row, 0)?.into())).collect()
}

/// Threads that were offered and have no work any more have no owner from now on. An append in between moves the end of
/// the log, so the thread stays as it is.
async fn rest(conn: &Conn) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT t.no, t.head_seq FROM thread_threads t WHERE t.owner = 0 AND NOT {HAS_WORK} LIMIT 100"
    );
    let rows = conn.query(&sql, &[]).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let column = |n| rows.iter().map(move |row| get::<i64>(row, n));
    let numbers: Vec<i64> = column(0).collect::<Result<_, _>>()?;
    let tails: Vec<i64> = column(1).collect::<Result<_, _>>()?;
    // They are locked in the order of all writers. One that somebody writes to is left for later.
    let sql = "WITH r AS (
                   SELECT t.no FROM unnest($1::bigint[], $2::bigint[]) r (no, tail)
                   JOIN thread_threads t ON t.no = r.no AND t.owner = 0 AND t.head_seq = r.tail
                   ORDER BY t.no FOR NO KEY UPDATE OF t SKIP LOCKED)
               UPDATE thread_threads t SET owner = NULL FROM r WHERE t.no = r.no";
    let values: [Param<'_>; 2] = [(&numbers, Type::INT8_ARRAY), (&tails, Type::INT8_ARRAY)];
    conn.execute(sql, &values).await
}
