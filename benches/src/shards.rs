//! Appends to 1, 2 and 3 PostgreSQL servers, with as many writers in all.
//!
//! `LOOMLINE_SHARDS` has the URLs of three servers that write durably. Each flush of a server takes 20 ms
//! (`commit_delay`), and a transaction has at most 16 appends. So the rate is bounded by the flushes, and not by the
//! processors that all servers share. `scripts/bench-shards` runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a bench"
)]

use loomline_benches::{append_until, percentile, runtime_over};
use runtime::{NewThreadRequest, Store};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stores::{PostgresOptions, PostgresStore};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// Writers of all servers together.
const WRITERS: usize = 96;
/// Appends that a server has at once, and so the most in one transaction.
const AT_ONCE: usize = 16;
const APPENDING: Duration = Duration::from_secs(8);

/// A store in a schema of its own. Its server takes 20 ms for a flush.
async fn open(server: &str) -> Arc<dyn Store> {
    let (client, connection) = tokio_postgres::connect(server, NoTls).await.unwrap();
    tokio::spawn(connection);
    let name = format!("bench_{}", jiff::Timestamp::now().as_nanosecond());
    for sql in [
        "ALTER SYSTEM SET commit_delay = 20000",
        "ALTER SYSTEM SET commit_siblings = 0",
        "SELECT pg_reload_conf()",
        &format!("CREATE SCHEMA {name}"),
    ] {
        client.batch_execute(sql).await.unwrap();
    }
    let row = client.query_one("SHOW fsync", &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "on", "a flush takes no time");
    let url = format!("{server}?options=-csearch_path%3D{name}&sslmode=disable");
    let options = PostgresOptions {
        lanes: NonZeroUsize::MIN,
        ..PostgresOptions::new(url)
    };
    Arc::new(PostgresStore::open(&options).await.unwrap())
}

/// The appends per second to these servers.
async fn rate(servers: &[String]) -> f64 {
    let mut writers = JoinSet::new();
    let mut stores = Vec::new();
    let mut places = Vec::new();
    for server in servers {
        stores.push(open(server).await);
        places.push(Arc::new(Semaphore::new(AT_ONCE)));
    }
    let mut threads = Vec::new();
    for n in 0..WRITERS {
        let at = n % servers.len();
        let new = NewThreadRequest {
            key: Some(format!("w{n}")),
            ..NewThreadRequest::default()
        };
        let runtime = runtime_over(Arc::clone(&stores[at]));
        let (row, _) = runtime.get_or_create(&"bench".into(), new).await.unwrap();
        threads.push((at, row.thread.id));
    }
    let end = Instant::now() + APPENDING;
    for (at, thread) in threads {
        let (store, places) = (Arc::clone(&stores[at]), Arc::clone(&places[at]));
        writers.spawn(append_until(store, thread, places, end));
    }
    let mut samples: Vec<Duration> = writers.join_all().await.into_iter().flatten().collect();
    let rate = samples.len() as f64 / APPENDING.as_secs_f64();
    let [p50, p95] = [0.5, 0.95].map(|share| percentile(&mut samples, share) / 1e3);
    println!(
        "{} servers: {rate:.0} appends/s; median {p50:.0} ms, p95 {p95:.0} ms",
        servers.len()
    );
    for store in stores {
        store.close().await.unwrap();
    }
    rate
}

#[tokio::main]
async fn main() {
    let servers = std::env::var("LOOMLINE_SHARDS").expect("LOOMLINE_SHARDS has the URLs");
    let servers: Vec<String> = servers.split_whitespace().map(str::to_owned).collect();
    assert_eq!(servers.len(), 3, "expected the URLs of three servers");
    let [one, two, three] = [
        rate(&servers[..1]).await,
        rate(&servers[..2]).await,
        rate(&servers).await,
    ];
    println!(
        "2 servers: {:.2} ×, 3 servers: {:.2} ×",
        two / one,
        three / one
    );
    assert!(two / one >= 1.7, "two servers take too few appends");
    assert!(three / one >= 2.5, "three servers take too few appends");
}
