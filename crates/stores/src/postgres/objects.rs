//! The sidecar objects of tenants: one row per object, and one row per content.

use super::PostgresStore;
use super::batch::USAGE;
use super::connection::Conn;
use super::error::is_overtaken;
use super::pool::Isolation;
use super::usage;
use super::value::{Param, get, stored, text};
use crate::value::{count, instant, int, nanos};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use store::objects::{NewObject, ObjectPage, ObjectTable, SidecarObject, sha256};
use store::{Quotas, StorageLimits, StoreError, TenantId};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// How often a change is done again that other transactions are in the way of.
const TRIES: usize = 20;

/// The tables that lose rows with an object.
const TABLES: [&str; 2] = ["tenant_objects", "tenant_contents"];

impl ObjectTable for PostgresStore {
    fn put<'a>(
        &'a self,
        tenant: &'a TenantId,
        object: NewObject,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.noting(async move { self.store(tenant, None, object).await.map(drop) })
    }

    fn replace<'a>(
        &'a self,
        tenant: &'a TenantId,
        before: &'a SidecarObject,
        object: NewObject,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.noting(self.store(tenant, Some(before), object))
    }

    fn get<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<SidecarObject>, StoreError>> {
        self.noting(async move {
            let conn = self.pool.get().await?;
            let found = find(&conn, &Key::of(tenant, kind, id), "").await?;
            Ok(found.map(|found| found.object))
        })
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        page: ObjectPage,
    ) -> BoxFuture<'a, Result<Vec<SidecarObject>, StoreError>> {
        self.noting(async move { list(&*self.pool.get().await?, tenant, kind, page).await })
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
        as_read: Option<&'a SidecarObject>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.noting(async move {
            let key = Key::of(tenant, kind, id);
            let mut tries = 0;
            loop {
                let conn = self.pool.begin(Isolation::Write).await?;
                let deleted = delete(&conn, &key, as_read).await;
                match conn.end(deleted).await {
                    Ok(is_deleted) => {
                        if is_deleted {
                            self.deleted.note(&TABLES);
                        }
                        return Ok(is_deleted);
                    }
                    Err(error) if tries < TRIES && is_race(&error) => tries += 1,
                    Err(error) => return Err(error),
                }
            }
        })
    }

    fn content<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        self.noting(async move {
            let sql = "SELECT c.content, c.sha256 FROM tenant_objects o JOIN tenant_contents c ON c.no = o.content_no
                       WHERE o.tenant = $1 AND o.kind = $2 AND o.id = $3";
            let key = Key::of(tenant, kind, id);
            let row = self.pool.get().await?.first(sql, &key.values()).await?;
            let Some(row) = row else {
                return Ok(None);
            };
            let (content, hash): (&[u8], &[u8]) = (get(&row, 0)?, get(&row, 1)?);
            if sha256(content) == hash {
                return Ok(Some(content.into()));
            }
            Err(StoreError::Damaged(format!(
                "the content of {kind} {id} is not what was written: its sum is another"
            )))
        })
    }
}

/// Whether another transaction was in the way, also by storing the same content or object first.
fn is_race(error: &StoreError) -> bool {
    is_overtaken(error) || matches!(error, StoreError::Duplicate(_))
}

