//! Checkpoints of agents that run in memory: one row a session.

use super::SqliteStore;
use super::error::statement;
use super::value::{count, instant, int, nanos};
use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Row, params};
use store::{CheckpointRow, CheckpointTable, StoreError, TenantId};

impl CheckpointTable for SqliteStore {
    fn save<'a>(
        &'a self,
        tenant: &'a TenantId,
        about: CheckpointRow,
        state: String,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let tenant = tenant.clone();
        Box::pin(async move {
            self.writer()?
                .run(state.len(), move |conn| save(conn, &tenant, &about, &state))
                .await
        })
    }

    fn load<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let (tenant, session) = (tenant.clone(), session_id.to_owned());
        Box::pin(self.readers.run(move |conn| load(conn, &tenant, &session)))
    }

    fn row<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointRow>, StoreError>> {
        let (tenant, session) = (tenant.clone(), session_id.to_owned());
        Box::pin(
            self.readers
                .run(move |conn| read_row(conn, &tenant, &session)),
        )
    }

    fn forget<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (tenant, session) = (tenant.clone(), session_id.to_owned());
        Box::pin(async move {
            self.writer()?
                .run(0, move |conn| delete(conn, &tenant, &session))
                .await
        })
    }

    fn sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        let tenant = tenant.clone();
        Box::pin(self.readers.run(move |conn| list(conn, &tenant)))
    }
}

fn save(
    conn: &Connection,
    tenant: &TenantId,
    about: &CheckpointRow,
    state: &str,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO agent_checkpoints
                   (tenant, session_id, checkpoint_id, saved_at, step, agent_id, state)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
               ON CONFLICT (tenant, session_id) DO UPDATE SET
                   checkpoint_id = ?3, saved_at = ?4, step = ?5, agent_id = ?6, state = ?7";
    let mut insert = conn.prepare_cached(sql).map_err(statement)?;
    let values = params![
        tenant.as_str(),
        about.session_id,
        about.checkpoint_id,
        nanos(about.timestamp),
        int(about.step),
        about.agent_id,
        state,
    ];
    insert.execute(values).map_err(statement)?;
    Ok(())
}

fn load(conn: &Connection, tenant: &TenantId, session: &str) -> Result<Option<String>, StoreError> {
    let sql = "SELECT state FROM agent_checkpoints WHERE tenant = ?1 AND session_id = ?2";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([tenant.as_str(), session], |row| row.get(0));
    found.optional().map_err(statement)
}

fn read_row(
    conn: &Connection,
    tenant: &TenantId,
    session: &str,
) -> Result<Option<CheckpointRow>, StoreError> {
    let sql = "SELECT session_id, checkpoint_id, saved_at, step, agent_id FROM agent_checkpoints
               WHERE tenant = ?1 AND session_id = ?2";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([tenant.as_str(), session], |row| Ok(metadata(row)));
    found.optional().map_err(statement)?.transpose()
}

fn metadata(row: &Row<'_>) -> Result<CheckpointRow, StoreError> {
    Ok(CheckpointRow {
        session_id: row.get(0).map_err(statement)?,
        checkpoint_id: row.get(1).map_err(statement)?,
        timestamp: instant(row.get(2).map_err(statement)?)?,
        step: count(row.get(3).map_err(statement)?),
        agent_id: row.get(4).map_err(statement)?,
    })
}

fn delete(conn: &Connection, tenant: &TenantId, session: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM agent_checkpoints WHERE tenant = ?1 AND session_id = ?2";
    let mut delete = conn.prepare_cached(sql).map_err(statement)?;
    delete
        .execute([tenant.as_str(), session])
        .map_err(statement)?;
    Ok(())
}

fn list(conn: &Connection, tenant: &TenantId) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT session_id FROM agent_checkpoints WHERE tenant = ?1 ORDER BY session_id";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let sessions = select
        .query_map([tenant.as_str()], |row| row.get(0))
        .map_err(statement)?;
    sessions.collect::<Result<_, _>>().map_err(statement)
}
