//! One run streamed to 1,000 followers over HTTP, and to one: events each second, and how late.
//!
//! Server, followers and model share the machine. `cargo bench -p loomline-benches --bench fanout`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

use loomline_benches::{percentile, post_request};
use server::{App, Config, OpenMode};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

async fn follower(address: std::net::SocketAddr) -> (usize, Instant) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /api/v1/threads/fan/events?until=rest&after=2 HTTP/1.1\r\nhost: {address}\r\n\
         accept: text/event-stream\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut n_events, mut buffer, mut tail) = (0, vec![0; 65_536], Vec::new());
    loop {
        let n = stream.read(&mut buffer).await.unwrap();
        if n == 0 {
            return (n_events, Instant::now());
        }
        tail.extend_from_slice(&buffer[..n]);
        n_events += tail
            .windows(6)
            .filter(|window| window == b"\ndata:")
            .count();
        let keep = tail.len().min(5);
        tail.drain(..tail.len() - keep);
    }
}

async fn fan_out(n_followers: usize) {
    let directory = tempfile::tempdir_in(".").unwrap();
    let mut config = Config::default();
    config.limits.streams = 2_000;
    let app = App::open(config, directory.path(), OpenMode::ReadWrite)
        .await
        .unwrap();
    let runtime = app.default_runtime().clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let mut set = tokio::task::JoinSet::new();
    let stop = shutdown.clone();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move { server::serve(app, listener, stop).await });
    let mut request = post_request(&runtime, "fan", "slow 5ms say 400 words");
    request.tenant = server::DEV_TENANT.into();
    runtime.react(request).await.unwrap();
    let begun = Instant::now();
    for _ in 0..n_followers {
        set.spawn(follower(address));
    }
    let ends = set.join_all().await;
    let first = ends.iter().map(|(_, end)| *end).min().unwrap();
    let n_events: usize = ends.iter().map(|(n, _)| n).sum();
    let elapsed = begun.elapsed();
    let mut late: Vec<Duration> = ends
        .iter()
        .map(|(_, end)| end.duration_since(first))
        .collect();
    let each = n_events / n_followers;
    assert!(
        ends.iter().all(|(n, _)| *n == each),
        "every follower sees every event"
    );
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = n_events as f64 / elapsed.as_secs_f64();
    println!(
        "{n_followers:>6} followers  {each:>6} events each  {rate:>10.0} events/s  {:>6.2} s  last after first: p50 {:>8.0} µs  p99 {:>8.0} µs",
        elapsed.as_secs_f64(),
        percentile(&mut late, 0.5),
        percentile(&mut late, 0.99),
    );
    shutdown.cancel();
    serving.join_all().await;
}

fn main() {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    for n_followers in [1, 100, 1_000] {
        tokio.block_on(fan_out(n_followers));
    }
}
