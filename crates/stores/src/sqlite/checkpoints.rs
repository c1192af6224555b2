//! Checkpoints of agents that run in memory: one row a session.

use super::SqliteStore;
use super::blocks::Sum;
use super::error::statement;
use super::sums::{self, Summing, changed};
use super::value::{count, instant, int, nanos};
use crate::durable::StoreFault;
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
            let forget = move |conn: &_| delete(conn, &tenant, &session);
            self.writer()?.run_deleting(0, forget, |()| true).await
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

/// Creates or replaces a checkpoint.
pub(super) fn save(
    conn: &Connection,
    tenant: &TenantId,
    about: &CheckpointRow,
    state: &str,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO agent_checkpoints
                   (tenant, session_id, checkpoint_id, saved_at, step, agent_id, state, sum, state_sum)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
               ON CONFLICT (tenant, session_id) DO UPDATE SET
                   checkpoint_id = ?3, saved_at = ?4, step = ?5, agent_id = ?6, state = ?7, sum = ?8, state_sum = ?9";
    let mut insert = conn.prepare_cached(sql).map_err(statement)?;
    let state_sum = sums::of_state(state);
    let values = params![
        tenant.as_str(),
        about.session_id,
        about.checkpoint_id,
        nanos(about.timestamp),
        int(about.step),
        about.agent_id,
        state,
        sum(tenant.as_str(), about, state_sum),
        state_sum,
    ];
    insert.execute(values).map_err(statement)?;
    Ok(())
}

/// The sum of a checkpoint's row.
fn sum(tenant: &str, about: &CheckpointRow, state_sum: Sum) -> Sum {
    Summing::of("agent_checkpoints")
        .text(tenant)
        .text(&about.session_id)
        .text(&about.checkpoint_id)
        .int(nanos(about.timestamp))
        .int(int(about.step))
        .optional(about.agent_id.as_ref(), |to, id| to.text(id))
        .bytes(&state_sum)
        .end()
}

/// Copies the checkpoints of an older store, with their sums.
pub(super) fn copy_older(conn: &Connection) -> Result<(), StoreError> {
    let sql = "SELECT session_id, checkpoint_id, saved_at, step, agent_id, tenant, state
               FROM old_checkpoints ORDER BY no";
    let mut select = conn.prepare(sql).map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let tenant: String = row.get(5).map_err(statement)?;
        let state: String = row.get(6).map_err(statement)?;
        save(conn, &tenant.as_str().into(), &metadata(row)?, &state)?;
    }
    Ok(())
}

// The columns of [`checked`].
const ROW: &str =
    "SELECT session_id, checkpoint_id, saved_at, step, agent_id, tenant, sum, state_sum";

/// The data of a row, and the sum of its state. Refuses a row that has changed, or is of another tenant or session.
fn checked(
    row: &Row<'_>,
    tenant: &TenantId,
    session: Option<&str>,
) -> Result<(CheckpointRow, Sum), StoreError> {
    let about = metadata(row)?;
    let state_sum: Sum = row.get(7).map_err(statement)?;
    let stored: Sum = row.get(6).map_err(statement)?;
    let owner: String = row.get(5).map_err(statement)?;
    let is_meant = session.is_none_or(|session| session == about.session_id);
    if owner != tenant.as_str() || !is_meant || stored != sum(&owner, &about, state_sum) {
        return Err(changed(&format!(
            "the checkpoint of session {}",
            about.session_id
        )));
    }
    Ok((about, state_sum))
}

fn load(conn: &Connection, tenant: &TenantId, session: &str) -> Result<Option<String>, StoreError> {
    let sql = format!("{ROW}, state FROM agent_checkpoints WHERE tenant = ?1 AND session_id = ?2");
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([tenant.as_str(), session], |row| {
        let state: String = row.get(8)?;
        Ok((checked(row, tenant, Some(session)), state))
    });
    let Some((about, state)) = found.optional().map_err(statement)? else {
        return Ok(None);
    };
    if sums::of_state(&state) != about?.1 {
        return Err(changed(&format!("the state of session {session}")));
    }
    Ok(Some(state))
}

fn read_row(
    conn: &Connection,
    tenant: &TenantId,
    session: &str,
) -> Result<Option<CheckpointRow>, StoreError> {
    let sql = format!("{ROW} FROM agent_checkpoints WHERE tenant = ?1 AND session_id = ?2");
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([tenant.as_str(), session], |row| {
        Ok(checked(row, tenant, Some(session)))
    });
    let found = found.optional().map_err(statement)?.transpose()?;
    Ok(found.map(|(about, _)| about))
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

/// Adds the checkpoints that are not what was saved. One state at a time is in memory.
pub(super) fn check(conn: &Connection, found: &mut Vec<StoreFault>) -> Result<(), StoreError> {
    let sql = format!("{ROW}, state FROM agent_checkpoints ORDER BY no");
    let mut select = conn.prepare(&sql).map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let tenant: String = row.get(5).map_err(statement)?;
        let state: String = row.get(8).map_err(statement)?;
        let about = checked(row, &tenant.as_str().into(), None);
        let fault = match about {
            Ok((_, sum)) if sum == sums::of_state(&state) => continue,
            Ok((about, _)) => changed(&format!("the state of session {}", about.session_id)),
            Err(error) => error,
        };
        let session: String = row.get(0).map_err(statement)?;
        let object = format!("tenant {tenant}, checkpoint {session}");
        found.push(StoreFault::of_object(object, sums::damage(fault)));
    }
    Ok(())
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
    let sql = format!("{ROW} FROM agent_checkpoints WHERE tenant = ?1 ORDER BY session_id");
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let mut rows = select.query([tenant.as_str()]).map_err(statement)?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next().map_err(statement)? {
        sessions.push(checked(row, tenant, None)?.0.session_id);
    }
    Ok(sessions)
}