impl PostgresStore {
    /// Stores an object, if the one before still equals `before`. Returns whether it did.
    async fn store(
        &self,
        tenant: &TenantId,
        before: Option<&SidecarObject>,
        object: NewObject,
    ) -> Result<bool, StoreError> {
        let hash = object.content.as_deref().map(sha256);
        let mut tries = 0;
        loop {
            let conn = self.pool.begin(Isolation::Write).await?;
            let done = put(&conn, tenant, before, &object, hash, &self.quotas).await;
            match conn.end(done).await {
                Ok(done) => {
                    if done == Some(Put::Replaced) {
                        self.deleted.note(&TABLES);
                    }
                    return Ok(done.is_some());
                }
                Err(error) if tries < TRIES && is_race(&error) => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Which object.
struct Key {
    tenant: String,
    kind: String,
    id: String,
}

impl Key {
    fn of(tenant: &TenantId, kind: &str, id: &str) -> Self {
        Self {
            tenant: stored(tenant.as_str()).into_owned(),
            kind: stored(kind).into_owned(),
            id: stored(id).into_owned(),
        }
    }

    fn values(&self) -> [Param<'_>; 3] {
        [
            (&self.tenant, Type::TEXT),
            (&self.kind, Type::TEXT),
            (&self.id, Type::TEXT),
        ]
    }
}

const OBJECT: &str = "SELECT o.id, o.created_at, o.json, octet_length(c.content)::bigint, c.sha256, o.no, o.content_no
    FROM tenant_objects o LEFT JOIN tenant_contents c ON c.no = o.content_no";

/// An object, with the numbers of its row and its content.
struct Found {
    object: SidecarObject,
    no: i64,
    content_no: Option<i64>,
}

fn found(row: &Row) -> Result<Found, StoreError> {
    let bytes: Option<i64> = get(row, 3)?;
    let hash: Option<&[u8]> = get(row, 4)?;
    Ok(Found {
        object: SidecarObject {
            id: text(row, 0)?,
            created_at: instant(get(row, 1)?)?,
            json: text(row, 2)?,
            bytes: bytes.map(count),
            sha256: hash.and_then(|hash| hash.try_into().ok()),
        },
        no: get(row, 5)?,
        content_no: get(row, 6)?,
    })
}

async fn find(conn: &Conn, key: &Key, lock: &str) -> Result<Option<Found>, StoreError> {
    let sql = format!("{OBJECT} WHERE o.tenant = $1 AND o.kind = $2 AND o.id = $3 {lock}");
    let row = conn.first(&sql, &key.values()).await?;
    row.map(|row| found(&row)).transpose()
}

/// Finds an object and holds it until the transaction ends.
async fn lock(conn: &Conn, key: &Key) -> Result<Option<Found>, StoreError> {
    find(conn, key, "FOR UPDATE OF o").await
}

/// How an object was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Put {
    New,
    Replaced,
}

/// Stores an object; `None` if the one before is another one.
async fn put(
    conn: &Conn,
    tenant: &TenantId,
    as_read: Option<&SidecarObject>,
    object: &NewObject,
    hash: Option<[u8; 32]>,
    quotas: &Quotas,
) -> Result<Option<Put>, StoreError> {
    let key = Key::of(tenant, &object.kind, &object.id);
    let before = lock(conn, &key).await?;
    if let Some(as_read) = as_read
        && before.as_ref().map(|it| &it.object) != Some(as_read)
    {
        return Ok(None);
    }
    let thread = match &object.thread {
        Some(thread) => Some(owned(conn, tenant, thread.as_str()).await?),
        None => None,
    };
    if object.is_limited && quotas.of(tenant) != StorageLimits::default() {
        usage::hold(conn, &[tenant]).await?;
    }
    let before_usage = usage::of(conn, tenant).await?;
    let mut change = Change::default();
    let content = match (&object.content, hash) {
        (Some(content), Some(hash)) => {
            Some(keep(conn, &key.tenant, content, hash, &mut change).await?)
        }
        _ => None,
    };
    let sql =
        "INSERT INTO tenant_objects (tenant, kind, id, created_at, content_no, json, thread_no)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (tenant, kind, id) DO UPDATE SET
                   created_at = $4, content_no = $5, json = $6, thread_no = $7";
    let created_at = nanos(object.created_at);
    let json = stored(&object.json);
    let [tenant_value, kind, id] = key.values();
    let values: [Param<'_>; 7] = [
        tenant_value,
        kind,
        id,
        (&created_at, Type::INT8),
        (&content, Type::INT8),
        (&json, Type::TEXT),
        (&thread, Type::INT8),
    ];
    if before.is_none() {
        // Of two that store the same object first, one begins again and finds that of the other.
        let sql = sql.split("ON CONFLICT").next().unwrap_or(sql);
        conn.execute(sql, &values).await?;
    } else {
        conn.execute(sql, &values).await?;
    }
    let size = |json: &str| int(json.len() as u64);
    change.bytes += size(&object.json) - before.as_ref().map_or(0, |it| size(&it.object.json));
    let had_file = before.as_ref().is_some_and(|it| it.content_no.is_some());
    change.files += i64::from(content.is_some()) - i64::from(had_file);
    let put = before.as_ref().map_or(Put::New, |_| Put::Replaced);
    let replaced = before.and_then(|it| it.content_no);
    forget(conn, replaced, &mut change).await?;
    if object.is_limited {
        if change.files > 0 {
            quotas.check_file(tenant, before_usage)?;
        }
        if let Ok(more @ 1..) = u64::try_from(change.bytes) {
            quotas.check_bytes(tenant, before_usage, more)?;
        }
    }
    change.note(conn, &key.tenant).await?;
    Ok(Some(put))
}

/// The number of the tenant's thread with this id. It stays until the transaction ends.
async fn owned(conn: &Conn, tenant: &TenantId, thread: &str) -> Result<i64, StoreError> {
    let sql = "SELECT no FROM thread_threads WHERE id = $1 AND tenant = $2 FOR KEY SHARE";
    let (thread, tenant) = (stored(thread), stored(tenant.as_str()));
    let values: [Param<'_>; 2] = [(&thread, Type::TEXT), (&tenant, Type::TEXT)];
    let row = conn.first(sql, &values).await?;
    get(&row.ok_or(StoreError::NotFound)?, 0)
}

/// A change of a tenant's usage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    pub(super) threads: i64,
    pub(super) bytes: i64,
    pub(super) files: i64,
}

impl Change {
    /// Adds the change to the tenant's usage.
    pub(super) async fn note(self, conn: &Conn, tenant: &str) -> Result<(), StoreError> {
        let tenants = [tenant];
        let shards = [fastrand::i16(0..16)];
        let (threads, bytes, files) = ([self.threads], [self.bytes], [self.files]);
        let values: [Param<'_>; 5] = [
            (&tenants.as_slice(), Type::TEXT_ARRAY),
            (&shards.as_slice(), Type::INT2_ARRAY),
            (&threads.as_slice(), Type::INT8_ARRAY),
            (&bytes.as_slice(), Type::INT8_ARRAY),
            (&files.as_slice(), Type::INT8_ARRAY),
        ];
        conn.execute(USAGE, &values).await
    }
}

/// The row of the tenant's content with this hash, which is made if need be.
async fn keep(
    conn: &Conn,
    tenant: &str,
    content: &[u8],
    hash: [u8; 32],
    change: &mut Change,
) -> Result<i64, StoreError> {
    let hash = hash.as_slice();
    // It must not be deleted with another object that has it.
    let sql = "SELECT no FROM tenant_contents WHERE tenant = $1 AND sha256 = $2 FOR KEY SHARE";
    let values: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&hash, Type::BYTEA)];
    if let Some(row) = conn.first(sql, &values).await? {
        return get(&row, 0);
    }
    let sql =
        "INSERT INTO tenant_contents (tenant, sha256, content) VALUES ($1, $2, $3) RETURNING no";
    let values: [Param<'_>; 3] = [
        (&tenant, Type::TEXT),
        (&hash, Type::BYTEA),
        (&content, Type::BYTEA),
    ];
    let row = conn.first(sql, &values).await?;
    change.bytes += int(content.len() as u64);
    get(&row.ok_or(StoreError::NotFound)?, 0)
}

/// Deletes a content that no object has any more.
async fn forget(conn: &Conn, content: Option<i64>, change: &mut Change) -> Result<(), StoreError> {
    let Some(no) = content else { return Ok(()) };
    // Whoever adds an object with the content holds it. After that, the object is seen.
    let sql = "SELECT no FROM tenant_contents WHERE no = $1 FOR UPDATE";
    conn.execute(sql, &[(&no, Type::INT8)]).await?;
    let sql = "DELETE FROM tenant_contents
               WHERE no = $1 AND NOT EXISTS (SELECT 1 FROM tenant_objects WHERE content_no = $1)
               RETURNING octet_length(content)::bigint";
    if let Some(row) = conn.first(sql, &[(&no, Type::INT8)]).await? {
        change.bytes -= get::<i64>(&row, 0)?;
    }
    Ok(())
}

async fn delete(
    conn: &Conn,
    key: &Key,
    as_read: Option<&SidecarObject>,
) -> Result<bool, StoreError> {
    let Some(found) = lock(conn, key).await? else {
        return Ok(false);
    };
    if as_read.is_some_and(|as_read| *as_read != found.object) {
        return Ok(false);
    }
    let sql = "DELETE FROM tenant_objects WHERE no = $1";
    conn.execute(sql, &[(&found.no, Type::INT8)]).await?;
    let mut change = Change {
        bytes: -int(found.object.json.len() as u64),
        files: -i64::from(found.content_no.is_some()),
        ..Change::default()
    };
    forget(conn, found.content_no, &mut change).await?;
    change.note(conn, &key.tenant).await?;
    Ok(true)
}

/// Deletes the sidecar objects of a thread, by the thread's number.
pub(super) async fn delete_sidecars(
    conn: &Conn,
    thread: i64,
    change: &mut Change,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM tenant_objects WHERE thread_no = $1 RETURNING json, content_no";
    let rows = conn.query(sql, &[(&thread, Type::INT8)]).await?;
    forget_objects(conn, &rows, change).await
}

/// Deletes some objects of a tenant. Returns their number.
pub(super) async fn delete_some(conn: &Conn, tenant: &str, limit: i64) -> Result<u64, StoreError> {
    let sql = "DELETE FROM tenant_objects WHERE no IN (
                   SELECT no FROM tenant_objects WHERE tenant = $1 ORDER BY no LIMIT $2 FOR UPDATE)
               RETURNING json, content_no";
    let values: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&limit, Type::INT8)];
    let rows = conn.query(sql, &values).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let mut change = Change::default();
    forget_objects(conn, &rows, &mut change).await?;
    change.note(conn, tenant).await?;
    Ok(rows.len() as u64)
}

