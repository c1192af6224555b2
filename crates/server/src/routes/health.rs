//! Whether the server lives, is ready, and how it does.

use crate::error::{ApiError, ErrorBody};
use crate::health;
use crate::metrics::TenantUsage;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use http::header;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// A word on how the server does.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
}

/// Where the protocols of the server begin, by name.
const LINKS: [(&str, &str); 10] = [
    ("openapi", "/openapi.json"),
    ("health", "/healthz"),
    ("ready", "/readyz"),
    ("threads", "/api/v1/threads"),
    ("aiSdk", "/api/chat"),
    ("agUi", "/ag-ui"),
    ("openAi", "/v1/models"),
    ("a2a", "/.well-known/agent-card.json"),
    ("mcp", "/mcp"),
    ("langGraph", "/info"),
];

/// What this server is, and where its protocols begin.
#[utoipa::path(get, path = "/", operation_id = "index", tag = "operation", responses((status = 200, body = Object)))]
pub(crate) async fn index() -> Json<Value> {
    let links = LINKS.map(|(name, path)| (name.to_owned(), Value::from(path)));
    Json(json!({
        "name": "loomline",
        "version": env!("CARGO_PKG_VERSION"),
        "links": Map::from_iter(links),
    }))
}

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "operation", responses((status = 200, body = Health)))]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether requests are answered at once: recovery has begun, commits succeed, no damage was found
/// in the store, and descriptors are left. The details of a refusal have a `reason`.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "operation", responses((status = 200, body = Health), (status = 503, body = ErrorBody)))]
pub(crate) async fn readyz(State(api): State<Api>) -> Result<Json<Health>, ApiError> {
    match health::not_ready(&api).await {
        Some(reason) => Err(ApiError::NotReady(reason)),
        None => Ok(Json(Health { status: "ready" })),
    }
}

/// Figures for Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "operation", security(("key" = [])),
    responses((status = 200, body = String, content_type = "application/openmetrics-text"), (status = "default", body = ErrorBody)))]
pub(crate) async fn metrics(State(api): State<Api>) -> Result<impl IntoResponse, ApiError> {
    api.metrics().set_runs(api.runtime());
    let tenants = TenantUsage::read(api.app()).await?;
    let text = api
        .metrics()
        .encode(
            api.runtime().running(),
            api.app().budgets().streams().total(),
            api.app().store().activity(),
            &tenants,
        )
        .map_err(|_| ApiError::Panicked)?;
    Ok((
        [(
            header::CONTENT_TYPE,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        )],
        text,
    ))
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", tag = "operation", responses((status = 200, body = Object)))]
pub(crate) async fn openapi() -> Result<Json<Value>, ApiError> {
    let document = crate::openapi::document();
    document.map(Json).map_err(|_| ApiError::Panicked)
}
