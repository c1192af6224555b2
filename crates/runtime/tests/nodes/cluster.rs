//! Nodes of one process, each in a thread of its own and behind a proxy of its own.

use crate::agents::{self, World};
use crate::database::{Database, tenant};
use crate::proxy::{Proxy, Traffic};
use futures_util::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use loomline_runtime as runtime;
use runtime::{
    Accepted, AgentReactors, Clock, Follow, Policy, ReactRequest, RunLimits, RunSlots, Runtime,
    RuntimeError, RuntimeOptions, Sources, Until,
};
use serde_json::json;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use store::Store;
use stores::{PostgresOptions, PostgresStore};
use timeline::{Event, ExecutionStatus, NewItem, ReadPosition, Record, chunk_type};
use tokio::time::{Instant, timeout};

/// The leases of most tests. Those of nodes in production last 12 s.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// How long a node takes at most to find due threads, beside the lease.
pub(crate) const SWEEP: Duration = Duration::from_millis(420);
/// More than anything takes that needs no lease to end.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// How a node starts.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) lease: Duration,
    pub(crate) patience: Duration,
    /// The difference between its clock and the database's.
    pub(crate) skew: SignedDuration,
    /// It connects as the role of the schema's name.
    pub(crate) is_limited: bool,
    /// The maximum number of its runs.
    pub(crate) slots: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease: LEASE,
            patience: Duration::from_mins(1),
            skew: SignedDuration::ZERO,
            is_limited: false,
            slots: usize::MAX,
        }
    }
}

struct SkewedClock(Mutex<SignedDuration>);

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        Timestamp::now() + *self.0.lock().unwrap()
    }
}

/// A node, which a test may kill or freeze.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) runtime: Runtime,
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) proxy: Proxy,
    /// The proxy of its notifications.
    pub(crate) hints: Proxy,
    clock: Arc<SkewedClock>,
    threads: Option<tokio::runtime::Runtime>,
}

/// A frozen node continues when this is dropped.
pub(crate) struct Frozen {
    _thaw: mpsc::Sender<()>,
}

impl Node {
    pub(crate) async fn start(database: &Database, world: &Arc<World>, name: &str) -> Self {
        Self::start_with(database, world, name, Options::default()).await
    }

    pub(crate) async fn start_with(
        database: &Database,
        world: &Arc<World>,
        name: &str,
        options: Options,
    ) -> Self {
        let proxy = Proxy::start(database.address()).await;
        let hints = Proxy::start(database.address()).await;
        let url = |through| {
            let url = database.url(Some(through));
            let role = format!("//{}@", database.schema);
            if options.is_limited {
                url.replace("//postgres@", &role)
            } else {
                url
            }
        };
        let store_options = PostgresOptions {
            listen_url: Some(url(&hints)),
            lease: options.lease,
            patience: options.patience,
            ..PostgresOptions::new(url(&proxy))
        };
        // One thread: whoever blocks it freezes the node.
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let clock = Arc::new(SkewedClock(Mutex::new(options.skew)));
        let sources = Sources {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            node: name.to_owned(),
            runs: RunSlots::new(RunLimits {
                concurrent_runs: options.slots,
                ..RunLimits::default()
            }),
            ..Sources::default()
        };
        let agents = agents::all(world, name);
        let started = threads.spawn(async move {
            let store = Arc::new(PostgresStore::open(&store_options).await.unwrap());
            let reactors = AgentReactors::new(agents, "lead").unwrap();
            let options = RuntimeOptions {
                restart_pause: Duration::from_millis(10),
                ..RuntimeOptions::default()
            };
            let shared = Arc::clone(&store) as Arc<dyn Store>;
            let runtime = Runtime::with_sources(shared, Arc::new(reactors), options, sources);
            runtime.recover().await.unwrap();
            (runtime, store)
        });
        let (runtime, store) = started.await.unwrap();
        Self {
            name: name.to_owned(),
            runtime,
            store,
            proxy,
            hints,
            clock,
            threads: Some(threads),
        }
    }

