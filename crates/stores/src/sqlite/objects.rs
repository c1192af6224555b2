//! The sidecar objects of tenants: one row per object, and one row per content.

use super::SqliteStore;
use super::append;
use super::blocks::Sum;
use super::error::{failed, statement};
use super::sums::{self, Summing, changed};
use super::usage;
use super::value::{count, instant, int, nanos};
use crate::durable::StoreFault;
use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;
use store::objects::{NewObject, ObjectPage, ObjectTable, SidecarObject, sha256};
use store::{Quotas, StorageUsage, StoreError, TenantId};

impl ObjectTable for SqliteStore {
    fn put<'a>(
        &'a self,
        tenant: &'a TenantId,
        object: NewObject,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let tenant = tenant.clone();
        Box::pin(async move {
            let writer = self.writer()?;
            let (object, hash) = hashed(object).await?;
            let (bytes, quotas) = (size(&object), self.quotas.clone());
            let put = move |conn: &Connection| put(conn, &tenant, &object, hash, &quotas);
            let has_replaced = writer.run_deleting(bytes, put, |it| *it).await;
            has_replaced.map(drop)
        })
    }

    fn replace<'a>(
        &'a self,
        tenant: &'a TenantId,
        before: &'a SidecarObject,
        object: NewObject,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (tenant, before) = (tenant.clone(), before.clone());
        Box::pin(async move {
            let writer = self.writer()?;
            let (object, hash) = hashed(object).await?;
            let (bytes, quotas) = (size(&object), self.quotas.clone());
            let replace = move |conn: &Connection| {
                let key = Key::of(&tenant, &object.kind, &object.id);
                let is_as_before = get(conn, &key)?.as_ref() == Some(&before);
                if is_as_before {
                    put(conn, &tenant, &object, hash, &quotas)?;
                }
                Ok(is_as_before)
            };
            writer.run_deleting(bytes, replace, |it| *it).await
        })
    }

    fn get<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<SidecarObject>, StoreError>> {
        let key = Key::of(tenant, kind, id);
        Box::pin(self.readers.run(move |conn| get(conn, &key)))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        page: ObjectPage,
    ) -> BoxFuture<'a, Result<Vec<SidecarObject>, StoreError>> {
        let (tenant, kind) = (tenant.clone(), kind.to_owned());
        Box::pin(
            self.readers
                .run(move |conn| list(conn, &tenant, kind, page)),
        )
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
        as_read: Option<&'a SidecarObject>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (key, as_read) = (Key::of(tenant, kind, id), as_read.cloned());
        let delete = move |conn: &Connection| {
            let is_as_read = as_read.is_none() || get(conn, &key)? == as_read;
            Ok(is_as_read && delete(conn, &key)?)
        };
        Box::pin(async move { self.writer()?.run_deleting(0, delete, |it| *it).await })
    }

    fn content<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        let key = Key::of(tenant, kind, id);
        Box::pin(self.readers.run(move |conn| content(conn, &key)))
    }
}

/// Which object.
struct Key {
    tenant: TenantId,
    kind: String,
    id: String,
}

impl Key {
    fn of(tenant: &TenantId, kind: &str, id: &str) -> Self {
        Self {
            tenant: tenant.clone(),
            kind: kind.to_owned(),
            id: id.to_owned(),
        }
    }

    fn columns(&self) -> [&str; 3] {
        [self.tenant.as_str(), &self.kind, &self.id]
    }
}

const OBJECT: &str = "SELECT o.id, o.created_at, o.json, octet_length(c.content), c.sha256,
                             o.tenant, o.kind, o.thread_no, o.sum
                      FROM tenant_objects o LEFT JOIN tenant_contents c ON c.no = o.content_no";

/// The size of an object, in bytes.
fn size(object: &NewObject) -> usize {
    object.json.len() + object.content.as_ref().map_or(0, Vec::len)
}

// A long content takes a while: the thread of whoever asks goes on with other things.
async fn hashed(object: NewObject) -> Result<(NewObject, Option<[u8; 32]>), StoreError> {
    if object.content.is_none() {
        return Ok((object, None));
    }
    let hash = move || {
        let hash = object.content.as_deref().map(sha256);
        (object, hash)
    };
    tokio::task::spawn_blocking(hash).await.map_err(failed)
}

