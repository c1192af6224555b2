//! Nodes over one PostgreSQL server: appends, takeovers, streamed text and cancels at another node, and runs.
//!
//! `LOOMLINE_POSTGRES` is the URL of a server that writes durably, as `LOOMLINE_POSTGRES_FSYNC=on scripts/postgres start DIR`
//! starts it. `cargo run --release -p loomline-benches --features postgres --bin nodes`
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "a bench"
)]

use agents::{Agent, AgentOptions};
use futures_util::StreamExt as _;
use loomline_benches::{
    THREE_ROUNDS, agent, append_until, durable, percentile, post_request, runtime_over,
};
use runtime::{AgentReactor, NewThreadRequest, Runtime, RuntimeOptions, Store, Until};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use stores::{PostgresOptions, PostgresStore};
use timeline::{Event, ReadPosition};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};
use upp::{
    Capabilities, Model, ModelEvent, ModelStream, NativeSettings, Request, Scripted, Settings,
    StreamEvent,
};

/// How long each case of appends takes.
const APPENDING: Duration = Duration::from_secs(4);
/// The longest wait for another node.
const LONG: Duration = Duration::from_mins(1);

/// A schema on the server.
struct Database {
    url: String,
    client: Client,
}

impl Database {
    async fn new() -> Self {
        let missing = "LOOMLINE_POSTGRES is the URL of a server";
        let server = std::env::var("LOOMLINE_POSTGRES").expect(missing);
        let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
        tokio::spawn(connection);
        let name = format!("bench_{}", jiff::Timestamp::now().as_nanosecond());
        let make = format!("CREATE SCHEMA {name}");
        client.batch_execute(&make).await.unwrap();
        let url = format!("{server}?options=-csearch_path%3D{name}&sslmode=disable");
        Self { url, client }
    }

    async fn open(&self) -> Arc<dyn Store> {
        let options = PostgresOptions::new(self.url.clone());
        Arc::new(PostgresStore::open(&options).await.unwrap())
    }

    /// The processor time of this process, and of the server's, as ticks of 10 ms allow.
    async fn processor_time(&self) -> [Duration; 2] {
        let sql = "SELECT pid FROM pg_stat_activity";
        let rows = self.client.query(sql, &[]).await.unwrap();
        let server = rows
            .iter()
            .map(|row| ticks(&row.get::<_, i32>(0).to_string()));
        [ticks("self"), server.sum()]
    }

    async fn setting(&self, name: &str) -> String {
        let row = self.client.query_one(&format!("SHOW {name}"), &[]).await;
        row.unwrap().get(0)
    }
}

fn ticks(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let times = fields.split(' ').skip(11).take(2);
    times
        .filter_map(|it| it.parse::<u64>().ok())
        .map(|ticks| Duration::from_millis(ticks * 10))
        .sum()
}

/// The deltas of a model, with their times.
#[derive(Default)]
struct Sent {
    /// The number of bytes of text so far, at each delta.
    deltas: Vec<(usize, Instant)>,
    n_calls: usize,
    ended: Option<Instant>,
}

/// The scripted model, with the times of its deltas.
struct Timed {
    inner: Scripted,
    sent: Arc<Mutex<Sent>>,
}

struct Ending(Arc<Mutex<Sent>>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.lock().unwrap().ended = Some(Instant::now());
    }
}

impl Model for Timed {
    fn model_id(&self) -> &str {
        self.inner.model_id()
    }

    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        self.inner.settings(settings)
    }

    fn stream(&self, request: Request) -> ModelStream {
        let sent = Arc::clone(&self.sent);
        {
            let mut sent = sent.lock().unwrap();
            sent.n_calls += 1;
            sent.ended = None;
        }
        let mut stream = self.inner.stream(request);
        Box::pin(async_stream::stream! {
            let _ending = Ending(Arc::clone(&sent));
            while let Some(event) = stream.next().await {
                if let Ok(ModelEvent::Event(StreamEvent::TextDelta { text, .. })) = &event {
                    let mut sent = sent.lock().unwrap();
                    let before = sent.deltas.last().map_or(0, |last| last.0);
                    sent.deltas.push((before + text.len(), Instant::now()));
                }
                yield event;
            }
        })
    }
}

