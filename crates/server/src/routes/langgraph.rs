//! `LangGraph`'s API, as its SDKs use it, and the Agent Protocol on the same paths: a body with
//! `assistant_id` is `LangGraph`'s.
//!
//! `interop::langgraph` has the objects and the errors. This module looks them up, stores them and sends
//! them.

mod agents;
mod answers;
mod by_run;
mod disconnect;
mod ended;
mod index;
mod protocol;
mod resent;
mod rollback;
mod routes;
mod run;
mod runs;
mod search;
mod start;
mod state;
mod store;
mod stream;
mod threads;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::ThreadRef;
use axum::Json;
use interop::ids::THREAD;
use interop::langgraph::{InterruptedCall, RequestError, ThreadStatus, uuid_of};
pub(crate) use routes::PROTOCOL;
use serde_json::{Value, json};
use std::borrow::Cow;
use timeline::ExecutionId;

/// The pairs of a query string.
type Pairs = Vec<(String, String)>;

/// Reports that the server works.
#[utoipa::path(get, path = "/ok", operation_id = "langgraphOk", tag = "langgraph", responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn ok() -> Json<Value> {
    Json(json!({"ok": true}))
}

/// Lists the supported parts of `LangGraph`.
#[utoipa::path(get, path = "/info", operation_id = "langgraphInfo", tag = "langgraph", security(("key" = [])),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "flags": {"assistants": true, "crons": false, "store": true, "langsmith": false},
    }))
}

/// An optional body as an object.
fn object(body: Value) -> Value {
    if body.is_null() { json!({}) } else { body }
}

/// The stored thread of an id.
async fn found(api: &Api, caller: &Caller, id: &str) -> Result<ThreadRef, ApiError> {
    let found = find(api, caller, id).await?;
    found.ok_or_else(|| not_found(id))
}

/// The thread with this id, for reading its runs; also one that is not stored, while it exists.
async fn found_any(api: &Api, caller: &Caller, id: &str) -> Result<ThreadRef, ApiError> {
    let found = ThreadRef::find_any(api, caller, THREAD, &hyphenated(id)).await?;
    found.ok_or_else(|| not_found(id))
}

/// The stored thread with this id or key; none if it does not exist or the caller may not access it.
async fn find(api: &Api, caller: &Caller, id: &str) -> Result<Option<ThreadRef>, ApiError> {
    ThreadRef::find(api, caller, THREAD, &hyphenated(id)).await
}

/// A UUID in the server's notation; any other text unchanged.
fn hyphenated(id: &str) -> Cow<'_, str> {
    uuid_of(id).map_or(Cow::Borrowed(id), Cow::Owned)
}

fn not_found(id: &str) -> ApiError {
    if uuid_of(id).is_none() {
        return RequestError::at("/thread_id", "expected a UUID").into();
    }
    RequestError::no_thread(id).into()
}

/// The state of a thread, and its pending calls.
struct Standing {
    status: ThreadStatus,
    /// The execution that ended with the calls.
    execution: Option<ExecutionId>,
    asked: Vec<InterruptedCall>,
}

impl Standing {
    /// Costs time proportional to the pending calls.
    async fn of(found: &ThreadRef) -> Result<Self, ApiError> {
        let (state, _) = found.state().await?;
        let is_waiting = state.waiting().len() > 0;
        let stands = state
            .thread()
            .map_or(found.row().thread.status, |it| it.status);
        let open = state.open().filter(|_| !is_waiting);
        let asked = match open {
            Some(_) => asked(found).await?,
            None => Vec::new(),
        };
        // Where calls wait and nobody is asked, sub-agents are at work.
        let works = open.is_some() && asked.is_empty();
        Ok(Self {
            status: ThreadStatus::of(stands, is_waiting || works, !asked.is_empty()),
            execution: open.map(|open| open.execution.id.clone()),
            asked,
        })
    }

    /// The pending calls and their execution.
    fn interrupted(&self) -> Option<(&ExecutionId, &[InterruptedCall])> {
        Some((self.execution.as_ref()?, self.asked.as_slice()))
    }
}

/// The pending calls of a thread and its descendants.
async fn asked(found: &ThreadRef) -> Result<Vec<InterruptedCall>, ApiError> {
    let (pending, _) = found.pending().await?;
    let pending = pending.iter();
    let asked =
        pending.filter_map(|it| InterruptedCall::of(found.key(), &it.address.key, &it.call));
    Ok(asked.collect())
}