/// Whether another object was replaced.
fn put(
    conn: &Connection,
    tenant: &TenantId,
    object: &NewObject,
    hash: Option<[u8; 32]>,
    quotas: &Quotas,
) -> Result<bool, StoreError> {
    let key = Key::of(tenant, &object.kind, &object.id);
    let thread = object.thread.as_ref();
    let thread = thread.map(|thread| append::owner_of(conn, tenant, thread));
    let thread = thread.transpose()?;
    let before_usage = usage::of(conn, tenant)?;
    let before = content_no(conn, &key)?;
    let content = match (&object.content, hash) {
        (Some(content), Some(hash)) => Some(kept(conn, tenant, content, hash)?),
        _ => None,
    };
    let sql = "INSERT INTO tenant_objects
                   (tenant, kind, id, created_at, content_no, json, thread_no, sum)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
               ON CONFLICT (tenant, kind, id) DO UPDATE SET
                   created_at = ?4, content_no = ?5, json = ?6, thread_no = ?7, sum = ?8";
    let mut insert = conn.prepare_cached(sql).map_err(statement)?;
    let values = params![
        tenant.as_str(),
        object.kind,
        object.id,
        nanos(object.created_at),
        content,
        object.json,
        thread,
        Summed {
            created_at: nanos(object.created_at),
            json: &object.json,
            content: hash.zip(object.content.as_ref().map(|it| int(it.len() as u64))),
            thread,
        }
        .sum(&key),
    ];
    insert.execute(values).map_err(statement)?;
    forget(conn, before.flatten())?;
    if object.is_limited {
        check(conn, tenant, before_usage, quotas)?;
    }
    Ok(before.is_some())
}

/// Refuses an object with which its tenant stores more than before and more than it may.
fn check(
    conn: &Connection,
    tenant: &TenantId,
    before: StorageUsage,
    quotas: &Quotas,
) -> Result<(), StoreError> {
    let after = usage::of(conn, tenant)?;
    if after.files > before.files {
        quotas.check_file(tenant, before)?;
    }
    if after.bytes > before.bytes {
        quotas.check_bytes(tenant, after, 0)?;
    }
    Ok(())
}

/// The row of the tenant's content with this hash, which is made if need be.
fn kept(
    conn: &Connection,
    tenant: &TenantId,
    content: &[u8],
    hash: [u8; 32],
) -> Result<i64, StoreError> {
    let sql = "SELECT no FROM tenant_contents WHERE tenant = ?1 AND sha256 = ?2";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row(params![tenant.as_str(), hash], |row| row.get(0));
    if let Some(no) = found.optional().map_err(statement)? {
        return Ok(no);
    }
    let sql = "INSERT INTO tenant_contents (tenant, sha256, content) VALUES (?1, ?2, ?3)";
    let mut insert = conn.prepare_cached(sql).map_err(statement)?;
    insert
        .insert(params![tenant.as_str(), hash, content])
        .map_err(statement)
}

/// Deletes a content that no object has any more.
fn forget(conn: &Connection, content: Option<i64>) -> Result<(), StoreError> {
    let Some(no) = content else { return Ok(()) };
    let sql = "DELETE FROM tenant_contents
               WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM tenant_objects WHERE content_no = ?1)";
    let mut delete = conn.prepare_cached(sql).map_err(statement)?;
    delete.execute([no]).map_err(statement)?;
    Ok(())
}

// The row of an object's content. The outer `None` is no object, the inner one an object without content.
#[expect(
    clippy::option_option,
    reason = "no object and no content are not the same"
)]
fn content_no(conn: &Connection, key: &Key) -> Result<Option<Option<i64>>, StoreError> {
    let sql = "SELECT content_no FROM tenant_objects WHERE tenant = ?1 AND kind = ?2 AND id = ?3";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row(key.columns(), |row| row.get(0));
    found.optional().map_err(statement)
}

fn get(conn: &Connection, key: &Key) -> Result<Option<SidecarObject>, StoreError> {
    let sql = format!("{OBJECT} WHERE o.tenant = ?1 AND o.kind = ?2 AND o.id = ?3");
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row(key.columns(), |row| Ok(object(row, Some(key))));
    found.optional().map_err(statement)?.transpose()
}

