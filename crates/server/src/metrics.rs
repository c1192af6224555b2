//! Figures for Prometheus.

mod connections;
mod models;
mod percentiles;
mod runs;
mod tenants;
mod tools;

pub(crate) use connections::ConnectionFigures;
pub(crate) use percentiles::Percentiles;

use models::ModelFigures;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use runs::SlotFigures;
use runtime::{Ended, Observer, RunSlots};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stores::{Activity, StoreHealth};
use tenants::TenantFigures;
pub(crate) use tenants::TenantUsage;
use timeline::Interruption;
use tokio::time::Instant;
use tools::ToolFigures;
use upp::{Model, Tool};

/// The outcome of a successful operation.
const OK: &str = "ok";
/// The outcome of a failure without details.
const ERROR: &str = "error";
/// The outcome of an operation that was dropped before its end.
const CANCELLED: &str = "cancelled";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: String,
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRun {
    agent: String,
    outcome: String,
}

/// A histogram of durations for each set of labels.
#[derive(Clone)]
struct Timed<L> {
    all: Family<L, Histogram>,
}

impl<L: Clone + Hash + Eq + EncodeLabelSet + Debug + Send + Sync + 'static> Timed<L> {
    /// Buckets from 2 ms to 17 minutes, each twice as wide as the one before. So responses and agents'
    /// runs share one scale.
    fn new(registry: &mut Registry, name: &str, help: &str) -> Self {
        let made: fn() -> Histogram = || Histogram::new(exponential_buckets(0.002, 2.0, 20));
        let all = Family::new_with_constructor(made);
        registry.register_with_unit(name, help, Unit::Seconds, all.clone());
        Self { all }
    }

    fn took(&self, labels: &L, took: Duration) {
        self.all.get_or_create(labels).observe(took.as_secs_f64());
    }
}

/// Receives the outcome and the duration.
type Tell = Box<dyn FnOnce(&str, Duration) + Send>;

/// A running operation. If it is dropped before its end, its outcome is cancelled.
struct Timing {
    start: Instant,
    tell: Option<Tell>,
}

impl Timing {
    fn begin(tell: impl FnOnce(&str, Duration) + Send + 'static) -> Self {
        Self {
            start: Instant::now(),
            tell: Some(Box::new(tell)),
        }
    }

    fn so_far(&self) -> Duration {
        self.start.elapsed()
    }

    fn end(mut self, outcome: &str) {
        self.count_outcome(outcome);
    }

    fn count_outcome(&mut self, outcome: &str) {
        if let Some(tell) = self.tell.take() {
            tell(outcome, self.start.elapsed());
        }
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        let outcome = if std::thread::panicking() {
            ERROR
        } else {
            CANCELLED
        };
        self.count_outcome(outcome);
    }
}

/// The metrics of a server. Clones share them.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    since: Instant,
    requests: Family<Answered, Counter>,
    request_duration: Timed<Route>,
    executions: Gauge,
    streams: Gauge,
    connections: ConnectionFigures,
    runs: Timed<OfRun>,
    models: ModelFigures,
    tools: ToolFigures,
    store: StoreFigures,
    slots: SlotFigures,
    tenants: TenantFigures,
}

#[derive(Clone, Default)]
struct StoreFigures {
    commits: Counter,
    requests: Counter,
    failures: Counter,
    damaged: Counter,
    healthy: Gauge,
    file: Gauge,
    wal: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("loomline");
        let requests = Family::<Answered, Counter>::default();
        let (executions, streams) = (Gauge::<i64>::default(), Gauge::<i64>::default());
        registry.register("http_requests", "Requests answered", requests.clone());
        let request_duration = Timed::new(
            &mut registry,
            "http_request_duration",
            "From a request's head to the head of its answer",
        );
        registry.register(
            "running_executions",
            "Executions that run in this process",
            executions.clone(),
        );
        registry.register(
            "open_streams",
            "Event streams that are open",
            streams.clone(),
        );
        let connections = ConnectionFigures::new(&mut registry);
        let runs = Timed::new(
            &mut registry,
            "run_duration",
            "Executions that are over, from their beginning to their end",
        );
        let models = ModelFigures::new(&mut registry);
        let tools = ToolFigures::new(&mut registry);
        let store = StoreFigures::default();
        store.register(&mut registry);
        let slots = SlotFigures::default();
        slots.register(&mut registry);
        let tenants = TenantFigures::new(&mut registry);
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What this is", build);
        Self {
            registry: Arc::new(registry),
            since: Instant::now(),
            requests,
            request_duration,
            executions,
            streams,
            connections,
            runs,
            models,
            tools,
            store,
            slots,
            tenants,
        }
    }
}

