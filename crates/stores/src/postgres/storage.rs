//! The space of a store by kind, by tenant and by thread.

use super::blocks::Log;
use super::connection::Conn;
use super::rows::number;
use super::schema::TABLES;
use super::value::{Param, get, optional_text, stored, text};
use crate::durable::{StoreStorage, TenantStorage, ThreadStorage, kind_of_event, kind_of_table};
use crate::value::{count, int};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use store::{Filter, StoreError, TenantId};
use timeline::{Seq, ThreadId};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The tables of the store, each with its bytes, those of its indexes and those of its large values.
pub(super) async fn tables(conn: &Conn) -> Result<Vec<(String, u64)>, StoreError> {
    let sql = "SELECT c.relname::text, pg_total_relation_size(c.oid) FROM pg_class c
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname = ANY($1)
               ORDER BY c.relname";
    let rows = conn.query(sql, &[(&TABLES, Type::TEXT_ARRAY)]).await?;
    let table = |row| Ok((get(row, 0)?, count(get(row, 1)?)));
    rows.iter().map(table).collect()
}

pub(super) async fn of_store(conn: &Conn) -> Result<StoreStorage, StoreError> {
    let mut kinds = BTreeMap::new();
    for (table, bytes) in tables(conn).await? {
        *kinds.entry(kind_of_table(&table)).or_insert(0) += bytes;
    }
    let mut kinds: Vec<(String, u64)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    Ok(StoreStorage {
        file: kinds.iter().map(|(_, bytes)| bytes).sum(),
        log: 0,
        free: 0,
        kinds,
        tenants: tenants(conn).await?,
    })
}

/// A query with a tenant and two numbers, and their meaning.
type Part = (&'static str, fn(&mut TenantStorage, [u64; 2]));

async fn tenants(conn: &Conn) -> Result<Vec<TenantStorage>, StoreError> {
    let mut tenants: BTreeMap<String, TenantStorage> = BTreeMap::new();
    let parts: [Part; 6] = [
        (
            "SELECT tenant, count(*), sum(head_seq)::bigint FROM thread_threads GROUP BY tenant",
            |it, [threads, events]| (it.threads, it.events) = (threads, events),
        ),
        (
            "SELECT t.tenant, sum(octet_length(b.body))::bigint, NULL::bigint
             FROM thread_blocks b JOIN thread_threads t ON t.no = b.thread_no GROUP BY t.tenant",
            |it, [bytes, _]| it.blocks = bytes,
        ),
        (
            "SELECT t.tenant, sum(octet_length(k.token) + octet_length(k.answer))::bigint, NULL::bigint
             FROM thread_tokens k JOIN thread_threads t ON t.no = k.thread_no GROUP BY t.tenant",
            |it, [bytes, _]| it.tokens = bytes,
        ),
        (
            "SELECT tenant, sum(octet_length(json))::bigint, NULL::bigint FROM tenant_objects GROUP BY tenant",
            |it, [bytes, _]| it.objects = bytes,
        ),
        (
            "SELECT tenant, sum(octet_length(content))::bigint, NULL::bigint FROM tenant_contents GROUP BY tenant",
            |it, [bytes, _]| it.files = bytes,
        ),
        (
            "SELECT tenant, sum(octet_length(state))::bigint, NULL::bigint FROM agent_checkpoints GROUP BY tenant",
            |it, [bytes, _]| it.checkpoints = bytes,
        ),
    ];
    for (sql, add) in parts {
        for row in conn.query(sql, &[]).await? {
            let storage = tenants.entry(text(&row, 0)?).or_default();
            add(storage, [bytes(&row, 1)?, bytes(&row, 2)?]);
        }
    }
    let mut tenants: Vec<_> = tenants
        .into_iter()
        .map(|(tenant, storage)| TenantStorage { tenant, ..storage })
        .collect();
    tenants.sort_by_key(|tenant| std::cmp::Reverse(tenant.bytes()));
    Ok(tenants)
}

fn bytes(row: &Row, column: usize) -> Result<u64, StoreError> {
    let number: Option<i64> = get(row, column)?;
    Ok(number.map_or(0, count))
}

/// The columns of a thread `t`.
const THREAD: &str = "t.id, t.key, t.head_seq,
    (SELECT sum(octet_length(b.body))::bigint FROM thread_blocks b WHERE b.thread_no = t.no),
    (SELECT count(*) FROM thread_blocks b WHERE b.thread_no = t.no AND b.erased IS NOT NULL),
    (SELECT sum(octet_length(k.token) + octet_length(k.answer))::bigint FROM thread_tokens k WHERE k.thread_no = t.no),
    (SELECT sum(octet_length(o.json) + coalesce(octet_length(c.content), 0))::bigint FROM tenant_objects o
     LEFT JOIN tenant_contents c ON c.no = o.content_no WHERE o.thread_no = t.no)";

fn thread(row: &Row) -> Result<ThreadStorage, StoreError> {
    Ok(ThreadStorage {
        id: text(row, 0)?,
        key: optional_text(row, 1)?,
        events: bytes(row, 2)?,
        blocks: bytes(row, 3)?,
        erased_blocks: bytes(row, 4)?,
        tokens: bytes(row, 5)?,
        objects: bytes(row, 6)?,
        texts: BTreeMap::new(),
    })
}

pub(super) async fn largest(
    conn: &Conn,
    tenant: &TenantId,
    limit: usize,
) -> Result<Vec<ThreadStorage>, StoreError> {
    // The size of the texts orders them: it is in their rows.
    let sql = format!(
        "SELECT {THREAD} FROM (SELECT * FROM thread_threads WHERE tenant = $1 ORDER BY bytes DESC, no LIMIT $2) t
         ORDER BY t.bytes DESC, t.no"
    );
    let (tenant, limit) = (stored(tenant.as_str()), int(limit as u64));
    let values: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&limit, Type::INT8)];
    let rows = conn.query(&sql, &values).await?;
    rows.iter().map(thread).collect()
}

pub(super) async fn of_thread(conn: &Conn, id: &ThreadId) -> Result<ThreadStorage, StoreError> {
    let no = number(conn, id).await?;
    let sql = format!("SELECT {THREAD} FROM thread_threads t WHERE t.no = $1");
    let row = conn.first(&sql, &[(&no, Type::INT8)]).await?;
    let mut found = thread(&row.ok_or(StoreError::NotFound)?)?;
    let texts = &mut found.texts;
    let with = |_, decoded: crate::block::Decoded<'_>| {
        let text = decoded.text();
        let text = text.map_err(|fault| StoreError::Damaged(fault.to_string()))?;
        *texts.entry(kind_of_event(&decoded.event)).or_insert(0) += text.len() as u64;
        Ok(ControlFlow::Continue(()))
    };
    let log = Log::Numbered(no);
    log.read(conn, Seq(1), Filter::All, Log::chunk_for(usize::MAX), with)
        .await?;
    Ok(found)
}
