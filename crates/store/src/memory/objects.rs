//! Objects in memory.

use super::MemoryStore;
use super::stored::StoredThread;
use crate::objects::{NewObject, ObjectPage, ObjectTable, SidecarObject, sha256};
use crate::{LimitReached, StorageUsage, StoreError, TenantId};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use timeline::ThreadId;

/// The tenants' objects, and their contents by hash.
#[derive(Debug, Default)]
pub(super) struct Objects {
    kinds: BTreeMap<(TenantId, String), Kind>,
    contents: BTreeMap<(TenantId, [u8; 32]), Content>,
    /// The sidecar objects of each thread that has some, by kind and id.
    beside: BTreeMap<ThreadId, BTreeSet<(String, String)>>,
    /// The thread of each sidecar object that has one.
    threads: BTreeMap<(TenantId, String, String), ThreadId>,
    /// The bytes and the files of each tenant.
    usage: BTreeMap<TenantId, StorageUsage>,
}

/// The objects of one kind.
#[derive(Debug, Default)]
struct Kind {
    by_id: BTreeMap<String, SidecarObject>,
    by_age: BTreeSet<(Timestamp, String)>,
}

#[derive(Debug)]
struct Content {
    bytes: Arc<[u8]>,
    n_objects: usize,
}

impl Objects {
    fn put(&mut self, tenant: &TenantId, new: NewObject) {
        let NewObject {
            kind,
            id,
            created_at,
            json,
            content,
            thread,
            is_limited: _,
        } = new;
        self.part(tenant, &kind, &id);
        if let Some(thread) = thread {
            let beside = self.beside.entry(thread.clone()).or_default();
            beside.insert((kind.clone(), id.clone()));
            let key = (tenant.clone(), kind.clone(), id.clone());
            self.threads.insert(key, thread);
        }
        let hash = content.as_deref().map(sha256);
        let object = SidecarObject {
            id: id.clone(),
            created_at,
            json,
            bytes: content.as_ref().map(|content| content.len() as u64),
            sha256: hash,
        };
        if let (Some(content), Some(hash)) = (content, hash) {
            let bytes = content.len() as u64;
            let kept = self.contents.entry((tenant.clone(), hash));
            let kept = kept.or_insert_with(|| Content {
                bytes: content.into(),
                n_objects: 0,
            });
            kept.n_objects += 1;
            let usage = self.usage.entry(tenant.clone()).or_default();
            usage.files += 1;
            if kept.n_objects == 1 {
                usage.bytes += bytes;
            }
        }
        self.usage.entry(tenant.clone()).or_default().bytes += object.json.len() as u64;
        let objects = self.kinds.entry((tenant.clone(), kind)).or_default();
        objects.by_age.insert((created_at, id.clone()));
        if let Some(before) = objects.by_id.insert(id, object) {
            if before.created_at != created_at {
                objects.by_age.remove(&(before.created_at, before.id));
            }
            self.forget(tenant, &before.json, before.sha256);
        }
    }

    fn get(&self, tenant: &TenantId, kind: &str, id: &str) -> Option<&SidecarObject> {
        self.of(tenant, kind)?.by_id.get(id)
    }

    fn list(
        &self,
        tenant: &TenantId,
        kind: &str,
        page: &ObjectPage,
    ) -> Result<Vec<SidecarObject>, StoreError> {
        let named = page.after.as_ref().filter(|_| page.beyond.is_none());
        let after = named.map(|id| {
            let found = self.get(tenant, kind, id);
            let place = found.map(|object| (object.created_at, object.id.clone()));
            place.ok_or_else(|| StoreError::NoSuchObject {
                kind: kind.to_owned(),
                id: id.clone(),
            })
        });
        let after = after.transpose()?.or_else(|| page.beyond.clone());
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let Some(objects) = self.of(tenant, kind) else {
            return Ok(Vec::new());
        };
        let object = |(_, id): &(Timestamp, String)| objects.by_id.get(id).cloned();
        let found = if page.newest_first {
            let older = objects.by_age.range((Bound::Unbounded, after)).rev();
            older.filter_map(object).take(page.limit).collect()
        } else {
            let younger = objects.by_age.range((after, Bound::Unbounded));
            younger.filter_map(object).take(page.limit).collect()
        };
        Ok(found)
    }

    fn delete(&mut self, tenant: &TenantId, kind: &str, id: &str) -> bool {
        let key = (tenant.clone(), kind.to_owned());
        let found = self.kinds.get_mut(&key).and_then(|objects| {
            let object = objects.by_id.remove(id)?;
            objects.by_age.remove(&(object.created_at, id.to_owned()));
            Some(object)
        });
        let Some(object) = found else { return false };
        self.part(tenant, kind, id);
        self.forget(tenant, &object.json, object.sha256);
        true
    }

    /// Deletes the sidecar objects of a thread of this tenant.
    pub(super) fn delete_sidecars(&mut self, tenant: &TenantId, thread: &ThreadId) {
        for (kind, id) in self.beside.remove(thread).unwrap_or_default() {
            self.delete(tenant, &kind, &id);
        }
    }