impl Metrics {
    /// Counts a response. `route` is a pattern and not a path, so that the number of labels is bounded.
    pub(crate) fn answered(&self, method: &http::Method, route: &str, status: u16, took: Duration) {
        let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
        let method = if known.contains(&method.as_str()) {
            method.as_str()
        } else {
            "other"
        };
        let of = Route {
            method: method.to_owned(),
            route: route.to_owned(),
        };
        self.request_duration.took(&of, took);
        let labels = Answered {
            method: of.method,
            route: of.route,
            status,
        };
        self.requests.get_or_create(&labels).inc();
    }

    /// The figures of connections.
    pub(crate) fn connections(&self) -> &ConnectionFigures {
        &self.connections
    }

    /// An observer that counts the runs of a runtime. Runs without an agent's name count for the default
    /// agent.
    pub(crate) fn of_runs(&self, default_agent: &str) -> Arc<dyn Observer> {
        Arc::new(RunFigures {
            runs: self.runs.clone(),
            default_agent: default_agent.to_owned(),
        })
    }

    /// Wraps a model so that its calls are counted.
    pub(crate) fn of_model(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        self.models.of(model)
    }

    /// Wraps a tool so that its calls are counted. The number of tools in a configuration is bounded.
    pub(crate) fn of_tool(&self, tool: Tool) -> Tool {
        self.tools.of(tool)
    }

    /// Updates the number of running executions by tenant, and the limits.
    pub(crate) fn set_runs(&self, slots: &RunSlots, n_unrecovered: usize) {
        self.slots.set(slots, n_unrecovered);
    }

    /// The time since the process opened its store.
    pub(crate) fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    /// The percentiles of the durations of requests and of runs.
    pub(crate) fn latencies(&self) -> Result<[Percentiles; 2], std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        let names = [
            "loomline_http_request_duration_seconds",
            "loomline_run_duration_seconds",
        ];
        Ok(names.map(|name| percentiles::percentiles(&text, name)))
    }

    /// The figures as text.
    pub(crate) fn encode(
        &self,
        executions: usize,
        streams: usize,
        store: Activity,
        tenants: &TenantUsage,
    ) -> Result<String, std::fmt::Error> {
        self.executions
            .set(i64::try_from(executions).unwrap_or(i64::MAX));
        self.streams.set(i64::try_from(streams).unwrap_or(i64::MAX));
        self.store.set(store);
        self.tenants.set(tenants);
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}

impl StoreFigures {
    fn register(&self, registry: &mut Registry) {
        let counts = [
            ("store_commits", "Transactions committed", &self.commits),
            ("store_requests", "Requests in them", &self.requests),
            (
                "store_commit_failures",
                "Commits and writes that failed",
                &self.failures,
            ),
            (
                "store_damage_found",
                "Operations that found damage",
                &self.damaged,
            ),
        ];
        for (name, help, count) in counts {
            registry.register(name, help, count.clone());
        }
        registry.register(
            "store_healthy",
            "Whether commits succeed and no damage was found (1), or not (0)",
            self.healthy.clone(),
        );
        let sizes = [
            ("store_file", "The store's file", &self.file),
            ("store_wal", "The write-ahead log beside it", &self.wal),
        ];
        for (name, help, size) in sizes {
            registry.register_with_unit(name, help, Unit::Bytes, size.clone());
        }
    }

    fn set(&self, store: Activity) {
        let counts = [
            (&self.commits, store.n_commits),
            (&self.requests, store.n_requests),
            (&self.failures, store.n_failures),
            (&self.damaged, store.n_damaged),
        ];
        self.healthy
            .set(i64::from(store.health == StoreHealth::Healthy));
        for (count, n) in counts {
            count.inner().store(n, Ordering::Relaxed);
        }
        for (size, bytes) in [(&self.file, store.file_bytes), (&self.wal, store.wal_bytes)] {
            size.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }
}

/// Reasons for the end of runs that did not complete.
const REASONS: [&str; 10] = [
    ERROR,
    Interruption::USER_CANCELLED,
    "max_handoffs",
    "max_steps",
    "network_failure",
    Interruption::POISONED,
    "quota_exceeded",
    "rate_limited",
    "safety_halt",
    "timeout",
];

struct RunFigures {
    runs: Timed<OfRun>,
    default_agent: String,
}

impl Observer for RunFigures {
    fn ended(&self, ended: &Ended) {
        let agent = ended.agent.as_ref().unwrap_or(&self.default_agent);
        // Whoever cancels may give any reason.
        let outcome = match ended.reason.as_deref() {
            None => OK,
            Some(reason) if REASONS.contains(&reason) => reason,
            Some(_) => "other",
        };
        let labels = OfRun {
            agent: agent.clone(),
            outcome: outcome.to_owned(),
        };
        self.runs.took(&labels, ended.took);
    }
}
