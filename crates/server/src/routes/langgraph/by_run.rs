//! Runs whose paths name no thread: runs without a stored thread, and those of the Agent Protocol.

use super::{Pairs, index, runs};
use super::{found, found_any};
use crate::auth::Caller;
use crate::body::{BodyLease, JsonBody, OptionalBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::KeyedBody;
use crate::state::Api;
use crate::threads::ThreadRef;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use futures_util::FutureExt as _;
use http::{HeaderMap, StatusCode};
use interop::ids::read_run_of_thread_id;
use interop::langgraph::{RequestError, RunsSearch, Speaks, shown_id, uuid_of};
use serde_json::Value;

/// The thread of a run, and the run's id.
async fn find(api: &Api, caller: &Caller, id: &str) -> Result<(ThreadRef, String), ApiError> {
    let (thread, run) = match read_run_of_thread_id(id) {
        Some(named) => named,
        None => (thread_of(api, caller, id).await?, id.to_owned()),
    };
    match found_any(api, caller, &thread).await {
        Err(ApiError::LangGraph(_)) => Err(RequestError::no_run(id).into()),
        found => Ok((found?, run)),
    }
}

/// The thread that the index has for this run.
async fn thread_of(api: &Api, caller: &Caller, run: &str) -> Result<String, ApiError> {
    let Some(id) = uuid_of(run) else {
        return Err(RequestError::no_run(run).into());
    };
    for runtime in [api.runtime(&caller.tenant), api.app().ephemeral()] {
        if let Some(noted) = index::noted(runtime, &caller.tenant, &id).await? {
            return Ok(noted.thread_id);
        }
    }
    Err(RequestError::no_run(run).into())
}

/// Starts a run on the thread that the body names, or on a new one.
///
/// A new thread is deleted some time after the run's end, unless the body says to keep it.
#[utoipa::path(post, path = "/runs", operation_id = "agentProtocolCreateRun", tag = "langgraph", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    runs::created(&api, &caller, idempotency, None, &body)
        .boxed()
        .await
}

/// Creates a run, waits for its end and returns its result.
#[utoipa::path(post, path = "/runs/wait", operation_id = "agentProtocolCreateAndWait", tag = "langgraph", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create_and_wait(
    State(api): State<Api>,
    caller: Caller,
    lease: BodyLease,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    runs::waited(&api, &caller, idempotency, None, (body, lease))
        .boxed()
        .await
}

/// Creates a run and streams it.
#[utoipa::path(post, path = "/runs/stream", operation_id = "agentProtocolCreateAndStream", tag = "langgraph", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(super) async fn create_and_stream(
    State(api): State<Api>,
    caller: Caller,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    runs::streamed(&api, &caller, idempotency, None, &body)
        .boxed()
        .await
}

/// Searches the runs of a thread, the newest first.
#[utoipa::path(post, path = "/runs/search", operation_id = "agentProtocolSearchRuns", tag = "langgraph", security(("key" = [])),
    request_body = Object, responses((status = 200, body = Vec<Object>), (status = "default", body = ErrorBody)))]
pub(super) async fn search(
    State(api): State<Api>,
    caller: Caller,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let asked = RunsSearch::read(&body)?;
    let found = found(&api, &caller, &asked.thread_id).await?;
    runs::listed(&found, &asked.query, Speaks::AgentProtocol)
        .boxed()
        .await
}

/// Reads a run.
#[utoipa::path(get, path = "/runs/{run_id}", operation_id = "agentProtocolReadRun", tag = "langgraph", security(("key" = [])),
    params(("run_id" = String, Path)), responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    caller: Caller,
    PathOf(run_id): PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    let (found, run) = find(&api, &caller, &run_id).await?;
    let run = super::run::Run::find(&found, &run).await?.record;
    Ok(Json(run.to_json(
        Speaks::AgentProtocol,
        shown_id(&found.row().thread),
    )))
}

/// Deletes a finished run: it is no longer listed or found. Its messages remain in the thread.
#[utoipa::path(delete, path = "/runs/{run_id}", operation_id = "agentProtocolDeleteRun", tag = "langgraph", security(("key" = [])),
    params(("run_id" = String, Path)), responses((status = 204), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    PathOf(run_id): PathOf<String>,
) -> Result<StatusCode, ApiError> {
    let (found, run) = find(&api, &caller, &run_id).await?;
    runs::deleted(&found, &run).boxed().await
}

/// Waits for a run, and returns its outcome.
#[utoipa::path(get, path = "/runs/{run_id}/wait", operation_id = "agentProtocolWaitRun", tag = "langgraph", security(("key" = [])),
    params(("run_id" = String, Path)), responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn wait(
    State(api): State<Api>,
    caller: Caller,
    PathOf(run_id): PathOf<String>,
) -> Result<Response, ApiError> {
    let (found, run) = find(&api, &caller, &run_id).await?;
    runs::joined(&api, &caller, found, &run, Speaks::AgentProtocol)
        .boxed()
        .await
}

/// Streams a run from its beginning, or from after the frame that `Last-Event-ID` names.
#[utoipa::path(get, path = "/runs/{run_id}/stream", operation_id = "agentProtocolStreamRun", tag = "langgraph", security(("key" = [])),
    params(("run_id" = String, Path), ("stream_mode" = Option<String>, Query), ("cancel_on_disconnect" = Option<bool>, Query), ("last-event-id" = Option<String>, Header)),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(super) async fn stream(
    State(api): State<Api>,
    caller: Caller,
    PathOf(run_id): PathOf<String>,
    Query(query): Query<Pairs>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (found, run) = find(&api, &caller, &run_id).await?;
    runs::join_streamed(&api, &caller, &headers, (found, &run), &query)
        .boxed()
        .await
}

/// Stops a run; complete steps remain, unless `action` is `rollback`. A queued run can't be stopped
/// before it starts.
#[utoipa::path(post, path = "/runs/{run_id}/cancel", operation_id = "agentProtocolCancelRun", tag = "langgraph", security(("key" = [])),
    params(("run_id" = String, Path), ("wait" = Option<bool>, Query), ("action" = Option<String>, Query)),
    request_body = Option<Object>, responses((status = 204), (status = "default", body = ErrorBody)))]
pub(super) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    PathOf(run_id): PathOf<String>,
    Query(query): Query<Pairs>,
    _: OptionalBody<Value>,
) -> Result<StatusCode, ApiError> {
    let (found, run) = find(&api, &caller, &run_id).await?;
    runs::cancelled(&found, &run, &query).boxed().await
}
