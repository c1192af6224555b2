//! One agent run of three tool rounds: in memory, and durable in SQLite and in the memory store.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

use agents::AgentState;
use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::StreamExt;
use loomline_benches::{THREE_ROUNDS, agent, post_request, runtime_over, sqlite};
use runtime::{MemoryStore, Runtime, Until};
use std::sync::Arc;

async fn durable(runtime: &Runtime, key: &str) {
    let accepted = runtime
        .react(post_request(runtime, key, THREE_ROUNDS))
        .await
        .unwrap();
    let until = Until::Execution(accepted.execution_id.unwrap());
    let follow = runtime
        .follow(&"bench".into(), key, accepted.after, until)
        .await
        .unwrap();
    let n = follow
        .fold(0, |n, logged| async move { n + logged.map_or(0, |_| 1) })
        .await;
    assert!(n > 20);
}

fn runs(criterion: &mut Criterion) {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut group = criterion.benchmark_group("three tool rounds");
    let agent = agent();
    group.bench_function("in memory", |bencher| {
        bencher.to_async(&tokio).iter(|| async {
            let result = agent
                .generate(THREE_ROUNDS, AgentState::initial())
                .await
                .unwrap();
            assert_eq!(result.turn.cycles, 4);
        });
    });
    let runtime = runtime_over(Arc::new(MemoryStore::new()));
    group.bench_function("under the runtime, memory store", |bencher| {
        bencher
            .to_async(&tokio)
            .iter(|| durable(&runtime, "memory"));
    });
    let directory = tempfile::tempdir().unwrap();
    let runtime = {
        let _guard = tokio.enter();
        runtime_over(sqlite(directory.path()))
    };
    group
        .sample_size(30)
        .bench_function("durable, SQLite, synchronous=FULL", |bencher| {
            bencher
                .to_async(&tokio)
                .iter(|| durable(&runtime, "sqlite"));
        });
    group.finish();
}

criterion_group!(benches, runs);
criterion_main!(benches);
