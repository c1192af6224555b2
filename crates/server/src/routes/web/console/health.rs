//! The page of the server's health.

use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::process::{LatencyView, ProcessHealth, process_health};
use crate::routes::web::pages::PageParts;
use crate::routes::web::reply::page;
use crate::state::Api;
use axum::extract::State;
use axum::response::Response;
use web::{ConsoleSection, HealthFigures, HealthPage, LatencyFigures};

/// The native route with the same data.
const API_PATH: &str = "/api/v1/health";

/// Shows the health of the process.
pub(in crate::routes::web) async fn read(
    State(api): State<Api>,
    caller: Caller,
) -> Result<Response, ApiError> {
    let figures = figures(&process_health(&api).await?);
    let parts = PageParts::read(&api, &caller).await?;
    let shown = HealthPage {
        frame: parts.console("Health", ConsoleSection::Health, Some(API_PATH)),
        figures,
    };
    Ok(page(shown.html()))
}

fn figures(health: &ProcessHealth) -> HealthFigures {
    HealthFigures {
        not_ready: health.reason.zip(health.advice),
        version: health.version,
        uptime_seconds: health.uptime_seconds,
        store_health: health.store.health,
        file_bytes: health.store.file_bytes,
        wal_bytes: health.store.wal_bytes,
        commits: health.store.commits,
        failures: health.store.failures,
        open_streams: health.open_streams,
        running_runs: health.running_runs,
        runs_limit: health.runs_limit,
        queued_messages: health.queued_messages,
        waiting_runs: health.waiting_runs,
        unrecovered_threads: health.unrecovered_threads,
        requests: latency(&health.requests),
        runs: latency(&health.runs),
    }
}

fn latency(view: &LatencyView) -> LatencyFigures {
    LatencyFigures {
        count: view.count,
        percentiles: [view.p50_seconds, view.p95_seconds, view.p99_seconds],
    }
}
