//! Agents in memory: a run of three tool rounds, the same after a long history, one event of a
//! stream, and the JSON of a state; beside the same work in plain Rust.
//! `cargo bench -p loomline-benches --bench agents`
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

mod floor;
mod model;
mod setup;

use agents::{Agent, AgentState};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use loomline_benches as _;
use model::{Deltas, INPUT, Replies};
use std::hint::black_box;
use tokio::runtime::{Builder, Runtime};
use upp::Request;

/// The length of the long history.
const LONG: usize = 2_000;

/// How many pieces an answer is streamed in.
const DELTAS: u32 = 10_000;

fn tokio() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn three_rounds(criterion: &mut Criterion) {
    let tokio = tokio();
    let mut group = criterion.benchmark_group("agents/three tool rounds");
    let (replies, text) = (model::replies(), setup::text());
    group.bench_function("floor: plain Rust", |bencher| {
        let mut history = Vec::new();
        bencher.iter(|| {
            history.clear();
            assert_eq!(floor::run(&mut history, INPUT, &replies, &text), 4);
        });
    });
    group.bench_function("the codec alone: four replies read", |bencher| {
        let (codec, request) = (model::codec(), Request::default());
        bencher.iter(|| {
            for body in &replies {
                black_box(model::decode(&codec, &request, body));
            }
        });
    });
    let long = setup::history(LONG);
    for (name, agent) in [
        ("replies parsed", setup::hooked(Replies::parsed())),
        ("replies ready", setup::hooked(Replies::ready())),
    ] {
        let mut run = |name: &str, state: &AgentState| {
            group.bench_function(name, |bencher| {
                let one = || setup::watched(&agent, INPUT, state.clone());
                bencher.to_async(&tokio).iter(one);
            });
        };
        run(name, &AgentState::initial());
        run(&format!("{name}, after {LONG} messages"), &long);
    }
    let plain = Agent::new(setup::options(Replies::parsed())).unwrap();
    group.bench_function("replies parsed, no hooks, nobody watches", |bencher| {
        let one = || plain.generate(INPUT, AgentState::initial());
        bencher.to_async(&tokio).iter(one);
    });
    group.finish();
}

fn events(criterion: &mut Criterion) {
    let tokio = tokio();
    let mut group = criterion.benchmark_group("agents/stream");
    group.throughput(Throughput::Elements(u64::from(DELTAS)));
    let agent = setup::hooked(Deltas::new(DELTAS));
    group.bench_function(format!("{DELTAS} pieces of text"), |bencher| {
        let one = || setup::watched(&agent, INPUT, AgentState::initial());
        bencher.to_async(&tokio).iter(one);
    });
    group.finish();
}

fn json(criterion: &mut Criterion) {
    let state = setup::history(LONG);
    let text = state.to_json().unwrap();
    assert_eq!(AgentState::from_json(&text).unwrap(), state);
    let mut group = criterion.benchmark_group(format!("agents/state of {LONG} messages"));
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("baseline: serde_json::Value, there and back", |bencher| {
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        bencher.iter(|| {
            let text = value.to_string();
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        });
    });
    group.bench_function("to_json", |bencher| {
        bencher.iter(|| state.to_json().unwrap());
    });
    group.bench_function("from_json", |bencher| {
        bencher.iter_batched(
            || (),
            |()| AgentState::from_json(&text).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("there and back", |bencher| {
        bencher.iter(|| {
            let text = state.to_json().unwrap();
            AgentState::from_json(&text).unwrap()
        });
    });
    group.finish();
}

criterion_group!(benches, three_rounds, events, json);
criterion_main!(benches);
