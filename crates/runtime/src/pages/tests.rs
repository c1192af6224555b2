use crate::follow::{Follow, Until};
use crate::reactor::{Reactor, Reactors};
use crate::{MemoryStore, Runtime, RuntimeOptions};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::suite::Layer;
use store::{EventLog as _, Filter, Logged, PAGE_BYTES, Store, StoreError, TenantId};
use timeline::{NewItem, Seq, ThreadId};

/// A store that counts how often a page is read.
#[derive(Default)]
struct Counted {
    inner: MemoryStore,
    n_reads: AtomicUsize,
}

impl Layer for Counted {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        self.n_reads.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            // Others ask meanwhile.
            tokio::task::yield_now().await;
            self.inner.read(thread, after, limit, filter).await
        })
    }
}

pub(crate) struct Nobody;

impl Reactors for Nobody {
    fn find(&self, _: Option<&str>) -> Option<Arc<dyn Reactor>> {
        None
    }
}

pub(crate) fn tenant() -> TenantId {
    "acme".into()
}

pub(crate) async fn record(runtime: &Runtime, key: &str, id: &str, bytes: usize) {
    let content = json!([{"type": "input_text", "text": "x".repeat(bytes)}]);
    let item = NewItem::user(id, content.into());
    runtime.record(&tenant(), key, item).await.unwrap();
}

/// A thread with messages of this size, and a process that has none of it in memory.
async fn thread(n: usize, bytes: usize, cache: usize) -> (Arc<Counted>, Runtime) {
    let store = Arc::new(Counted::default());
    let over = |store: &Arc<Counted>| {
        let options = RuntimeOptions {
            thread_cache_bytes: cache,
            ..RuntimeOptions::default()
        };
        Runtime::new(Arc::<Counted>::clone(store), Arc::new(Nobody), options)
    };
    let first = over(&store);
    for n in 0..n {
        record(&first, "k", &format!("i{n}"), bytes).await;
    }
    store.n_reads.store(0, Ordering::SeqCst);
    (Arc::clone(&store), over(&store))
}

async fn follow(runtime: &Runtime) -> Follow {
    let tenant = tenant();
    let follow = runtime.follow(&tenant, "k", Seq::ZERO, Until::Rest);
    follow.await.unwrap()
}

async fn seqs(follow: Follow) -> Vec<u64> {
    let seq = |logged: Result<crate::FollowedRecord, StoreError>| logged.unwrap().record.seq.0;
    follow.map(seq).collect().await
}

#[tokio::test]
async fn followers_of_a_thread_share_the_pages_they_read() {
    let (store, runtime) = thread(20, PAGE_BYTES / 4, 64 << 20).await;
    let follows = futures_util::future::join_all((0..50).map(async |_| {
        let follow = follow(&runtime).await;
        seqs(follow).await
    }));
    for seen in follows.await {
        assert_eq!(seen, (1..=22).collect::<Vec<_>>());
    }
    // Three messages fit a page.
    let n_reads = store.n_reads.load(Ordering::SeqCst);
    assert!(n_reads <= 8, "{n_reads} reads");
}

#[tokio::test]
async fn a_follower_that_does_not_read_keeps_no_page_in_memory() {
    let (store, runtime) = thread(6, PAGE_BYTES / 4, 64 << 20).await;
    let mut follower = follow(&runtime).await;
    let first = follower.next().await.unwrap().unwrap();
    let weak = Arc::downgrade(&first.logged);
    drop(first);
    assert_eq!(weak.strong_count(), 1, "the page that was read last");
    runtime.inner.pages.clear();
    assert_eq!(weak.strong_count(), 0, "the follower keeps the page");
    // It reads the page again, and misses nothing.
    assert_eq!(seqs(follower).await, (2..=8).collect::<Vec<_>>());
    assert!(store.n_reads.load(Ordering::SeqCst) > 2);
}

#[tokio::test]
async fn large_records_wait_until_the_budget_has_room() {
    let bytes = 3 << 20;
    let (_, runtime) = thread(2, bytes, 4 << 20).await;
    let mut first = follow(&runtime).await;
    let mut large = Vec::new();
    while let Some(logged) = first.next().now_or_never().flatten() {
        large.extend(logged.unwrap().large.clone());
        if large.len() == 1 {
            break;
        }
    }
    let mut second = follow(&runtime).await.skip(3);
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), second.next()).await;
    assert!(early.is_err(), "two records of 3 MiB are in memory");
    drop((large, first));
    runtime.inner.pages.clear();
    assert!(second.next().await.unwrap().is_ok());
}
