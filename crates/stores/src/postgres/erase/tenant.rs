//! The data of a tenant that belongs to no thread.

use super::values::{add_columns, add_numbered};
use crate::durable::{ErasedTenant, Samples};
use crate::postgres::connection::Conn;
use crate::postgres::objects;
use crate::postgres::value::{Param, get, stored};
use store::{StoreError, TenantId};
use tokio_postgres::types::Type;

/// Rows that one commit erases.
const ROWS: i64 = 64;

/// The tables that lose rows.
pub(super) const TABLES: [&str; 4] = [
    "tenant_objects",
    "tenant_contents",
    "agent_checkpoints",
    "tenant_usage",
];

/// Erases some rows, in a transaction.
pub(super) async fn erase_some(conn: &Conn, tenant: &TenantId) -> Result<ErasedTenant, StoreError> {
    let tenant = stored(tenant.as_str());
    let objects = objects::delete_some(conn, &tenant, ROWS).await?;
    let sql = "DELETE FROM agent_checkpoints WHERE tenant = $1 AND session_id IN (
                   SELECT session_id FROM agent_checkpoints WHERE tenant = $1 ORDER BY session_id LIMIT $2 FOR UPDATE)
               RETURNING 1 AS gone";
    let values: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&ROWS, Type::INT8)];
    let checkpoints = conn.query(sql, &values).await?.len() as u64;
    if objects + checkpoints == 0 {
        forget_usage(conn, &tenant).await?;
    }
    Ok(ErasedTenant {
        objects,
        checkpoints,
    })
}

/// Deletes the rows of a tenant's usage, if they are zero together. Writers of these rows wait; a row that somebody adds
/// meanwhile stays.
async fn forget_usage(conn: &Conn, tenant: &str) -> Result<(), StoreError> {
    let sql = "SELECT shard, threads, bytes, files FROM tenant_usage WHERE tenant = $1 ORDER BY shard FOR UPDATE";
    let (mut shards, mut sums) = (Vec::<i16>::new(), [0_i64; 3]);
    for row in conn.query(sql, &[(&tenant, Type::TEXT)]).await? {
        shards.push(get(&row, 0)?);
        for (n, sum) in sums.iter_mut().enumerate() {
            *sum = sum.saturating_add(get(&row, n + 1)?);
        }
    }
    if sums != [0; 3] {
        return Ok(());
    }
    let sql = "DELETE FROM tenant_usage WHERE tenant = $1 AND shard = ANY($2)";
    let values: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&shards, Type::INT2_ARRAY)];
    conn.execute(sql, &values).await
}

/// Samples of the objects, contents and checkpoints.
pub(super) async fn samples(conn: &Conn, tenant: &TenantId) -> Result<Samples, StoreError> {
    let mut samples = Samples::default();
    let tenant = stored(tenant.as_str());
    for (list, one) in [
        (
            "SELECT no FROM tenant_objects WHERE no > $1 AND tenant = $3 ORDER BY no LIMIT $2",
            "SELECT json FROM tenant_objects WHERE no = $1",
        ),
        (
            "SELECT no FROM tenant_contents WHERE no > $1 AND tenant = $3 ORDER BY no LIMIT $2",
            "SELECT content FROM tenant_contents WHERE no = $1",
        ),
    ] {
        add_numbered(&mut samples, conn, list, (&tenant, Type::TEXT), one).await?;
    }
    let sql = "SELECT session_id, state FROM agent_checkpoints
               WHERE tenant = $1 AND session_id > $2 ORDER BY session_id LIMIT 1";
    let mut after = String::new();
    loop {
        let values: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&after, Type::TEXT)];
        let Some(row) = conn.first(sql, &values).await? else {
            return Ok(samples);
        };
        after = get(&row, 0)?;
        add_columns(&mut samples, &row, 1)?;
    }
}