    pub(crate) fn set_clock(&self, skew: SignedDuration) {
        *self.clock.0.lock().unwrap() = skew;
    }

    /// Does something in the node's own thread.
    pub(crate) async fn ask<T: Send + 'static, F>(&self, ask: impl FnOnce(Runtime) -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let asked = ask(self.runtime.clone());
        let threads = self.threads.as_ref().unwrap();
        threads.spawn(asked).await.unwrap()
    }

    pub(crate) async fn react(&self, request: ReactRequest) -> Result<Accepted, RuntimeError> {
        self.ask(|runtime| async move { runtime.react(request).await })
            .await
    }

    /// Posts a message to a thread.
    pub(crate) async fn say(&self, key: &str, text: &str) -> Accepted {
        self.react(say(key, text)).await.unwrap()
    }

    pub(crate) async fn follow(&self, key: &str, from: ReadPosition, until: Until) -> Follow {
        let resumed = self.resume(key, from, until).await;
        resumed.unwrap()
    }

    /// Follows a thread from a position that it may not have.
    pub(crate) async fn resume(
        &self,
        key: &str,
        from: ReadPosition,
        until: Until,
    ) -> Result<Follow, RuntimeError> {
        let key = key.to_owned();
        self.ask(move |runtime| async move { runtime.follow(&tenant(), &key, from, until).await })
            .await
    }

    /// The records of a thread until it is at rest.
    pub(crate) async fn at_rest(&self, key: &str) -> Vec<Record> {
        let follow = self.follow(key, ReadPosition::default(), Until::Rest).await;
        let read = follow.map(|it| it.unwrap().record.clone()).collect();
        let read = timeout(Duration::from_mins(1), read).await;
        read.unwrap_or_else(|_| panic!("{key} does not come to rest at {}", self.name))
    }

    /// Ends the node as a crash does: nothing that it does takes effect any more.
    pub(crate) fn kill(&mut self) {
        self.proxy.set(Traffic::REFUSED);
        self.hints.set(Traffic::REFUSED);
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }

    /// Stops the node's thread, and its timers with it. Its connections stay open.
    pub(crate) async fn freeze(&self) -> Frozen {
        let (thaw, thawed) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        self.threads.as_ref().unwrap().spawn(async move {
            let _ = stop.send(());
            let _ = thawed.recv();
        });
        stopped.await.unwrap();
        Frozen { _thaw: thaw }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn say(key: &str, text: &str) -> ReactRequest {
    let content = json!([{"type": "input_text", "text": text}]).into();
    let id = format!("item-{:016x}", fastrand::u64(..));
    ReactRequest {
        policy: Policy::Queue,
        ..ReactRequest::new(tenant(), key, NewItem::user(id, content))
    }
}

/// Waits until something is so. Returns how long that took.
pub(crate) async fn until(
    what: &str,
    limit: Duration,
    mut is_so: impl AsyncFnMut() -> bool,
) -> Duration {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    began.elapsed()
}

/// How often a log has a marker of this kind.
pub(crate) fn n_marked(records: &[Record], kind: &str) -> usize {
    let is_it = |record: &&Record| matches!(&record.event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == kind);
    records.iter().filter(is_it).count()
}

/// Checks the order of a log, and that no run of it was taken up by another node or begun anew.
pub(crate) fn check_undisturbed(records: &[Record]) {
    assert_eq!(timeline::verify(records), Ok(()));
    assert_eq!(n_marked(records, chunk_type::STEP_RESET), 0);
    assert_eq!(n_marked(records, chunk_type::EXECUTION_RESUMED), 0);
}

/// Whether the last run of a log is completed.
pub(crate) fn is_completed(records: &[Record]) -> bool {
    let ends = |record: &Record| match &record.event {
        Event::ExecutionStatusChanged { to, .. } => Some(*to),
        _ => None,
    };
    let end = records.iter().rev().find_map(ends);
    end == Some(ExecutionStatus::Completed)
}
