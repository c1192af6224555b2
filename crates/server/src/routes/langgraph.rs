//! `LangGraph`'s API, as its SDKs speak it, and the Agent Protocol, on the same paths: a body with `assistant_id` is
//! `LangGraph`'s.
//!
//! What the objects and the refusals are is `interop::langgraph`'s; here they are found, kept and sent.

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

/// Says that the server answers.
#[utoipa::path(get, path = "/ok", operation_id = "langgraphOk", tag = "langgraph", responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn ok() -> Json<Value> {
    Json(json!({"ok": true}))
}

/// Says what of `LangGraph` is served.
#[utoipa::path(get, path = "/info", operation_id = "langgraphInfo", tag = "langgraph", security(("key" = [])),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "flags": {"assistants": true, "crons": false, "store": true, "langsmith": false},
    }))
}

/// A body that may be absent, as an object.
fn object(body: Value) -> Value {
    if body.is_null() { json!({}) } else { body }
}

/// The stored thread of an id.
async fn found(api: &Api, caller: &Caller, id: &str) -> Result<ThreadRef, ApiError> {
    let found = find(api, caller, id).await?;
    found.ok_or_else(|| not_found(id))
}

/// The thread of an id whose runs are read: an ephemeral one, too, while it is there.
async fn found_any(api: &Api, caller: &Caller, id: &str) -> Result<ThreadRef, ApiError> {
    let found = ThreadRef::find_any(api, caller, THREAD, &hyphenated(id)).await?;
    found.ok_or_else(|| not_found(id))
}

/// The stored thread of an id or a key, if there is one that the caller may touch.
async fn find(api: &Api, caller: &Caller, id: &str) -> Result<Option<ThreadRef>, ApiError> {
    ThreadRef::find(api, caller, THREAD, &hyphenated(id)).await
}

/// A UUID as we write it; another text as it is.
fn hyphenated(id: &str) -> Cow<'_, str> {
    uuid_of(id).map_or(Cow::Borrowed(id), Cow::Owned)
}

fn not_found(id: &str) -> ApiError {
    if uuid_of(id).is_none() {
        return RequestError::at("/thread_id", "expected a UUID").into();
    }
    RequestError::no_thread(id).into()
}

/// How a thread stands, and what it asks.
struct Standing {
    status: ThreadStatus,
    /// The execution that left the calls.
    execution: Option<ExecutionId>,
    asked: Vec<InterruptedCall>,
}

impl Standing {
    /// Costs what waits.
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

    /// What is shown of it.
    fn interrupted(&self) -> Option<(&ExecutionId, &[InterruptedCall])> {
        Some((self.execution.as_ref()?, self.asked.as_slice()))
    }
}

/// The calls of a thread and those beneath it that wait for somebody.
async fn asked(found: &ThreadRef) -> Result<Vec<InterruptedCall>, ApiError> {
    let (pending, _) = found.pending().await?;
    let pending = pending.iter();
    let asked =
        pending.filter_map(|it| InterruptedCall::of(found.key(), &it.address.key, &it.call));
    Ok(asked.collect())
}