    /// Detaches an object from its thread.
    fn part(&mut self, tenant: &TenantId, kind: &str, id: &str) {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        let key = (tenant.clone(), kind.clone(), id.clone());
        let Some(thread) = self.threads.remove(&key) else {
            return;
        };
        if let Some(beside) = self.beside.get_mut(&thread) {
            beside.remove(&(kind, id));
            if beside.is_empty() {
                self.beside.remove(&thread);
            }
        }
    }

    fn content(&self, tenant: &TenantId, kind: &str, id: &str) -> Option<Arc<[u8]>> {
        let hash = self.get(tenant, kind, id)?.sha256?;
        let content = self.contents.get(&(tenant.clone(), hash))?;
        Some(Arc::clone(&content.bytes))
    }

    fn of(&self, tenant: &TenantId, kind: &str) -> Option<&Kind> {
        self.kinds.get(&(tenant.clone(), kind.to_owned()))
    }

    // One object less has the content.
    fn forget(&mut self, tenant: &TenantId, json: &str, hash: Option<[u8; 32]>) {
        let usage = self.usage.entry(tenant.clone()).or_default();
        usage.bytes -= json.len() as u64;
        let Some(key) = hash.map(|hash| (tenant.clone(), hash)) else {
            return;
        };
        usage.files -= 1;
        if let Some(content) = self.contents.get_mut(&key) {
            content.n_objects -= 1;
            if content.n_objects == 0 {
                usage.bytes -= content.bytes.len() as u64;
                self.contents.remove(&key);
            }
        }
    }

    pub(super) fn tenants(&self) -> impl Iterator<Item = &TenantId> {
        self.usage.keys()
    }

    pub(super) fn usage_of(&self, tenant: &TenantId) -> StorageUsage {
        self.usage.get(tenant).copied().unwrap_or_default()
    }
}

impl StoredThread {
    /// Stores an object. Fails if it belongs to a thread that does not exist.
    fn put(&mut self, tenant: &TenantId, object: NewObject) -> Result<(), StoreError> {
        if let Some(thread) = &object.thread
            && self.log(thread)?.tenant != *tenant
        {
            return Err(StoreError::NotFound);
        }
        if object.is_limited {
            self.check(tenant, &object)?;
        }
        self.objects.put(tenant, object);
        Ok(())
    }

    /// Refuses an object for which the tenant has no space.
    fn check(&self, tenant: &TenantId, object: &NewObject) -> Result<(), LimitReached> {
        let usage = self.usage_of(tenant);
        let before = self.objects.get(tenant, &object.kind, &object.id);
        let before_bytes = before.map_or(0, |it| it.json.len() as u64 + it.bytes.unwrap_or(0));
        let content = object.content.as_ref();
        let bytes = object.json.len() as u64 + content.map_or(0, |it| it.len() as u64);
        if content.is_some() && before.is_none_or(|it| it.bytes.is_none()) {
            self.quotas.check_file(tenant, usage)?;
        }
        match bytes.saturating_sub(before_bytes) {
            0 => Ok(()),
            more => self.quotas.check_bytes(tenant, usage, more),
        }
    }
}

impl ObjectTable for MemoryStore {
    fn put<'a>(
        &'a self,
        tenant: &'a TenantId,
        object: NewObject,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.with(|kept| kept.put(tenant, object)) })
    }

    fn replace<'a>(
        &'a self,
        tenant: &'a TenantId,
        before: &'a SidecarObject,
        object: NewObject,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                let found = kept.objects.get(tenant, &object.kind, &object.id);
                let is_as_before = found == Some(before);
                if is_as_before {
                    kept.put(tenant, object)?;
                }
                Ok(is_as_before)
            })
        })
    }

    fn get<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<SidecarObject>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.objects.get(tenant, kind, id).cloned())) })
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        page: ObjectPage,
    ) -> BoxFuture<'a, Result<Vec<SidecarObject>, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.objects.list(tenant, kind, &page)) })
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
        as_read: Option<&'a SidecarObject>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                let is_as_read = as_read.is_none() || kept.objects.get(tenant, kind, id) == as_read;
                Ok(is_as_read && kept.objects.delete(tenant, kind, id))
            })
        })
    }

    fn content<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.objects.content(tenant, kind, id))) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, id: &str, content: Option<&[u8]>) -> NewObject {
        NewObject {
            kind: kind.into(),
            id: id.into(),
            created_at: Timestamp::UNIX_EPOCH,
            json: "{}".into(),
            content: content.map(<[u8]>::to_vec),
            thread: None,
            is_limited: true,
        }
    }

    #[test]
    fn a_content_is_kept_once_and_goes_with_the_last_object() {
        let mut objects = Objects::default();
        let tenant = TenantId::from("acme");
        objects.put(&tenant, object("file", "a", Some(b"x")));
        objects.put(&tenant, object("note", "b", Some(b"x")));
        objects.put(&tenant, object("file", "a", Some(b"x")));
        assert_eq!(objects.contents.len(), 1);
        objects.put(&tenant, object("file", "a", Some(b"y")));
        assert_eq!(objects.contents.len(), 2);
        objects.put(&tenant, object("file", "a", None));
        assert!(objects.delete(&tenant, "note", "b"));
        assert_eq!(objects.contents.len(), 0);
    }
}
