//! The data of a tenant that belongs to no thread.

use super::super::error::statement;
use super::super::objects;
use super::values::add_rows;
use crate::durable::{ErasedTenant, Samples};
use rusqlite::{Connection, params};
use store::{StoreError, TenantId};

/// Rows that one commit erases.
const ROWS: u32 = 64;

/// Erases some rows.
pub(super) fn some(conn: &Connection, tenant: &TenantId) -> Result<ErasedTenant, StoreError> {
    let objects = objects::delete_some(conn, tenant, ROWS)?;
    let sql = "DELETE FROM agent_checkpoints WHERE no IN
               (SELECT no FROM agent_checkpoints WHERE tenant = ?1 LIMIT ?2)";
    let mut delete = conn.prepare_cached(sql).map_err(statement)?;
    let n = delete.execute(params![tenant.as_str(), ROWS]);
    let checkpoints = n.map_err(statement)? as u64;
    if objects + checkpoints == 0 {
        let sql = "DELETE FROM tenant_usage WHERE tenant = ?1 AND threads = 0 AND bytes = 0";
        conn.execute(sql, [tenant.as_str()]).map_err(statement)?;
    }
    Ok(ErasedTenant {
        objects,
        checkpoints,
    })
}

/// Samples of the objects, contents and checkpoints.
pub(super) fn samples(conn: &Connection, tenant: &TenantId) -> Result<Samples, StoreError> {
    let mut samples = Samples::default();
    for sql in [
        "SELECT json FROM tenant_objects WHERE tenant = ?1",
        "SELECT content FROM tenant_contents WHERE tenant = ?1",
        "SELECT state FROM agent_checkpoints WHERE tenant = ?1",
    ] {
        add_rows(&mut samples, conn, sql, [tenant.as_str()])?;
    }
    Ok(samples)
}