/// A node with a thread of its own, so that it can die.
struct Node {
    runtime: Runtime,
    sent: Arc<Mutex<Sent>>,
    threads: Option<tokio::runtime::Runtime>,
}

impl Node {
    async fn start(database: &Database) -> Self {
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let sent = Arc::<Mutex<Sent>>::default();
        let model = Timed {
            inner: Scripted::new(),
            sent: Arc::clone(&sent),
        };
        let options = PostgresOptions::new(database.url.clone());
        let started = threads.spawn(async move {
            let store = PostgresStore::open(&options).await.unwrap();
            let agent = Agent::new(AgentOptions::new("bench", Arc::new(model))).unwrap();
            let reactor = Arc::new(AgentReactor::new(agent));
            let options = RuntimeOptions::default();
            let runtime = Runtime::new(Arc::new(store), Arc::new(reactor), options);
            runtime.recover().await.unwrap();
            runtime
        });
        Self {
            runtime: started.await.unwrap(),
            sent,
            threads: Some(threads),
        }
    }

    async fn ask<T: Send + 'static, F>(&self, ask: impl FnOnce(Runtime) -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let asked = ask(self.runtime.clone());
        let spawned = self.threads.as_ref().unwrap().spawn(asked);
        spawned.await.unwrap()
    }

    async fn say(&self, key: &str, text: &'static str) {
        let key = key.to_owned();
        let said = self.ask(move |runtime| async move {
            let request = post_request(&runtime, &key, text);
            runtime.react(request).await
        });
        said.await.unwrap();
    }

    fn n_calls(&self) -> usize {
        self.sent.lock().unwrap().n_calls
    }

    fn die(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.die();
    }
}

async fn until(mut is_so: impl FnMut() -> bool) -> Instant {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Instant::now()
}

fn report(name: &str, samples: &mut [Duration]) {
    let n = samples.len();
    let [p50, p95, max] = [0.5, 0.95, 1.0].map(|share| percentile(samples, share) / 1e3);
    println!("{name}: median {p50:.2} ms, p95 {p95:.2} ms, max {max:.2} ms ({n} samples)");
}

async fn appends(database: &Database, n_writers: usize) {
    let store = database.open().await;
    let runtime = runtime_over(Arc::clone(&store));
    let mut threads = Vec::new();
    for n in 0..n_writers {
        let new = NewThreadRequest {
            key: Some(format!("w{n_writers}-{n}")),
            ..NewThreadRequest::default()
        };
        let (row, _) = runtime.get_or_create(&"bench".into(), new).await.unwrap();
        threads.push(row.thread.id);
    }
    let before = database.processor_time().await;
    let end = Instant::now() + APPENDING;
    let places = Arc::new(Semaphore::new(n_writers));
    let mut writers = JoinSet::new();
    for thread in threads {
        let places = Arc::clone(&places);
        writers.spawn(append_until(Arc::clone(&store), thread, places, end));
    }
    let mut samples: Vec<Duration> = writers.join_all().await.into_iter().flatten().collect();
    let after = database.processor_time().await;
    let n = samples.len();
    report(
        &format!("append of 1 KB, {n_writers} writers"),
        &mut samples,
    );
    let [own, server] = [0, 1].map(|n_th: usize| {
        let spent = after[n_th].saturating_sub(before[n_th]);
        spent.as_secs_f64() * 1e6 / n as f64
    });
    let rate = n as f64 / APPENDING.as_secs_f64();
    println!(
        "    {rate:.0} appends/s; CPU of an append: {own:.0} µs here, {server:.0} µs at the server"
    );
    store.close().await.unwrap();
}

/// A node dies in a model's stream; another one calls the model again.
async fn takeovers(n: usize) {
    let mut samples = Vec::new();
    for n in 0..n {
        // The runs of earlier nodes would be taken up, too.
        let database = Database::new().await;
        let mut dies = Node::start(&database).await;
        let lives = Node::start(&database).await;
        tokio::time::sleep(Duration::from_secs(13)).await;
        dies.say("takeover", "slow 200ms say 400 words").await;
        until(|| dies.n_calls() == 1).await;
        tokio::time::sleep(Duration::from_millis(500 + 700 * n as u64)).await;
        dies.die();
        let begun = Instant::now();
        samples.push(until(|| lives.n_calls() == 1).await - begun);
    }
    report("takeover after a node's death", &mut samples);
}

