//! Liveness, readiness and metrics of the server.

use crate::error::{ApiError, ErrorBody, ErrorFormat};
use crate::health;
use crate::metrics::TenantUsage;
use crate::openapi::Description;
use crate::protocol::Access::{Open, Operator};
use crate::protocol::ThreadAt::{NoThread, Process};
use crate::protocol::{Protocol, Route, Rules};
use crate::state::Api;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::{HeaderMap, header};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::routes;

/// The state of the server in one word.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
}

/// The routes of the process: its health, its metrics, its description.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::Own,
    prefixes: &[],
    links: &[
        ("openapi", "/openapi.json"),
        ("health", "/healthz"),
        ("ready", "/readyz"),
    ],
    rules: Rules::NONE,
    routes,
    bodies: "",
};

fn routes() -> Vec<Route> {
    vec![
        Route::get("/", Open, NoThread, routes!(index)),
        Route::get("/healthz", Open, NoThread, routes!(healthz)),
        Route::get("/readyz", Open, NoThread, routes!(readyz)),
        Route::get("/openapi.json", Open, NoThread, routes!(openapi)),
        Route::get("/metrics", Operator, Process, routes!(metrics)),
    ]
}

/// The server's name and version, and the entry points of its protocols.
#[derive(Serialize, ToSchema)]
pub(crate) struct Index {
    /// Always `loomline`.
    name: &'static str,
    /// The version of the server.
    version: &'static str,
    /// The path of each protocol's entry point, by the protocol's name.
    #[schema(value_type = std::collections::HashMap<String, String>)]
    links: Map<String, Value>,
}

/// Reads the server's name and version, and the entry points of its protocols. A browser is sent to the
/// chat.
#[utoipa::path(get, path = "/", operation_id = "index", tag = "operation", responses((status = 200, body = Index)))]
pub(crate) async fn index(
    State(api): State<Api>,
    headers: HeaderMap,
    Extension(description): Extension<Arc<Description>>,
) -> Response {
    #[cfg(feature = "web")]
    if api.app().config().web.is_enabled && super::web::wants_page(&headers) {
        return axum::response::Redirect::to("/chat").into_response();
    }
    #[cfg(not(feature = "web"))]
    let _ = (api, headers);
    let links = description.links.iter();
    let links = links.map(|(name, path)| ((*name).to_owned(), Value::from(*path)));
    Json(Index {
        name: "loomline",
        version: env!("CARGO_PKG_VERSION"),
        links: links.collect(),
    })
    .into_response()
}

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "operation", responses((status = 200, body = Health)))]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Reports readiness: 200 if requests are answered at once.
///
/// This means that recovery has started, commits succeed, the store has no known damage, and file
/// descriptors are free. The details of an error have a `reason`.
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
    let app = api.app();
    api.metrics()
        .set_runs(app.default_runtime().slots(), app.n_unrecovered());
    let tenants = TenantUsage::read(
        &app.usage().await,
        app.ephemeral(),
        api.app().budgets(),
        &api.app().config().limits,
    )
    .await?;
    let text = api
        .metrics()
        .encode(
            app.n_running(),
            api.app().budgets().streams().total(),
            app.activity(),
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

/// An OpenAPI document.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "the schema of a document that is built as a value"
)]
pub(crate) struct OpenApiDocument {
    /// The version of OpenAPI.
    openapi: String,
    /// The title and version of the API.
    info: Map<String, Value>,
    /// The operations, by path and method.
    paths: Map<String, Value>,
    /// The schemas and security schemes that operations refer to.
    components: Map<String, Value>,
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", tag = "operation", responses((status = 200, body = OpenApiDocument)))]
pub(crate) async fn openapi(
    Extension(description): Extension<Arc<Description>>,
) -> Result<Json<Value>, ApiError> {
    let document = description.document();
    document.map(Json).map_err(|_| ApiError::Panicked)
}
