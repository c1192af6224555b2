//! Runs of a thread that is in the path.

use super::disconnect::Disconnect;
use super::ended::EndedRuns;
use super::rollback::take_out;
use super::run::{Run, newest_first};
use super::start::begin;
use super::stream::Followed;
use super::{Pairs, index};
use super::{find, found, found_any};
use crate::auth::{Caller, Scope};
use crate::body::{BodyLease, OptionalBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::{IdempotencyKey, KeyedBody};
use crate::state::Api;
use crate::threads::{NamedThread, ThreadRef};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use http::{HeaderMap, StatusCode};
use interop::langgraph::{
    ErrorKind, FrameId, JoinQuery, RequestError, RunCreate, RunStatus, RunsQuery, Speaks,
    StreamMode, read_cancel, shown_id,
};
use interop::run::RunSelector;
use runtime::RuntimeError;
use serde_json::Value;
use timeline::{Interruption, Seq};

/// Lists the runs of a thread, the newest first.
#[utoipa::path(get, path = "/threads/{thread_id}/runs", operation_id = "langgraphListRuns", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("limit" = Option<usize>, Query), ("offset" = Option<usize>, Query), ("status" = Option<String>, Query), ("select" = Option<String>, Query)),
    responses((status = 200, body = Vec<Object>), (status = "default", body = ErrorBody)))]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    Query(query): Query<Pairs>,
) -> Result<Response, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    let query = RunsQuery::read(&query)?;
    listed(&found, &query, Speaks::LangGraph).boxed().await
}

/// A page of the runs of a thread.
pub(super) async fn listed(
    found: &ThreadRef,
    query: &RunsQuery,
    speaks: Speaks,
) -> Result<Response, ApiError> {
    let (mut page, mut n_found, mut next) = (Vec::new(), 0, None);
    let mut ids = Vec::new();
    newest_first(found, |record, _| {
        if query.status.is_some_and(|wanted| wanted != record.status) {
            return true;
        }
        if page.len() == query.limit {
            next = Some(n_found);
            return false;
        }
        n_found += 1;
        if n_found > query.offset {
            let run = record.to_json(speaks, shown_id(&found.row().thread));
            ids.push(record.id);
            page.push(query.select.of(run));
        }
        true
    })
    .await?;
    // The paths that the Agent Protocol asks for them by name no thread.
    if speaks == Speaks::AgentProtocol {
        for id in &ids {
            index::note(found, id).await?;
        }
    }
    Ok((super::search::pagination(n_found, next), Json(page)).into_response())
}

/// Starts a run on a thread, with messages or with answers to pending calls, and responds at once.
#[utoipa::path(post, path = "/threads/{thread_id}/runs", operation_id = "langgraphCreateRun", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    PathOf(thread_id): PathOf<String>,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    created(&api, &caller, idempotency, Some(&thread_id), &body)
        .boxed()
        .await
}

/// Starts a run, and returns it.
pub(super) async fn created(
    api: &Api,
    caller: &Caller,
    idempotency: IdempotencyKey,
    thread_id: Option<&str>,
    body: &Value,
) -> Result<Response, ApiError> {
    let mut asked = RunCreate::read(body)?;
    // Nobody reads it, and so nobody goes away.
    asked.cancels_on_disconnect = false;
    let speaks = asked.speaks;
    let named = named(thread_id, &asked);
    // An answer may wait for what goes on with it.
    let open = asked
        .is_resumed()
        .then(|| api.open_stream(caller))
        .transpose()?;
    let asked = (asked, open.as_ref());
    let mut run: Followed = begin(api, caller, idempotency, named.as_deref(), asked)
        .await?
        .into();
    if let Some(thread) = run.ephemeral.take() {
        api.shared::<EndedRuns>()
            .keep(thread, api.shutdown().clone());
    }
    let record = Run::find(&run.found, run.id.as_str()).await?.record;
    let object = record.to_json(speaks, shown_id(&run.found.row().thread));
    let mut headers = run.headers("stream");
    headers.remove(http::header::LOCATION);
    Ok((headers, Json(object)).into_response())
}

/// The thread of a request: from the path, or else from the body.
fn named(thread_id: Option<&str>, asked: &RunCreate) -> Option<String> {
    thread_id
        .map(str::to_owned)
        .or_else(|| asked.thread_id.clone())
}

