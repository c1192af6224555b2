//! The current state of a thread, and earlier ones.

use super::found;
use super::resent::leave_out_of;
use super::{Pairs, Standing, object, threads};
use crate::aitp::MessagePost;
use crate::auth::Caller;
use crate::body::{JsonBody, OptionalBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::unfollowed;
use crate::threads::{NamedThread, ThreadRef};
use axum::Json;
use axum::extract::State;
use interop::langgraph::{
    ErrorKind, HistoryQuery, RequestError, Snapshots, StateQuery, StateUpdate, shown_id,
};
use runtime::{Filter, PageRequest, Position};
use serde_json::{Value, json};
use timeline::Seq;

/// Maximum total size of the messages on a page of states, in bytes.
const MAX_PAGE_BYTES: usize = 16 << 20;

/// The id of the last state. Costs time proportional to the last entry of the thread.
pub(super) async fn last_checkpoint(found: &ThreadRef) -> Result<Option<String>, ApiError> {
    let last = PageRequest::Before {
        before: Position::END,
        n: 1,
    };
    let piece = found.page(last, Filter::Facts).await?;
    let states = Snapshots::of(&piece.transcript);
    Ok(states.last_id().map(str::to_owned))
}

/// An error if a request names another state than the last one.
pub(super) async fn check_last(
    found: &ThreadRef,
    named: Option<&str>,
) -> Result<Option<Seq>, ApiError> {
    let Some(named) = named else {
        return Ok(None);
    };
    let (_, tail) = found.state().await?;
    if last_checkpoint(found).await?.as_deref() == Some(named) {
        return Ok(Some(tail));
    }
    Err(not_last().into())
}

/// The error for a state that is not the thread's last one; a thread that does not exist has no states.
pub(super) fn not_last() -> RequestError {
    let what = "this is not the thread's last state, and the past can't be changed: copy the thread, and go on there";
    RequestError::new(ErrorKind::Conflict, what)
}

/// A state of a thread. Costs time proportional to the thread.
async fn state_view(found: &ThreadRef, query: &StateQuery) -> Result<Value, ApiError> {
    let key = found.key();
    let transcript = found.transcript(Filter::Facts).await?;
    let states = Snapshots::of(&transcript);
    let place = match &query.checkpoint {
        None => states.last(),
        Some(id) => {
            let place = states.index_of(id);
            Some(place.ok_or_else(|| RequestError::no_checkpoint(id))?)
        }
    };
    let asked = Standing::of(found).await?.asked;
    let state = states.to_json(place, shown_id(&found.row().thread), key, Some(&asked));
    Ok(query.select.of(state))
}

/// Reads the state of a thread: its messages and its pending calls.
#[utoipa::path(get, path = "/threads/{thread_id}/state", operation_id = "langgraphReadState", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("subgraphs" = Option<bool>, Query), ("select" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    Query(query): Query<Pairs>,
) -> Result<Json<Value>, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    let query = StateQuery::read(&query)?;
    Ok(Json(state_view(&found, &query).await?))
}

/// Reads an earlier state of a thread.
#[utoipa::path(get, path = "/threads/{thread_id}/state/{checkpoint_id}", operation_id = "langgraphReadStateAt", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("checkpoint_id" = String, Path), ("subgraphs" = Option<bool>, Query), ("select" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn at(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    PathOf((_thread, checkpoint_id)): PathOf<(String, String)>,
    Query(query): Query<Pairs>,
) -> Result<Json<Value>, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    let query = StateQuery {
        checkpoint: Some(checkpoint_id),
        ..StateQuery::read(&query)?
    };
    Ok(Json(state_view(&found, &query).await?))
}

/// Reads the state that the body names.
#[utoipa::path(post, path = "/threads/{thread_id}/state/checkpoint", operation_id = "langgraphReadStateOf", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn of(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    JsonBody(body): JsonBody<Value>,
) -> Result<Json<Value>, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    let query = StateQuery::read_body(&body)?;
    Ok(Json(state_view(&found, &query).await?))
}

/// Appends messages without starting an agent.
#[utoipa::path(post, path = "/threads/{thread_id}/state", operation_id = "langgraphUpdateState", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn update(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    JsonBody(body): JsonBody<Value>,
) -> Result<Json<Value>, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    let asked = StateUpdate::read(&body)?;
    let _turn = api.turns().of(found.id()).await;
    let speech = MessagePost::new(&api, &caller);
    let said = unfollowed(async || {
        check_last(&found, asked.checkpoint.as_deref()).await?;
        let mut input = asked.input.clone();
        leave_out_of(&found, &caller, &mut input).await?;
        threads::post_message(&speech, &found, input.messages_only()?).await
    });
    let said = said.await?;
    let last = match said {
        Some(last) => Some(last),
        None => last_checkpoint(&found).await?,
    };
    let checkpoint = json!({
        "thread_id": shown_id(&found.row().thread), "checkpoint_ns": "", "checkpoint_id": last, "checkpoint_map": null,
    });
    Ok(Json(json!({
        "checkpoint": checkpoint, "checkpoint_id": last, "configurable": checkpoint,
    })))
}

async fn states(found: &ThreadRef, query: HistoryQuery) -> Result<Json<Vec<Value>>, ApiError> {
    let key = found.key();
    let transcript = found.transcript(Filter::Facts).await?;
    let states = Snapshots::of(&transcript);
    let before = match &query.before {
        None => None,
        Some(id) => {
            let place = states.index_of(id);
            Some(place.ok_or_else(|| RequestError::no_checkpoint(id))?)
        }
    };
    let asked = Standing::of(found).await?.asked;
    let places = states.page(before, query.limit, MAX_PAGE_BYTES);
    let page = places.into_iter().map(|place| {
        let state = states.to_json(
            Some(place),
            shown_id(&found.row().thread),
            key,
            Some(&asked),
        );
        query.select.of(state)
    });
    Ok(Json(page.collect()))
}

/// Lists the states of a thread, one after each run, newest first.
///
/// A page of large states has fewer of them than the limit; pass its last state as `before` for the next
/// page.
#[utoipa::path(get, path = "/threads/{thread_id}/history", operation_id = "agentProtocolHistory", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("limit" = Option<usize>, Query), ("before" = Option<String>, Query)),
    responses((status = 200, body = Vec<Object>), (status = "default", body = ErrorBody)))]
pub(super) async fn history(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    Query(query): Query<Pairs>,
) -> Result<Json<Vec<Value>>, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    states(&found, HistoryQuery::read(&query)?).await
}

/// Lists the states of a thread, the newest first. The body has the limit and the cursor.
#[utoipa::path(post, path = "/threads/{thread_id}/history", operation_id = "langgraphHistory", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path)), request_body = Option<Object>,
    responses((status = 200, body = Vec<Object>), (status = "default", body = ErrorBody)))]
pub(super) async fn history_of(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    OptionalBody(body): OptionalBody<Value>,
) -> Result<Json<Vec<Value>>, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    states(&found, HistoryQuery::read_body(&object(body))?).await
}
