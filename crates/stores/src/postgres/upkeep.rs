//! The state of a store, for an operator.

use super::connection::Conn;
use super::error::{Unavailable, is_overtaken};
use super::pool::Isolation;
use super::value::{get, optional_text, text};
use super::{PostgresStore, check, derive, storage};
use crate::durable::{
    Activity, PoisonedRun, Stats, StoreFault, StoreHealth, StoreStorage, ThreadStorage, Upkeep,
};
use crate::value::count;
use futures_util::future::BoxFuture;
use std::time::Duration;
use store::{StoreError, TenantId};
use timeline::{Interruption, ThreadId};
use tokio::time::timeout;
use tokio_postgres::types::Type;

/// How long a trial of a commit may take.
const TRIAL_TIME: Duration = Duration::from_secs(1);

/// A transaction that needs space for the log, as appends do, and leaves no rows there. It fails at once while an earlier
/// one is not done.
const TRIAL: &str = "SELECT FROM schema_version WHERE is_only FOR UPDATE NOWAIT;
    SAVEPOINT trial;
    INSERT INTO thread_blocks (thread_no, first, n, epoch, facts, sum, body)
        SELECT -1, first, 1, 0, 0, decode(repeat('00', 16), 'hex'), decode(repeat('00', 1800), 'hex')
        FROM generate_series(1, 16) first;
    ROLLBACK TO trial;
    UPDATE schema_version SET touched = touched + 1 WHERE is_only";

impl Upkeep for PostgresStore {
    fn health(&self) -> BoxFuture<'_, StoreHealth> {
        Box::pin(async move {
            if self.lanes.is_some() && self.work.health.wants_trial() {
                let trial = async {
                    let conn = self.pool.begin(Isolation::Write).await?;
                    let tried = conn.answered(conn.batch(TRIAL)).await;
                    conn.end(tried).await
                };
                match timeout(TRIAL_TIME, trial).await {
                    Ok(Ok(())) => self.work.health.appended(),
                    // An append or another trial is being done.
                    Ok(Err(error)) if is_overtaken(&error) => {}
                    Ok(Err(error)) => self.work.failed(&error),
                    Err(_) => self.work.failed(&Unavailable::Silent.into()),
                }
            }
            self.work.now()
        })
    }

    fn activity(&self) -> Activity {
        self.work.activity()
    }

    fn findings(&self) -> BoxFuture<'_, Result<Vec<StoreFault>, StoreError>> {
        self.noting(async move { check::check(&self.connector, &self.schema).await })
    }

    fn rebuild_tables(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.noting(async move {
            self.pool.writable()?;
            let conn = self.connector.connect_to_write().await?;
            derive::begin(&conn, "READ COMMITTED").await?;
            derive::rebuild(&conn).await?;
            self.pool.commit(&conn).await
        })
    }

    fn poisoned(&self) -> BoxFuture<'_, Result<Vec<PoisonedRun>, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let found = poisoned(&conn).await;
            conn.end(found).await
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let found = stats(&conn).await;
            conn.end(found).await
        })
    }

    fn storage(&self) -> BoxFuture<'_, Result<StoreStorage, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let storage = storage::of_store(&conn).await;
            conn.end(storage).await
        })
    }

    fn largest_threads<'a>(
        &'a self,
        tenant: &'a TenantId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ThreadStorage>, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let found = storage::largest(&conn, tenant, limit).await;
            conn.end(found).await
        })
    }

    fn thread_storage<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<ThreadStorage, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let storage = storage::of_thread(&conn, thread).await;
            conn.end(storage).await
        })
    }
}

async fn poisoned(conn: &Conn) -> Result<Vec<PoisonedRun>, StoreError> {
    let sql = "SELECT t.tenant, t.key, t.id, x.id
               FROM thread_executions x JOIN thread_threads t ON t.no = x.thread_no
               WHERE x.interruption_reason = $1
               ORDER BY x.updated_at DESC LIMIT 20";
    let reason = Interruption::POISONED;
    let rows = conn.query(sql, &[(&reason, Type::TEXT)]).await?;
    let run = |row| {
        let key = optional_text(row, 1)?;
        Ok(PoisonedRun {
            tenant: text(row, 0)?,
            key: key.map_or_else(|| text(row, 2), Ok)?,
            execution_id: text(row, 3)?,
        })
    };
    rows.iter().map(run).collect()
}

async fn stats(conn: &Conn) -> Result<Stats, StoreError> {
    let sql =
        "SELECT count(*), coalesce(sum(head_seq), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
                      (SELECT version::bigint FROM schema_version)
               FROM thread_threads";
    let row = conn.first(sql, &[]).await?.ok_or(StoreError::NotFound)?;
    Ok(Stats {
        n_threads: count(get(&row, 0)?),
        n_events: count(get(&row, 1)?),
        event_bytes: count(get(&row, 2)?),
        schema_version: count(get(&row, 3)?),
    })
}