/// An error if the thread exists and the key may not read: the thread's values are all its messages.
async fn check_values(api: &Api, caller: &Caller, thread_id: Option<&str>) -> Result<(), ApiError> {
    if let Some(id) = thread_id.filter(|_| !caller.may_read())
        && find(api, caller, id).await?.is_some()
    {
        return caller.check_read();
    }
    Ok(())
}

/// Creates a run on a thread, waits for its end and returns the thread's values.
#[utoipa::path(post, path = "/threads/{thread_id}/runs/wait", operation_id = "langgraphWaitRun", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn wait(
    State(api): State<Api>,
    caller: Caller,
    PathOf(thread_id): PathOf<String>,
    lease: BodyLease,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    let body = (body, lease);
    waited(&api, &caller, idempotency, Some(&thread_id), body)
        .boxed()
        .await
}

/// Starts a run, waits for it and returns its outcome. Drops the body before it waits.
pub(super) async fn waited(
    api: &Api,
    caller: &Caller,
    idempotency: IdempotencyKey,
    thread_id: Option<&str>,
    (body, lease): (Value, BodyLease),
) -> Result<Response, ApiError> {
    let asked = RunCreate::read(&body)?;
    drop(body);
    let open = api.open_stream(caller)?;
    let speaks = asked.speaks;
    let named = named(thread_id, &asked);
    check_values(api, caller, named.as_deref()).await?;
    let asked = (asked, Some(&open));
    let mut begun = begin(api, caller, idempotency, named.as_deref(), asked).await?;
    let mut disconnect = begun.disconnect.take();
    lease.free_all();
    let run: Followed = begun.into();
    run.has_ended(open).await?;
    if let Some(disconnect) = &mut disconnect {
        disconnect.over();
    }
    run.outcome(speaks).await
}

/// Creates a run on a thread and streams it.
#[utoipa::path(post, path = "/threads/{thread_id}/runs/stream", operation_id = "langgraphStreamRun", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(super) async fn stream(
    State(api): State<Api>,
    caller: Caller,
    PathOf(thread_id): PathOf<String>,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    streamed(&api, &caller, idempotency, Some(&thread_id), &body)
        .boxed()
        .await
}

/// Starts a run, and streams it.
pub(super) async fn streamed(
    api: &Api,
    caller: &Caller,
    idempotency: IdempotencyKey,
    thread_id: Option<&str>,
    body: &Value,
) -> Result<Response, ApiError> {
    let asked = RunCreate::read(body)?;
    let open = api.open_stream(caller)?;
    let modes = asked.modes.clone();
    let named = named(thread_id, &asked);
    if modes.contains(&StreamMode::Values) {
        check_values(api, caller, named.as_deref()).await?;
    }
    let asked = (asked, Some(&open));
    let mut begun = begin(api, caller, idempotency, named.as_deref(), asked).await?;
    let disconnect = begun.disconnect.take();
    let run: Followed = begun.into();
    run.stream(&modes, None, (disconnect, open)).await
}

/// Reads a run.
#[utoipa::path(get, path = "/threads/{thread_id}/runs/{run_id}", operation_id = "langgraphReadRun", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let found = found_any(&api, &caller, named.id()).await?;
    let run = Run::find(&found, &run_id).await?.record;
    Ok(Json(
        run.to_json(Speaks::LangGraph, shown_id(&found.row().thread)),
    ))
}

/// Deletes a finished run: it is no longer listed or found. Its messages remain in the thread.
#[utoipa::path(delete, path = "/threads/{thread_id}/runs/{run_id}", operation_id = "langgraphDeleteRun", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path)), responses((status = 204), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let found = found_any(&api, &caller, named.id()).await?;
    deleted(&found, &run_id).boxed().await
}