async fn delivery(database: &Database) {
    let (owner, other) = (Node::start(database).await, Node::start(database).await);
    owner.say("delivery", "slow 20ms say 400 words").await;
    let follow = other.ask(|runtime| async move {
        let tenant = "bench".into();
        let from = ReadPosition::default();
        let follow = runtime.follow(&tenant, "delivery", from, Until::Rest).await;
        let mut follow = follow.unwrap();
        let (mut bytes, mut read) = (0, Vec::new());
        while let Some(next) = follow.next().await {
            if let Event::ChunkEmitted {
                chunk_type, data, ..
            } = &next.unwrap().logged.record.event
                && chunk_type == "text-delta"
            {
                let data: serde_json::Value = data.as_ref().unwrap().read().unwrap();
                bytes += data["delta"].as_str().unwrap().len();
                read.push((bytes, Instant::now()));
            }
        }
        read
    });
    let read = follow.await;
    let sent = owner.sent.lock().unwrap();
    let late = |(bytes, at): &(usize, Instant)| {
        let arrived = read.iter().find(|(read, _)| read >= bytes);
        arrived.unwrap().1.saturating_duration_since(*at)
    };
    // The first ones were sent before the follower was there.
    let mut samples: Vec<Duration> = sent.deltas.iter().skip(20).map(late).collect();
    report("streamed text at another node", &mut samples);
}

async fn cancels(database: &Database, n: usize) {
    let (owner, other) = (Node::start(database).await, Node::start(database).await);
    let (mut appended, mut ended) = (Vec::new(), Vec::new());
    for n in 0..n {
        let key = format!("cancel-{n}");
        owner.say(&key, "slow 30s say 2 words").await;
        until(|| owner.n_calls() == n + 1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let begun = Instant::now();
        let cancelled = other.ask(|runtime| async move {
            let tenant = "bench".into();
            runtime.cancel(&tenant, &key, None, "user_cancelled").await
        });
        cancelled.await.unwrap();
        appended.push(begun.elapsed());
        until(|| owner.sent.lock().unwrap().ended.is_some()).await;
        ended.push(owner.sent.lock().unwrap().ended.unwrap() - begun);
    }
    report("cancel at another node, until it is durable", &mut appended);
    report("cancel at another node, until the call ends", &mut ended);
}

async fn three_rounds(database: &Database, n_runs: usize) {
    let store = database.open().await;
    let runtime = Runtime::new(
        store,
        Arc::new(Arc::new(AgentReactor::new(agent()))),
        RuntimeOptions::default(),
    );
    runtime.recover().await.unwrap();
    for n in 0..10 {
        durable(&runtime, &format!("warm-{n}"), THREE_ROUNDS).await;
    }
    let before = database.processor_time().await;
    let (begun, mut samples) = (Instant::now(), Vec::new());
    for n in 0..n_runs {
        let begun = Instant::now();
        durable(&runtime, &format!("run-{n}"), THREE_ROUNDS).await;
        samples.push(begun.elapsed());
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = database.processor_time().await;
    report("run of three rounds", &mut samples);
    let [own, server] = [0, 1].map(|n_th: usize| {
        let spent = after[n_th].saturating_sub(before[n_th]);
        spent.as_secs_f64() * 1e3 / n_runs as f64
    });
    let rate = n_runs as f64 / seconds;
    println!("    {rate:.0} runs/s; CPU of a run: {own:.2} ms here, {server:.2} ms at the server");
    runtime.shutdown().await.unwrap();
}

async fn measure() {
    let database = Database::new().await;
    let version = database.setting("server_version").await;
    let fsync = database.setting("fsync").await;
    let commit = database.setting("synchronous_commit").await;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("PostgreSQL {version}, fsync={fsync}, synchronous_commit={commit}, load {load}");
    for n_writers in [1, 16] {
        appends(&database, n_writers).await;
    }
    three_rounds(&database, 300).await;
    delivery(&database).await;
    cancels(&database, 30).await;
    takeovers(4).await;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load {load}");
}

fn main() {
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    threads.block_on(measure());
}
