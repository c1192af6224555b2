//! Tests of the storage usage and its limits.

use super::Subject;
use super::objects::new;
use super::script::{Author, first, keep, script, tenant};
use crate::objects::NewObject;
use crate::{Append, StorageLimits, StorageUsage, Store, StoreError, TenantId};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::NewThread;
use tokio::task::JoinSet;

const NO_LIMITS: StorageLimits = StorageLimits {
    threads: u64::MAX,
    bytes: u64::MAX,
    files: u64::MAX,
};

async fn usage_of(store: &Arc<dyn Store>, tenant: &str) -> StorageUsage {
    let all = store.usage().await.unwrap();
    let all: BTreeMap<TenantId, StorageUsage> = all.into_iter().collect();
    all.get(&tenant.into()).copied().unwrap_or_default()
}

async fn put(store: &Arc<dyn Store>, object: NewObject) -> Result<(), StoreError> {
    store.objects().put(&tenant(), object).await
}

/// The name of the limit that refused it.
fn limit<T>(answer: Result<T, StoreError>) -> Option<&'static str> {
    match answer {
        Err(StoreError::LimitReached(reached)) => Some(reached.name),
        Ok(_) | Err(_) => None,
    }
}

/// Usage counts each tenant's threads, bytes and files, also after reopening, without deleted ones.
pub async fn usage_counts_threads_bytes_and_files(mut subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    author.commit_all(script()).await;
    Author::new(&store, "globex", NewThread::new("u", Some("k"))).await;
    let bytes = store.row(&author.thread).await.unwrap().bytes;
    // The content is shared, and the JSON of each is `{"n":1}`.
    put(&store, new("file", "a", 1, Some(b"12345")))
        .await
        .unwrap();
    put(&store, new("file", "b", 1, Some(b"12345")))
        .await
        .unwrap();
    put(&store, new("note", "c", 1, None)).await.unwrap();
    let json = new("note", "c", 1, None).json.len() as u64;
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    let usage = StorageUsage {
        threads: 1,
        bytes: bytes + 5 + 3 * json,
        files: 2,
    };
    assert_eq!(usage_of(&store, "acme").await, usage);
    assert_eq!(usage_of(&store, "globex").await.threads, 1);

    put(&store, new("file", "a", 1, None)).await.unwrap();
    let objects = store.objects();
    for (kind, id) in [("file", "a"), ("file", "b"), ("note", "c")] {
        assert!(objects.delete(&tenant(), kind, id, None).await.unwrap());
    }
    let beside = NewObject {
        thread: Some("t".into()),
        is_limited: false,
        ..new("file", "d", 1, Some(b"beside"))
    };
    put(&store, beside).await.unwrap();
    store.delete(&tenant(), &"t".into(), None).await.unwrap();
    assert_eq!(usage_of(&store, "acme").await, StorageUsage::default());
}

/// Of 32 concurrent creations, exactly the tenant's limit succeeds.
pub async fn a_tenant_has_no_more_threads_than_its_limit(subject: impl Subject) {
    let store = subject.store();
    let five = StorageLimits {
        threads: 5,
        ..NO_LIMITS
    };
    subject
        .quotas()
        .replace(NO_LIMITS, [(tenant(), five)].into());
    let mut tasks = JoinSet::new();
    for n in 0..32 {
        let store = store.clone();
        tasks.spawn(async move {
            let name = format!("t{n}");
            let thread = NewThread::new(name.as_str(), Some(name.as_str()));
            let first = first(thread, Timestamp::UNIX_EPOCH);
            store.get_or_create(&tenant(), first, None, None).await
        });
    }
    let (made, refused): (Vec<_>, Vec<_>) =
        tasks.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((made.len(), refused.len()), (5, 27));
    for answer in refused {
        assert_eq!(limit(answer), Some("tenant.threads"));
    }
    // One that is there is found, and one that is deleted makes room.
    let thread = made.into_iter().next().unwrap().unwrap().thread;
    let row = store.row(&thread).await.unwrap();
    let key = row.thread.key.as_deref();
    let again = first(NewThread::new("again", key), Timestamp::UNIX_EPOCH);
    let found = store
        .get_or_create(&tenant(), again, None, None)
        .await
        .unwrap();
    assert!(!found.is_new() && found.thread == thread);
    store.delete(&tenant(), &thread, None).await.unwrap();
    Author::new(&store, "acme", NewThread::new("new", Some("new"))).await;
    Author::new(&store, "globex", NewThread::new("v", Some("v"))).await;
}

/// At the limit of bytes, only records without a limit are added, such as the end of a run.
pub async fn a_tenant_stores_no_more_bytes_than_its_limit(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let full = StorageLimits {
        bytes: usage_of(&store, "acme").await.bytes + 10,
        ..NO_LIMITS
    };
    subject
        .quotas()
        .replace(NO_LIMITS, [(tenant(), full)].into());
    let append = author.append_of(keep("i1"));
    let before = usage_of(&store, "acme").await;
    let name = Some("tenant.stored_bytes");
    assert_eq!(limit(store.append(append.clone()).await), name);
    let made = first(NewThread::new("u", Some("u")), Timestamp::UNIX_EPOCH);
    assert_eq!(
        limit(store.get_or_create(&tenant(), made, None, None).await),
        name
    );
    let file = new("file", "a", 1, Some(b"a long content"));
    assert_eq!(limit(put(&store, file).await), name);
    let of_thread = NewObject {
        thread: Some(author.thread.clone()),
        ..new("note", "b", 1, Some(b"a long content"))
    };
    assert_eq!(limit(put(&store, of_thread.clone()).await), name);
    assert_eq!(usage_of(&store, "acme").await, before);
    assert_eq!(store.row(&author.thread).await.unwrap().tail, author.tail);

    let append = Append {
        is_limited: false,
        ..append
    };
    author.append(append).await.unwrap();
    let unlimited = NewObject {
        is_limited: false,
        ..of_thread
    };
    put(&store, unlimited).await.unwrap();
    Author::new(&store, "globex", NewThread::new("v", Some("v"))).await;
    store.delete(&tenant(), &author.thread, None).await.unwrap();
    Author::new(&store, "acme", NewThread::new("w", Some("w"))).await;
}

/// Replacing a file does not add one, and an object without a content is not a file.
pub async fn a_tenant_has_no_more_files_than_its_limit(subject: impl Subject) {
    let store = subject.store();
    let one = StorageLimits {
        files: 1,
        ..NO_LIMITS
    };
    subject.quotas().replace(one, BTreeMap::new());
    put(&store, new("file", "a", 1, Some(b"x"))).await.unwrap();
    let another = put(&store, new("file", "b", 1, Some(b"y"))).await;
    assert_eq!(limit(another), Some("tenant.files"));
    put(&store, new("file", "a", 1, Some(b"y"))).await.unwrap();
    put(&store, new("note", "c", 1, None)).await.unwrap();
    assert_eq!(usage_of(&store, "acme").await.files, 1);
    let file = new("file", "b", 1, Some(b"y"));
    let theirs = store.objects().put(&"globex".into(), file.clone()).await;
    theirs.unwrap();
    put(&store, new("file", "a", 1, None)).await.unwrap();
    put(&store, file).await.unwrap();
}
