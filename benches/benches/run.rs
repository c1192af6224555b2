//! One agent run of three tool rounds: in memory, and durable in SQLite and in the memory store.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

use agents::AgentState;
use criterion::{Criterion, criterion_group, criterion_main};
use loomline_benches::{THREE_ROUNDS, agent, durable, runtime_over, sqlite};
use runtime::MemoryStore;
use std::sync::Arc;

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
            .iter(|| durable(&runtime, "memory", THREE_ROUNDS));
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
                .iter(|| durable(&runtime, "sqlite", THREE_ROUNDS));
        });
    group.finish();
}

criterion_group!(benches, runs);
criterion_main!(benches);
