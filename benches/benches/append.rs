//! Append and group commit at 1, 16 and 256 writers, beside a raw `write` + `fdatasync` loop.
//!
//! Each row is one durable append of one event of about 1 KB by one of the writers, each on its
//! own thread of the log. `cargo bench -p loomline-benches --bench append`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_types,
    reason = "a bench"
)]

use loomline_benches::{append_until, percentile, runtime_over, sqlite, text_chunk};
use runtime::{NewThreadRequest, Store};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

const SECONDS: u64 = 3;

fn raw(directory: &std::path::Path, per_sync: usize) {
    let text = text_chunk().encode().unwrap();
    let mut file = std::fs::File::create(directory.join("raw")).unwrap();
    let mut samples = Vec::new();
    let end = Instant::now() + Duration::from_secs(SECONDS);
    while Instant::now() < end {
        let begun = Instant::now();
        let mut batch = Vec::with_capacity(text.len() * per_sync);
        for _ in 0..per_sync {
            batch.extend_from_slice(text.as_bytes());
        }
        file.write_all(&batch).unwrap();
        file.sync_data().unwrap();
        samples.push(begun.elapsed());
    }
    report(
        &format!("raw write + fdatasync, {per_sync} rows each"),
        &mut samples,
        per_sync,
    );
}

fn report(name: &str, samples: &mut [Duration], rows: usize) {
    let per_second = samples.len() * rows / usize::try_from(SECONDS).unwrap();
    let (p50, p99) = (percentile(samples, 0.5), percentile(samples, 0.99));
    println!("{name:48} {per_second:>9} rows/s   p50 {p50:>9.0} µs   p99 {p99:>9.0} µs");
}

async fn writers(store: Arc<dyn Store>, n: usize) {
    let runtime = runtime_over(Arc::clone(&store));
    let mut tasks = Vec::new();
    let places = Arc::new(Semaphore::new(n));
    let end = Instant::now() + Duration::from_secs(SECONDS);
    for w in 0..n {
        let new = NewThreadRequest {
            key: Some(format!("w{n}-{w}")),
            ..NewThreadRequest::default()
        };
        let (row, _) = runtime.get_or_create(&"bench".into(), new).await.unwrap();
        let places = Arc::clone(&places);
        tasks.push(append_until(Arc::clone(&store), row.thread.id, places, end));
    }
    let mut set = tokio::task::JoinSet::new();
    for task in tasks {
        set.spawn(task);
    }
    let mut samples: Vec<Duration> = set.join_all().await.into_iter().flatten().collect();
    report(
        &format!("SQLite, group commit, {n} writers"),
        &mut samples,
        1,
    );
}

fn main() {
    let directory = tempfile::tempdir_in(".").unwrap();
    for per_sync in [1, 16, 256] {
        raw(directory.path(), per_sync);
    }
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let store = {
        let _guard = tokio.enter();
        sqlite(directory.path())
    };
    for n in [1, 16, 256] {
        tokio.block_on(writers(Arc::clone(&store), n));
    }
    for per_sync in [1, 16, 256] {
        raw(directory.path(), per_sync);
    }
}
