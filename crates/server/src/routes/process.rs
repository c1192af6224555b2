//! The health of the process, for people and programs that operate it.

use crate::error::{ApiError, ErrorBody, NotReady};
use crate::health;
use crate::metrics::Percentiles;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use stores::StoreHealth;
use utoipa::ToSchema;

/// The health of the process.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProcessHealth {
    /// Whether the server is ready for requests.
    pub(crate) ready: bool,
    /// Why it is not ready, as the code of `/readyz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    /// Why it is not ready, for people.
    #[serde(skip)]
    #[cfg_attr(not(feature = "web"), expect(dead_code, reason = "only pages read it"))]
    pub(crate) advice: Option<&'static str>,
    /// The version of the server.
    pub(crate) version: &'static str,
    /// Seconds since the process opened its store.
    pub(crate) uptime_seconds: u64,
    /// The store. With shards, the figures are those of all databases together, and the health is the worst one.
    pub(crate) store: StoreView,
    /// The further databases of tenants; empty without any. One that is not ready does not make the server not ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) shards: Vec<ShardView>,
    /// Event streams that are open.
    pub(crate) open_streams: usize,
    /// Executions that run in this process.
    pub(crate) running_runs: usize,
    /// Maximum number of concurrent runs; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runs_limit: Option<usize>,
    /// Messages that wait in the queues of threads.
    pub(crate) queued_messages: usize,
    /// Resumed runs that wait for a slot.
    pub(crate) waiting_runs: usize,
    /// Unfinished threads of the last process that are not recovered yet.
    pub(crate) unrecovered_threads: usize,
    /// The durations of requests until the head of the response.
    pub(crate) requests: LatencyView,
    /// The durations of runs.
    pub(crate) runs: LatencyView,
}

/// The state of a further database.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShardView {
    /// Its name in the configuration.
    pub(crate) name: String,
    /// Whether requests of its tenants are answered.
    pub(crate) ready: bool,
    /// Why not, as the code of `/readyz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
}

/// The state of the store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoreView {
    /// `healthy`, `commits_fail` or `damaged`.
    pub(crate) health: &'static str,
    /// The bytes of its file.
    pub(crate) file_bytes: u64,
    /// The bytes of its write-ahead log.
    pub(crate) wal_bytes: u64,
    /// Transactions committed since the process started.
    pub(crate) commits: u64,
    /// Commits and writes that failed since the process started.
    pub(crate) failures: u64,
}

/// Durations since the process started. A percentile is the upper end of its bucket; the buckets double.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LatencyView {
    /// Number of durations.
    pub(crate) count: u64,
    /// Seconds that half of them took at most; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_seconds: Option<f64>,
    /// Seconds that 95 % of them took at most; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p95_seconds: Option<f64>,
    /// Seconds that 99 % of them took at most; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_seconds: Option<f64>,
}

impl From<Percentiles> for LatencyView {
    fn from(percentiles: Percentiles) -> Self {
        let Percentiles { count, of } = percentiles;
        let [p50_seconds, p95_seconds, p99_seconds] = of;
        Self {
            count,
            p50_seconds,
            p95_seconds,
            p99_seconds,
        }
    }
}

/// Reads the health of the process. For operators: the key needs the scope `operator`, and must not be
/// restricted to some threads.
#[utoipa::path(get, path = "/health", operation_id = "readHealth", tag = "operation", security(("key" = [])),
    responses((status = 200, body = ProcessHealth), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(State(api): State<Api>) -> Result<Json<ProcessHealth>, ApiError> {
    Ok(Json(process_health(&api).await?))
}

/// The health of the process.
pub(crate) async fn process_health(api: &Api) -> Result<ProcessHealth, ApiError> {
    let reason = health::not_ready(api).await;
    let shards = health::shards(api.app()).await.into_iter();
    let shards = shards.map(|(name, reason)| ShardView {
        name,
        ready: reason.is_none(),
        reason: reason.map(NotReady::code),
    });
    let store = api.app().activity();
    let slots = api.app().default_runtime().slots();
    let limit = Some(slots.limits().concurrent_runs).filter(|limit| *limit < usize::MAX);
    let queued = slots.tenants().into_iter().map(|it| it.queued_triggers);
    let [requests, runs] = api.metrics().latencies().map_err(|_| ApiError::Panicked)?;
    Ok(ProcessHealth {
        ready: reason.is_none(),
        reason: reason.map(NotReady::code),
        advice: reason.map(NotReady::advice),
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: api.metrics().uptime().as_secs(),
        store: StoreView {
            health: match store.health {
                StoreHealth::Healthy => "healthy",
                StoreHealth::CommitsFail => "commits_fail",
                StoreHealth::Damaged => "damaged",
            },
            file_bytes: store.file_bytes,
            wal_bytes: store.wal_bytes,
            commits: store.n_commits,
            failures: store.n_failures,
        },
        shards: shards.collect(),
        open_streams: api.app().budgets().streams().total(),
        running_runs: api.app().n_running(),
        runs_limit: limit,
        queued_messages: queued.sum(),
        waiting_runs: slots.waiting(),
        unrecovered_threads: api.app().n_unrecovered(),
        requests: requests.into(),
        runs: runs.into(),
    })
}
