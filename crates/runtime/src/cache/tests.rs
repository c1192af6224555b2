use super::IDLE;
use crate::pages::tests::{Nobody, record, tenant};
use crate::{MemoryStore, Runtime, RuntimeOptions, Until};
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use timeline::Seq;

fn runtime(thread_cache_bytes: usize) -> Runtime {
    let options = RuntimeOptions {
        thread_cache_bytes,
        ..RuntimeOptions::default()
    };
    Runtime::new(Arc::new(MemoryStore::new()), Arc::new(Nobody), options)
}

fn n_threads(runtime: &Runtime) -> usize {
    runtime.inner.live.lock().unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_nobody_uses_leaves_the_memory() {
    let runtime = runtime(64 << 20);
    record(&runtime, "a", "i1", 100).await;
    record(&runtime, "b", "i2", 100).await;
    let (tenant, key) = (tenant(), "b");
    let follow = runtime
        .follow(&tenant, key, Seq::ZERO, Until::Forever)
        .await;
    let mut follow = follow.unwrap();
    follow.next().await.unwrap().unwrap();
    assert_eq!(n_threads(&runtime), 2);
    tokio::time::sleep(IDLE + Duration::from_secs(15)).await;
    assert_eq!(n_threads(&runtime), 1, "the one that is followed stays");
    drop(follow);
    tokio::time::sleep(IDLE).await;
    assert_eq!(n_threads(&runtime), 0);
    assert_eq!(runtime.inner.cache.bytes(), 0);
    assert_eq!(runtime.inner.keys.lock().unwrap().len(), 0);
    // What was forgotten is found again.
    record(&runtime, "a", "i3", 100).await;
    assert_eq!(runtime.find(&tenant, "a").await.unwrap().tail, Seq(4));
}

#[tokio::test]
async fn threads_in_memory_are_bounded_by_their_size() {
    let max_bytes = 1 << 20;
    let runtime = runtime(max_bytes);
    for n in 0..2_000 {
        record(&runtime, &format!("k{n}"), &format!("i{n}"), 100).await;
        assert!(runtime.inner.cache.bytes() <= max_bytes + (8 << 10));
    }
    let n_threads = n_threads(&runtime);
    assert!((50..=300).contains(&n_threads), "{n_threads} threads");
}

#[tokio::test]
async fn the_tails_of_followers_are_bounded_in_total() {
    let max_bytes = 2 << 20;
    let runtime = runtime(max_bytes);
    let tenant = tenant();
    let mut follows = Vec::new();
    for n in 0..20 {
        let key = format!("k{n}");
        record(&runtime, &key, &format!("{n}-first"), 100).await;
        let follow = runtime.follow(&tenant, &key, Seq::ZERO, Until::Rest);
        follows.push(follow.await.unwrap());
        for m in 0..10 {
            record(&runtime, &key, &format!("{n}-{m}"), 50_000).await;
        }
    }
    // Each thread may keep a page at least.
    let bytes = runtime.inner.cache.bytes();
    assert!(bytes <= max_bytes + 20 * (256 << 10), "{bytes} bytes");
    for follow in follows {
        let seqs = follow.map(|logged| logged.unwrap().record.seq.0);
        let seqs: Vec<u64> = seqs.collect().await;
        assert_eq!(seqs, (1..=13).collect::<Vec<_>>());
    }
}
