//! What a turn costs on a thread of 10, 100, 1,000 and 10,000 turns: time, and bytes on disk.
//!
//! A turn is one user message and one answer of the scripted model, durable in SQLite. The baseline
//! in the same run is the first ten turns of a new thread beside the long one.
//! `cargo bench -p loomline-benches --bench growth`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

use loomline_benches::{durable, percentile, runtime_over, sqlite};
use runtime::Runtime;
use std::time::{Duration, Instant};

const PROBES: usize = 200;

async fn turn(runtime: &Runtime, key: &str) -> Duration {
    let begun = Instant::now();
    durable(runtime, key, "say 20 words").await;
    begun.elapsed()
}

async fn measure(runtime: &Runtime) {
    let mut n_turns = 0;
    println!(
        "{:>8}  {:>12} {:>12}   {:>14} {:>14}  {:>12}",
        "turns", "p50 µs", "p99 µs", "fresh p50 µs", "ratio", "bytes/turn"
    );
    for (round, target) in [10, 100, 1_000, 10_000].into_iter().enumerate() {
        while n_turns < target {
            turn(runtime, "long").await;
            n_turns += 1;
        }
        let (mut long, mut fresh) = (Vec::new(), Vec::new());
        let probes = PROBES.min(target.max(20));
        for n in 0..probes {
            // In turn, so that a change of the machine's speed meets both.
            long.push(turn(runtime, "long").await);
            let key = format!("fresh-{round}-{}", n / 10);
            fresh.push(turn(runtime, &key).await);
        }
        n_turns += probes;
        let bytes = runtime.find(&"bench".into(), "long").await.unwrap().bytes;
        let (p50, p99) = (percentile(&mut long, 0.5), percentile(&mut long, 0.99));
        let base = percentile(&mut fresh, 0.5);
        let each = bytes / u64::try_from(n_turns).unwrap();
        println!(
            "{n_turns:>8}  {p50:>12.0} {p99:>12.0}   {base:>14.0} {:>14.2}  {each:>12}",
            p50 / base
        );
    }
}

fn main() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let runtime = {
        let _guard = tokio.enter();
        runtime_over(sqlite(directory.path()))
    };
    tokio.block_on(measure(&runtime));
}