fn list(
    conn: &Connection,
    tenant: &TenantId,
    kind: String,
    page: ObjectPage,
) -> Result<Vec<SidecarObject>, StoreError> {
    let (beyond, order) = if page.newest_first {
        ("<", "DESC")
    } else {
        (">", "ASC")
    };
    let limit = int(page.limit as u64);
    let sql = |bound: &str| {
        format!(
            "{OBJECT} WHERE o.tenant = ?1 AND o.kind = ?2 {bound}
             ORDER BY o.created_at {order}, o.id {order} LIMIT ?3"
        )
    };
    let of = Key::of(tenant, &kind, "");
    let read = |row: &Row<'_>| Ok(object(row, Some(&of)));
    let after = match (page.beyond, page.after) {
        (Some(beyond), _) => Some(beyond),
        (None, Some(id)) => match get(conn, &Key::of(tenant, &kind, &id))? {
            Some(found) => Some((found.created_at, id)),
            None => return Err(StoreError::NoSuchObject { kind, id }),
        },
        (None, None) => None,
    };
    let Some((created_at, id)) = after else {
        let mut select = conn.prepare_cached(&sql("")).map_err(statement)?;
        let rows = select.query_map(params![tenant.as_str(), kind, limit], read);
        return all(rows.map_err(statement)?);
    };
    let bound = format!("AND (o.created_at, o.id) {beyond} (?4, ?5)");
    let mut select = conn.prepare_cached(&sql(&bound)).map_err(statement)?;
    let values = params![tenant.as_str(), kind, limit, nanos(created_at), id];
    all(select.query_map(values, read).map_err(statement)?)
}

fn all(
    rows: impl Iterator<Item = rusqlite::Result<Result<SidecarObject, StoreError>>>,
) -> Result<Vec<SidecarObject>, StoreError> {
    rows.map(|row| row.map_err(statement)?).collect()
}

fn delete(conn: &Connection, key: &Key) -> Result<bool, StoreError> {
    let content = content_no(conn, key)?;
    let sql = "DELETE FROM tenant_objects WHERE tenant = ?1 AND kind = ?2 AND id = ?3";
    let mut delete = conn.prepare_cached(sql).map_err(statement)?;
    let n_deleted = delete.execute(key.columns()).map_err(statement)?;
    forget(conn, content.flatten())?;
    Ok(n_deleted > 0)
}

/// Deletes at most this number of objects of a tenant. Returns how many.
pub(super) fn delete_some(
    conn: &Connection,
    tenant: &TenantId,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "SELECT kind, id FROM tenant_objects WHERE tenant = ?1 LIMIT ?2";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let keys = select.query_map(params![tenant.as_str(), limit], |row| {
        let (kind, id): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(Key::of(tenant, &kind, &id))
    });
    let keys = keys.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let keys = keys.map_err(statement)?;
    for key in &keys {
        delete(conn, key)?;
    }
    Ok(keys.len() as u64)
}

/// Deletes the sidecar objects of a thread, by the thread's number. The cost grows with their number.
pub(super) fn delete_sidecars(conn: &Connection, thread: i64) -> Result<(), StoreError> {
    let sql = "DELETE FROM tenant_objects WHERE thread_no = ?1 RETURNING content_no";
    let mut delete = conn.prepare_cached(sql).map_err(statement)?;
    let rows = delete
        .query_map([thread], |row| row.get(0))
        .map_err(statement)?;
    for content in rows.collect::<Result<Vec<_>, _>>().map_err(statement)? {
        forget(conn, content)?;
    }
    Ok(())
}

fn content(conn: &Connection, key: &Key) -> Result<Option<Arc<[u8]>>, StoreError> {
    let Some(object) = get(conn, key)? else {
        return Ok(None);
    };
    let Some(hash) = object.sha256 else {
        return Ok(None);
    };
    let sql = "SELECT c.content FROM tenant_objects o JOIN tenant_contents c ON c.no = o.content_no
               WHERE o.tenant = ?1 AND o.kind = ?2 AND o.id = ?3";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row(key.columns(), |row| {
        Ok(Arc::<[u8]>::from(row.get_ref(0)?.as_blob()?))
    });
    let content = found.optional().map_err(statement)?;
    if content
        .as_ref()
        .is_some_and(|content| sha256(content) == hash)
    {
        Ok(content)
    } else {
        Err(changed(&format!("the content of {} {}", key.kind, key.id)))
    }
}

