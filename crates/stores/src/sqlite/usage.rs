//! The storage usage of tenants. Triggers update the table in the transaction of each change.

use super::error::statement;
use super::value::count;
use rusqlite::{Connection, OptionalExtension, Row};
use store::{StorageUsage, StoreError, TenantId};

/// The usage of each tenant that has stored something.
pub(super) fn all(conn: &Connection) -> Result<Vec<(TenantId, StorageUsage)>, StoreError> {
    let sql = "SELECT threads, bytes, files, tenant FROM tenant_usage ORDER BY tenant";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let read = |row: &Row<'_>| {
        let tenant: String = row.get(3)?;
        Ok((tenant.as_str().into(), usage(row)?))
    };
    let rows = select.query_map([], read).map_err(statement)?;
    rows.collect::<Result<_, _>>().map_err(statement)
}

/// The usage of one tenant.
pub(super) fn of(conn: &Connection, tenant: &TenantId) -> Result<StorageUsage, StoreError> {
    let sql = "SELECT threads, bytes, files FROM tenant_usage WHERE tenant = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([tenant.as_str()], usage);
    Ok(found.optional().map_err(statement)?.unwrap_or_default())
}

fn usage(row: &Row<'_>) -> rusqlite::Result<StorageUsage> {
    Ok(StorageUsage {
        threads: count(row.get(0)?),
        bytes: count(row.get(1)?),
        files: count(row.get(2)?),
    })
}
