//! The space of a store by kind, by tenant and by thread.

use super::blocks::Log;
use super::connection::wal;
use super::error::statement;
use super::rows;
use super::value::count;
use crate::durable::{StoreStorage, TenantStorage, ThreadStorage, kind_of_event, kind_of_table};
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use store::{Filter, StoreError, TenantId};
use timeline::{Seq, ThreadId};

pub(super) fn of_store(conn: &Connection, path: &Path) -> Result<StoreStorage, StoreError> {
    let conn = &conn.unchecked_transaction().map_err(statement)?;
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let free: i64 = conn
        .query_row(
            "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size",
            [],
            |row| row.get(0),
        )
        .map_err(statement)?;
    let mut kinds = BTreeMap::new();
    let sql = "SELECT coalesce(s.tbl_name, d.name), d.pgsize
               FROM dbstat d LEFT JOIN sqlite_schema s ON s.name = d.name WHERE d.aggregate = TRUE";
    let mut select = conn.prepare(sql).map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let table: String = row.get(0).map_err(statement)?;
        let bytes: i64 = row.get(1).map_err(statement)?;
        *kinds.entry(kind_of_table(&table)).or_insert(0) += count(bytes);
    }
    let mut kinds: Vec<(String, u64)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    Ok(StoreStorage {
        file: size(path),
        log: size(&wal(path)),
        free: count(free),
        kinds,
        tenants: tenants(conn)?,
    })
}

/// A query with a tenant and two numbers, and what they are.
type Part = (&'static str, fn(&mut TenantStorage, [u64; 2]));

fn tenants(conn: &Connection) -> Result<Vec<TenantStorage>, StoreError> {
    let mut tenants: BTreeMap<String, TenantStorage> = BTreeMap::new();
    let parts: [Part; 6] = [
        (
            "SELECT tenant, count(*), sum(head_seq) FROM thread_threads GROUP BY tenant",
            |it, [threads, events]| (it.threads, it.events) = (threads, events),
        ),
        (
            "SELECT t.tenant, sum(octet_length(b.body)), 0
             FROM thread_blocks b JOIN thread_threads t ON t.no = b.thread_no GROUP BY t.tenant",
            |it, [bytes, _]| it.blocks = bytes,
        ),
        (
            "SELECT t.tenant, sum(octet_length(k.token) + octet_length(k.answer)), 0
             FROM thread_tokens k JOIN thread_threads t ON t.no = k.thread_no GROUP BY t.tenant",
            |it, [bytes, _]| it.tokens = bytes,
        ),
        (
            "SELECT tenant, sum(octet_length(json)), 0 FROM tenant_objects GROUP BY tenant",
            |it, [bytes, _]| it.objects = bytes,
        ),
        (
            "SELECT tenant, sum(octet_length(content)), 0 FROM tenant_contents GROUP BY tenant",
            |it, [bytes, _]| it.files = bytes,
        ),
        (
            "SELECT tenant, sum(octet_length(state)), 0 FROM agent_checkpoints GROUP BY tenant",
            |it, [bytes, _]| it.checkpoints = bytes,
        ),
    ];
    for (sql, add) in parts {
        let mut select = conn.prepare_cached(sql).map_err(statement)?;
        let mut rows = select.query([]).map_err(statement)?;
        while let Some(row) = rows.next().map_err(statement)? {
            let tenant: String = row.get(0).map_err(statement)?;
            let numbers = [number(row, 1)?, number(row, 2)?];
            let storage = tenants.entry(tenant).or_default();
            add(storage, numbers);
        }
    }
    let mut tenants: Vec<_> = tenants
        .into_iter()
        .map(|(tenant, storage)| TenantStorage { tenant, ..storage })
        .collect();
    tenants.sort_by_key(|tenant| std::cmp::Reverse(tenant.bytes()));
    Ok(tenants)
}

fn number(row: &Row<'_>, column: usize) -> Result<u64, StoreError> {
    let number: Option<i64> = row.get(column).map_err(statement)?;
    Ok(number.map_or(0, count))
}

/// The columns of a thread `t`.
const THREAD: &str = "t.id, t.key, t.head_seq,
    (SELECT sum(octet_length(b.body)) FROM thread_blocks b WHERE b.thread_no = t.no) AS blocks,
    (SELECT count(*) FROM thread_blocks b WHERE b.thread_no = t.no AND b.erased IS NOT NULL),
    (SELECT sum(octet_length(k.token) + octet_length(k.answer)) FROM thread_tokens k WHERE k.thread_no = t.no),
    (SELECT sum(octet_length(o.json) + coalesce(octet_length(c.content), 0)) FROM tenant_objects o
     LEFT JOIN tenant_contents c ON c.no = o.content_no WHERE o.thread_no = t.no)";

fn thread(row: &Row<'_>) -> Result<ThreadStorage, StoreError> {
    Ok(ThreadStorage {
        id: row.get(0).map_err(statement)?,
        key: row.get(1).map_err(statement)?,
        events: number(row, 2)?,
        blocks: number(row, 3)?,
        erased_blocks: number(row, 4)?,
        tokens: number(row, 5)?,
        objects: number(row, 6)?,
        texts: BTreeMap::new(),
    })
}

pub(super) fn largest(
    conn: &Connection,
    tenant: &TenantId,
    limit: usize,
) -> Result<Vec<ThreadStorage>, StoreError> {
    // The size of the texts orders them: it is in their rows.
    let sql = format!(
        "SELECT {THREAD} FROM (SELECT * FROM thread_threads WHERE tenant = ?1 ORDER BY bytes DESC, no LIMIT ?2) t
         ORDER BY t.bytes DESC, t.no"
    );
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select
        .query_map(rusqlite::params![tenant.as_str(), limit], |row| {
            Ok(thread(row))
        })
        .map_err(statement)?;
    rows.map(|row| row.map_err(statement)?).collect()
}

pub(super) fn of_thread(conn: &Connection, id: &ThreadId) -> Result<ThreadStorage, StoreError> {
    let conn = &conn.unchecked_transaction().map_err(statement)?;
    let no = rows::number(conn, id)?;
    let sql = format!("SELECT {THREAD} FROM thread_threads t WHERE t.no = ?1");
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([no], |row| Ok(thread(row)));
    let mut found = found.map_err(statement)??;
    Log { conn, no }.read(Seq(1), Filter::All, |_, decoded| {
        let text = decoded.text();
        let text = text.map_err(|fault| StoreError::Damaged(fault.to_string()))?;
        *found
            .texts
            .entry(kind_of_event(&decoded.event))
            .or_insert(0) += text.len() as u64;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
