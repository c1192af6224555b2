//! Checkpoints of agents that run in memory: one row a session.

use super::PostgresStore;
use super::value::{Param, get, optional_text, stored, text};
use crate::value::{count, instant, int, nanos};
use futures_util::future::BoxFuture;
use store::{CheckpointRow, CheckpointTable, StoreError, TenantId};
use tokio_postgres::types::Type;

impl CheckpointTable for PostgresStore {
    fn save<'a>(
        &'a self,
        tenant: &'a TenantId,
        about: CheckpointRow,
        state: String,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.noting(async move {
            let sql = "INSERT INTO agent_checkpoints
                           (tenant, session_id, checkpoint_id, saved_at, step, agent_id, state)
                       VALUES ($1, $2, $3, $4, $5, $6, $7)
                       ON CONFLICT (tenant, session_id) DO UPDATE SET
                           checkpoint_id = $3, saved_at = $4, step = $5, agent_id = $6, state = $7";
            let tenant = stored(tenant.as_str());
            let session = stored(&about.session_id);
            let checkpoint = stored(&about.checkpoint_id);
            let saved_at = nanos(about.timestamp);
            let step = int(about.step);
            let agent = about.agent_id.as_deref().map(stored);
            let state = stored(&state);
            let values: [Param<'_>; 7] = [
                (&tenant, Type::TEXT),
                (&session, Type::TEXT),
                (&checkpoint, Type::TEXT),
                (&saved_at, Type::INT8),
                (&step, Type::INT8),
                (&agent, Type::TEXT),
                (&state, Type::TEXT),
            ];
            self.pool.write(sql, &values).await.map(drop)
        })
    }

    fn load<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        self.noting(async move {
            let sql = "SELECT state FROM agent_checkpoints WHERE tenant = $1 AND session_id = $2";
            let (tenant, session) = (stored(tenant.as_str()), stored(session_id));
            let values: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&session, Type::TEXT)];
            let row = self.pool.get().await?.first(sql, &values).await?;
            row.map(|row| text(&row, 0)).transpose()
        })
    }

    fn row<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointRow>, StoreError>> {
        self.noting(async move {
            let sql = "SELECT checkpoint_id, saved_at, step, agent_id FROM agent_checkpoints
                       WHERE tenant = $1 AND session_id = $2";
            let (tenant, session) = (stored(tenant.as_str()), stored(session_id));
            let values: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&session, Type::TEXT)];
            let row = self.pool.get().await?.first(sql, &values).await?;
            let about = row.map(|row| {
                Ok(CheckpointRow {
                    session_id: session_id.to_owned(),
                    checkpoint_id: text(&row, 0)?,
                    timestamp: instant(get(&row, 1)?)?,
                    step: count(get(&row, 2)?),
                    agent_id: optional_text(&row, 3)?,
                })
            });
            about.transpose()
        })
    }

    fn forget<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.noting(async move {
            let sql = "DELETE FROM agent_checkpoints WHERE tenant = $1 AND session_id = $2";
            let (tenant, session) = (stored(tenant.as_str()), stored(session_id));
            let values: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&session, Type::TEXT)];
            self.pool.write(sql, &values).await.map(drop)
        })
    }

    fn sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        self.noting(async move {
            let sql =
                "SELECT session_id FROM agent_checkpoints WHERE tenant = $1 ORDER BY session_id";
            let tenant = stored(tenant.as_str());
            let conn = self.pool.get().await?;
            let rows = conn.query(sql, &[(&tenant, Type::TEXT)]).await?;
            rows.iter().map(|row| text(row, 0)).collect()
        })
    }
}