pub(super) async fn deleted(found: &ThreadRef, run_id: &str) -> Result<StatusCode, ApiError> {
    let run = Run::find(found, run_id).await?.record;
    if !run.status.is_over() {
        let what = "the run is not over: cancel it first";
        return Err(RequestError::new(ErrorKind::Conflict, what).into());
    }
    index::note_deleted(found, &run.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Waits for a run, and returns its outcome.
#[utoipa::path(get, path = "/threads/{thread_id}/runs/{run_id}/join", operation_id = "langgraphJoinRun", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn join(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
) -> Result<Response, ApiError> {
    let found = found_any(&api, &caller, named.id()).await?;
    joined(&api, &caller, found, &run_id, Speaks::LangGraph)
        .boxed()
        .await
}

pub(super) async fn joined(
    api: &Api,
    caller: &Caller,
    found: ThreadRef,
    run_id: &str,
    speaks: Speaks,
) -> Result<Response, ApiError> {
    let run = Run::find(&found, run_id).await?;
    let is_over = run.record.status.is_over();
    let run = Followed::of(found, run);
    if !is_over {
        let open = api.open_stream(caller)?;
        run.has_ended(open).await?;
    }
    run.outcome(speaks).await
}

/// Streams a run from its beginning, or from after the frame that `Last-Event-ID` names.
#[utoipa::path(get, path = "/threads/{thread_id}/runs/{run_id}/stream", operation_id = "langgraphJoinRunStream", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path), ("stream_mode" = Option<String>, Query), ("cancel_on_disconnect" = Option<bool>, Query),
        ("last-event-id" = Option<String>, Header)),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(super) async fn join_stream(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
    Query(query): Query<Pairs>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let found = found_any(&api, &caller, named.id()).await?;
    join_streamed(&api, &caller, &headers, (found, &run_id), &query)
        .boxed()
        .await
}

pub(super) async fn join_streamed(
    api: &Api,
    caller: &Caller,
    headers: &HeaderMap,
    (found, run_id): (ThreadRef, &str),
    query: &Pairs,
) -> Result<Response, ApiError> {
    let query = JoinQuery::read(query)?;
    if query.cancels_on_disconnect {
        // Who goes away stops the run, though it is a `GET`.
        caller.check_scope(Scope::Write)?;
    }
    let last = match headers
        .get("last-event-id")
        .map(|it| it.to_str().unwrap_or("?"))
    {
        // What both protocols' clients say for everything from the beginning.
        None | Some("" | "-1") => None,
        Some(text) => {
            let wrong =
                || RequestError::at("/last-event-id", "expected the id of an event of this run");
            Some(FrameId::read(text).ok_or_else(wrong)?)
        }
    };
    if let Some(last) = last {
        found.row().check_position(Seq(last.seq()))?;
    }
    let run = Run::find(&found, run_id).await?;
    let modes = if query.modes.is_empty() {
        run.record.modes()
    } else {
        query.modes
    };
    let open = api.open_stream(caller)?;
    let run = Followed::of(found, run);
    let own = || (RunSelector::answering(run.trigger.clone()), run.after);
    let disconnect = query
        .cancels_on_disconnect
        .then(|| Disconnect::new(api, &run.found, own()));
    run.stream(&modes, last, (disconnect, open)).await
}

/// Stops a run; complete steps remain, unless `action` is `rollback`. A queued run can't be stopped
/// before it starts.
#[utoipa::path(post, path = "/threads/{thread_id}/runs/{run_id}/cancel", operation_id = "langgraphCancelRun", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path), ("wait" = Option<bool>, Query), ("action" = Option<String>, Query)),
    request_body = Option<Object>, responses((status = 204), (status = "default", body = ErrorBody)))]
pub(super) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
    Query(query): Query<Pairs>,
    _: OptionalBody<Value>,
) -> Result<StatusCode, ApiError> {
    let found = found_any(&api, &caller, named.id()).await?;
    cancelled(&found, &run_id, &query).boxed().await
}

pub(super) async fn cancelled(
    found: &ThreadRef,
    run_id: &str,
    query: &Pairs,
) -> Result<StatusCode, ApiError> {
    let rolls_back = read_cancel(query)?;
    let run = Run::find(found, run_id).await?.record;
    let refused = |what: &str| Err(RequestError::new(ErrorKind::Conflict, what).into());
    let over = "the run is over";
    match run.status {
        RunStatus::Pending => {
            return refused("the run waits for its turn, and can be stopped once that has come");
        }
        RunStatus::Interrupted if rolls_back => {
            return refused("the run waits for answers, and is not rolled back: cancel it");
        }
        RunStatus::Running | RunStatus::Interrupted => {
            let stopped = found.cancel(run.last.as_ref(), Interruption::USER_CANCELLED);
            match stopped.await {
                // It has ended by itself meanwhile, or what it asked is answered.
                Err(RuntimeError::NotRunning(_)) => return refused(over),
                stopped => stopped?,
            };
            if rolls_back {
                take_out(found, &run).await?;
            }
        }
        RunStatus::Success | RunStatus::Error | RunStatus::Timeout => return refused(over),
    }
    Ok(StatusCode::NO_CONTENT)
}
