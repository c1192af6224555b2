//! `LangGraph`'s API, as its SDKs speak it, and the Agent Protocol, on the same paths: a body with `assistant_id` is
//! `LangGraph`'s.
//!
//! What the objects and the refusals are is `interop::langgraph`'s; here they are found, kept and sent.

mod agents;
mod begin;
mod by_run;
mod disconnect;
mod ended;
mod follow;
mod index;
mod protocol;
mod resent;
mod resume;
mod rollback;
mod run;
mod runs;
mod search;
mod state;
mod store;
mod threads;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody, ErrorFormat};
use crate::protocol::Access::{Delete, Open, Read, Write};
use crate::protocol::ThreadAt::{InBody, NoThread, Visible};
use crate::protocol::{Protocol, Route, Rules, ThreadAt};
use crate::state::Api;
use crate::threads::ThreadRef;
use axum::Json;
use axum::routing::any;
use interop::ids::THREAD;
use interop::langgraph::{ErrorKind, InterruptedCall, RequestError, ThreadStatus, uuid_of};
use serde_json::{Value, json};
use std::borrow::Cow;
use timeline::ExecutionId;
use utoipa_axum::routes;

/// The pairs of a query string.
type Pairs = Vec<(String, String)>;

/// `LangGraph`'s API and the Agent Protocol.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::LangGraph,
    prefixes: &[
        ("/threads", ErrorFormat::LangGraph),
        ("/runs", ErrorFormat::LangGraph),
        ("/agents", ErrorFormat::LangGraph),
        ("/assistants", ErrorFormat::LangGraph),
        ("/store", ErrorFormat::LangGraph),
        ("/crons", ErrorFormat::LangGraph),
        ("/info", ErrorFormat::LangGraph),
        ("/ok", ErrorFormat::LangGraph),
    ],
    links: &[("langGraph", "/info")],
    rules: Rules::CLIENTS,
    routes,
};

/// The thread that a path names.
const THREAD_ID: ThreadAt = ThreadAt::PathId("thread_id", THREAD);
/// The run that a path names: its thread is found by it.
const RUN_ID: ThreadAt = ThreadAt::PathPart("run_id");

fn routes() -> Vec<Route> {
    let mut routes = of_agents();
    routes.extend(of_threads());
    routes.extend(of_runs());
    routes.extend(of_store());
    routes.extend(refused());
    routes
}

#[rustfmt::skip]
fn of_agents() -> Vec<Route> {
    vec![
        Route::get("/ok", Open, NoThread, routes!(ok)),
        Route::get("/info", Read, NoThread, routes!(info)),
        Route::post("/assistants", Write, NoThread, routes!(agents::create)),
        Route::post("/assistants/search", Read, NoThread, routes!(agents::search_assistants)),
        Route::post("/assistants/count", Read, NoThread, routes!(agents::count)),
        Route::get("/assistants/{assistant_id}", Read, NoThread, routes!(agents::read_assistant)),
        Route::patch("/assistants/{assistant_id}", Write, NoThread, routes!(agents::change)),
        Route::delete("/assistants/{assistant_id}", Delete, NoThread, routes!(agents::delete)),
        Route::get("/assistants/{assistant_id}/schemas", Read, NoThread, routes!(agents::assistant_schemas)),
        Route::get("/assistants/{assistant_id}/graph", Read, NoThread, routes!(agents::graph)),
        Route::post("/agents/search", Read, NoThread, routes!(agents::search_agents)),
        Route::get("/agents/{agent_id}", Read, NoThread, routes!(agents::read_agent)),
        Route::get("/agents/{agent_id}/schemas", Read, NoThread, routes!(agents::agent_schemas)),
    ]
}

#[rustfmt::skip]
fn of_threads() -> Vec<Route> {
    vec![
        Route::post("/threads", Write, InBody, routes!(threads::create)),
        Route::post("/threads/search", Read, Visible, routes!(search::search)),
        Route::post("/threads/count", Read, Visible, routes!(search::count)),
        Route::get("/threads/{thread_id}", Read, THREAD_ID, routes!(threads::read)),
        Route::patch("/threads/{thread_id}", Write, THREAD_ID, routes!(threads::change)),
        Route::delete("/threads/{thread_id}", Delete, THREAD_ID, routes!(threads::delete)),
        Route::post("/threads/{thread_id}/copy", Write, THREAD_ID, routes!(threads::copy)),
        Route::get("/threads/{thread_id}/state", Read, THREAD_ID, routes!(state::read)),
        Route::post("/threads/{thread_id}/state", Write, THREAD_ID, routes!(state::update)),
        Route::get("/threads/{thread_id}/state/{checkpoint_id}", Read, THREAD_ID, routes!(state::at)),
        Route::post("/threads/{thread_id}/state/checkpoint", Read, THREAD_ID, routes!(state::of)),
        Route::get("/threads/{thread_id}/history", Read, THREAD_ID, routes!(state::history)),
        Route::post("/threads/{thread_id}/history", Read, THREAD_ID, routes!(state::history_of)),
        Route::post("/threads/{thread_id}/commands", Write, THREAD_ID, routes!(protocol::command)),
        Route::post("/threads/{thread_id}/stream/events", Read, THREAD_ID, routes!(protocol::events)),
    ]
}