/// The input of an object's sum, without its key.
struct Summed<'a> {
    created_at: i64,
    json: &'a str,
    /// The hash and the length of its content.
    content: Option<([u8; 32], i64)>,
    /// The number of its thread, if it belongs to one.
    thread: Option<i64>,
}

impl Summed<'_> {
    fn sum(&self, key: &Key) -> Sum {
        Summing::of("tenant_objects")
            .text(key.tenant.as_str())
            .text(&key.kind)
            .text(&key.id)
            .int(self.created_at)
            .optional(self.content, |to, (hash, length)| {
                to.bytes(&hash).int(length)
            })
            .optional(self.thread, Summing::int)
            .text(self.json)
            .end()
    }
}

/// The columns of [`OBJECT`]: the key, the object, the sum that it has and the one that it should have.
struct Read {
    key: Key,
    object: SidecarObject,
    stored: Option<Sum>,
    sum: Sum,
}

fn parse(row: &Row<'_>) -> Result<Read, StoreError> {
    let bytes: Option<i64> = row.get(3).map_err(statement)?;
    let created_at = row.get(1).map_err(statement)?;
    let tenant: String = row.get(5).map_err(statement)?;
    let kind: String = row.get(6).map_err(statement)?;
    let object = SidecarObject {
        id: row.get(0).map_err(statement)?,
        created_at: instant(created_at)?,
        json: row.get(2).map_err(statement)?,
        bytes: bytes.map(count),
        sha256: row.get(4).map_err(statement)?,
    };
    let key = Key::of(&tenant.as_str().into(), &kind, &object.id);
    let summed = Summed {
        created_at,
        json: &object.json,
        content: object.sha256.zip(bytes),
        thread: row.get(7).map_err(statement)?,
    };
    Ok(Read {
        sum: summed.sum(&key),
        stored: row.get(8).map_err(statement)?,
        key,
        object,
    })
}

/// An object. Refuses a row that has changed, or has another key; an empty id fits every object.
fn object(row: &Row<'_>, of: Option<&Key>) -> Result<SidecarObject, StoreError> {
    let Read {
        key,
        object,
        stored,
        sum,
    } = parse(row)?;
    let is_meant = of.is_none_or(|of| {
        of.tenant == key.tenant && of.kind == key.kind && (of.id.is_empty() || of.id == key.id)
    });
    if is_meant && stored == Some(sum) {
        Ok(object)
    } else {
        Err(changed(&format!("{} {}", key.kind, key.id)))
    }
}

/// Adds the objects that are not what was written.
pub(super) fn check_all(conn: &Connection, found: &mut Vec<StoreFault>) -> Result<(), StoreError> {
    let sql = format!("{OBJECT} ORDER BY o.no");
    let mut select = conn.prepare(&sql).map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        if let Err(fault) = object(row, None) {
            let tenant: String = row.get(5).map_err(statement)?;
            let (kind, id): (String, String) = (
                row.get(6).map_err(statement)?,
                row.get(0).map_err(statement)?,
            );
            let object = format!("tenant {tenant}, {kind} {id}");
            found.push(StoreFault::of_object(object, sums::damage(fault)));
        }
    }
    Ok(())
}

/// Adds sums to the objects of an older store.
pub(super) fn seal_all(conn: &Connection) -> Result<(), StoreError> {
    let sql = "SELECT no FROM tenant_objects ORDER BY no";
    let mut select = conn.prepare(sql).map_err(statement)?;
    let numbers = select.query_map([], |row| row.get::<_, i64>(0));
    let numbers: Vec<_> = numbers.and_then(Iterator::collect).map_err(statement)?;
    numbers.into_iter().try_for_each(|no| seal(conn, no))
}

/// Adds the sum to the object with this number.
pub(super) fn seal(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let sql = format!("{OBJECT} WHERE o.no = ?1");
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let read = select.query_row([no], |row| Ok(parse(row)));
    let sum = read.map_err(statement)??.sum;
    let sql = "UPDATE tenant_objects SET sum = ?2 WHERE no = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    update.execute(params![no, sum]).map_err(statement)?;
    Ok(())
}
