//! The storage usage of tenants, as sums of several rows.

use super::connection::Conn;
use super::look;
use super::value::{stored, text};
use store::{StorageLimits, StorageUsage, StoreError, TenantId};
use tokio_postgres::types::{ToSql, Type};

/// With this much room below its limits, a tenant's writers need not wait for each other.
const ROOM_THREADS: u64 = 10_000;
const ROOM_BYTES: u64 = 256 << 20;

/// The usage of each tenant that has stored something.
pub(super) async fn all(conn: &Conn) -> Result<Vec<(TenantId, StorageUsage)>, StoreError> {
    let sql = "SELECT tenant, sum(threads)::bigint, sum(bytes)::bigint, sum(files)::bigint
               FROM tenant_usage GROUP BY tenant ORDER BY tenant";
    let rows = conn.query(sql, &[]).await?;
    let usage = rows.iter().map(|row| {
        let tenant = text(row, 0)?.as_str().into();
        Ok((tenant, look::usage(row)?))
    });
    usage.collect()
}

/// The usage of one tenant.
pub(super) async fn of(conn: &Conn, tenant: &TenantId) -> Result<StorageUsage, StoreError> {
    let sql = "SELECT tenant, sum(threads)::bigint, sum(bytes)::bigint, sum(files)::bigint
               FROM tenant_usage WHERE tenant = $1 GROUP BY tenant";
    let tenant = stored(tenant.as_str());
    let row = conn.first(sql, &[(&tenant, Type::TEXT)]).await?;
    row.map_or_else(|| Ok(StorageUsage::default()), |row| look::usage(&row))
}

/// Holds the usage of tenants until the transaction ends: others that may reach their limits wait.
pub(super) async fn hold(conn: &Conn, tenants: &[&TenantId]) -> Result<(), StoreError> {
    let mut names: Vec<_> = tenants
        .iter()
        .map(|it| stored(it.as_str()).into_owned())
        .collect();
    names.sort_unstable();
    let values = [(&names as &(dyn ToSql + Sync), Type::TEXT_ARRAY)];
    // An existing row is locked, too.
    let sql = "INSERT INTO tenant_usage AS u (tenant, shard, threads, bytes, files)
               SELECT r.tenant, -1, 0, 0, 0 FROM unnest($1::text[]) r (tenant)
               ON CONFLICT (tenant, shard) DO UPDATE SET threads = u.threads";
    conn.execute(sql, &values).await
}

/// Whether other writers of the tenant may reach a limit together with this one.
pub(super) fn is_near(limits: &StorageLimits, usage: &StorageUsage) -> bool {
    let near = |max: u64, used: u64, room: u64| max < u64::MAX && max.saturating_sub(used) < room;
    near(limits.threads, usage.threads, ROOM_THREADS) || near(limits.bytes, usage.bytes, ROOM_BYTES)
}