#[rustfmt::skip]
fn of_runs() -> Vec<Route> {
    vec![
        Route::get("/threads/{thread_id}/runs", Read, THREAD_ID, routes!(runs::list)),
        Route::post("/threads/{thread_id}/runs", Write, THREAD_ID, routes!(runs::create)),
        Route::post("/threads/{thread_id}/runs/wait", Write, THREAD_ID, routes!(runs::wait)),
        Route::post("/threads/{thread_id}/runs/stream", Write, THREAD_ID, routes!(runs::stream)),
        Route::get("/threads/{thread_id}/runs/{run_id}", Read, THREAD_ID, routes!(runs::read)),
        Route::delete("/threads/{thread_id}/runs/{run_id}", Delete, THREAD_ID, routes!(runs::delete)),
        Route::get("/threads/{thread_id}/runs/{run_id}/join", Read, THREAD_ID, routes!(runs::join)),
        Route::get("/threads/{thread_id}/runs/{run_id}/stream", Read, THREAD_ID, routes!(runs::join_stream)),
        Route::post("/threads/{thread_id}/runs/{run_id}/cancel", Write, THREAD_ID, routes!(runs::cancel)),
        Route::post("/runs", Write, InBody, routes!(by_run::create)),
        Route::post("/runs/wait", Write, InBody, routes!(by_run::create_and_wait)),
        Route::post("/runs/stream", Write, InBody, routes!(by_run::create_and_stream)),
        Route::post("/runs/search", Read, Visible, routes!(by_run::search)),
        Route::get("/runs/{run_id}", Read, RUN_ID, routes!(by_run::read)),
        Route::delete("/runs/{run_id}", Delete, RUN_ID, routes!(by_run::delete)),
        Route::get("/runs/{run_id}/wait", Read, RUN_ID, routes!(by_run::wait)),
        Route::get("/runs/{run_id}/stream", Read, RUN_ID, routes!(by_run::stream)),
        Route::post("/runs/{run_id}/cancel", Write, RUN_ID, routes!(by_run::cancel)),
    ]
}

/// The store belongs to no thread: its handlers refuse restricted keys.
fn of_store() -> Vec<Route> {
    vec![
        Route::put("/store/items", Write, NoThread, routes!(store::put)),
        Route::get("/store/items", Read, NoThread, routes!(store::get)),
        Route::delete("/store/items", Delete, NoThread, routes!(store::delete)),
        Route::post(
            "/store/items/search",
            Read,
            NoThread,
            routes!(store::search),
        ),
        Route::post(
            "/store/namespaces",
            Read,
            NoThread,
            routes!(store::namespaces),
        ),
    ]
}

/// What both protocols have and this server has not, and why.
const REFUSED: [(&[&str], &str); 4] = [
    (
        &[
            "/crons",
            "/crons/{*rest}",
            "/runs/crons",
            "/runs/crons/{*rest}",
            "/threads/{thread_id}/runs/crons",
        ],
        "this server begins no runs by the clock",
    ),
    (
        &[
            "/assistants/{assistant_id}/versions",
            "/assistants/{assistant_id}/latest",
            "/assistants/{assistant_id}/subgraphs",
            "/assistants/{assistant_id}/subgraphs/{*rest}",
        ],
        "the configuration has each agent once, whole: it has no versions and no subgraphs",
    ),
    (
        &["/threads/{thread_id}/stream"],
        "a thread is followed by /threads/{thread_id}/stream/events, and a run by its own stream",
    ),
    (
        &["/runs/batch", "/runs/cancel", "/threads/prune"],
        "one request is about one run or thread",
    ),
];

/// Refuses by name what is not served.
fn refused() -> Vec<Route> {
    let routes = REFUSED.iter().flat_map(|(paths, why)| {
        let refuse =
            any(async move || ApiError::from(RequestError::new(ErrorKind::NotAllowed, *why)));
        let paths = paths.iter();
        paths.map(move |path| Route::any(path, NoThread, refuse.clone()))
    });
    routes.collect()
}

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