/// Counts deleted objects, and deletes their contents.
async fn forget_objects(
    conn: &Conn,
    deleted: &[Row],
    change: &mut Change,
) -> Result<(), StoreError> {
    let mut contents = Vec::new();
    for row in deleted {
        let content: Option<i64> = get(row, 1)?;
        change.bytes -= int(text(row, 0)?.len() as u64);
        change.files -= i64::from(content.is_some());
        contents.extend(content);
    }
    contents.sort_unstable();
    contents.dedup();
    for content in contents {
        forget(conn, Some(content), change).await?;
    }
    Ok(())
}

async fn list(
    conn: &Conn,
    tenant: &TenantId,
    kind: &str,
    page: ObjectPage,
) -> Result<Vec<SidecarObject>, StoreError> {
    let (beyond, order) = if page.newest_first {
        ("<", "DESC")
    } else {
        (">", "ASC")
    };
    let after = match (page.beyond, page.after) {
        (Some((created_at, id)), _) => Some((nanos(created_at), id)),
        (None, Some(id)) => {
            let Some(found) = find(conn, &Key::of(tenant, kind, &id), "").await? else {
                let kind = kind.to_owned();
                return Err(StoreError::NoSuchObject { kind, id });
            };
            Some((nanos(found.object.created_at), id))
        }
        (None, None) => None,
    };
    let bound = match &after {
        Some(_) => format!("AND (o.created_at, o.id) {beyond} ($4, $5)"),
        None => "AND $4::bigint IS NULL AND $5::text IS NULL".to_owned(),
    };
    let sql = format!(
        "{OBJECT} WHERE o.tenant = $1 AND o.kind = $2 {bound}
         ORDER BY o.created_at {order}, o.id {order} LIMIT $3"
    );
    let key = Key::of(tenant, kind, "");
    let limit = int(page.limit as u64);
    let (created_at, id) = after.unzip();
    let id = id.as_deref().map(stored);
    let values: [(&(dyn ToSql + Sync), Type); 5] = [
        (&key.tenant, Type::TEXT),
        (&key.kind, Type::TEXT),
        (&limit, Type::INT8),
        (&created_at, Type::INT8),
        (&id, Type::TEXT),
    ];
    let rows = conn.query(&sql, &values).await?;
    rows.iter().map(|row| Ok(found(row)?.object)).collect()
}
