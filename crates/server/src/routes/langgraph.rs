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
use crate::error::{ApiError, ErrorBody};
use crate::protocol::{key_of, thread_in};
use crate::state::Api;
use axum::Json;
use axum::routing::any;
pub(crate) use ended::EndedRuns;
use interop::ids::THREAD;
use interop::langgraph::{Asked, ErrorKind, RequestError, ThreadStatus, shown_id, uuid_of};
use runtime::{Runtime, TenantId, ThreadRow};
use serde_json::{Value, json};
use std::borrow::Cow;
use timeline::ExecutionId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The pairs of a query string.
type Pairs = Vec<(String, String)>;

/// What anyone may ask.
pub(super) fn open() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(ok))
}

/// What needs a key.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(info))
        .merge(of_agents())
        .merge(of_threads())
        .merge(of_runs())
        .merge(of_store())
        .merge(refused())
}

fn of_agents() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(agents::create))
        .routes(routes!(agents::search_assistants))
        .routes(routes!(agents::count))
        .routes(routes!(
            agents::read_assistant,
            agents::change,
            agents::delete
        ))
        .routes(routes!(agents::assistant_schemas))
        .routes(routes!(agents::graph))
        .routes(routes!(agents::search_agents))
        .routes(routes!(agents::read_agent))
        .routes(routes!(agents::agent_schemas))
}

fn of_threads() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(threads::create))
        .routes(routes!(search::search))
        .routes(routes!(search::count))
        .routes(routes!(threads::read, threads::change, threads::delete))
        .routes(routes!(threads::copy))
        .routes(routes!(state::read, state::update))
        .routes(routes!(state::at))
        .routes(routes!(state::of))
        .routes(routes!(state::history, state::history_of))
        .routes(routes!(protocol::command))
        .routes(routes!(protocol::events))
}

fn of_runs() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(runs::list, runs::create))
        .routes(routes!(runs::wait))
        .routes(routes!(runs::stream))
        .routes(routes!(runs::read, runs::delete))
        .routes(routes!(runs::join))
        .routes(routes!(runs::join_stream))
        .routes(routes!(runs::cancel))
        .routes(routes!(by_run::create))
        .routes(routes!(by_run::create_and_wait))
        .routes(routes!(by_run::create_and_stream))
        .routes(routes!(by_run::search))
        .routes(routes!(by_run::read, by_run::delete))
        .routes(routes!(by_run::wait))
        .routes(routes!(by_run::stream))
        .routes(routes!(by_run::cancel))
}

fn of_store() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(store::put, store::get, store::delete))
        .routes(routes!(store::search))
        .routes(routes!(store::namespaces))
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
fn refused() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new();
    for (paths, why) in REFUSED {
        let refuse =
            any(async move || ApiError::from(RequestError::new(ErrorKind::NotAllowed, why)));
        for path in paths {
            router = router.route(path, refuse.clone());
        }
    }
    router
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

/// A thread that a request names, and where it is kept.
struct Found {
    /// The server's own, or that of what leaves no trace.
    runtime: Runtime,
    row: ThreadRow,
}

impl Found {
    /// The thread of this id, if the caller may touch it.
    async fn of(api: &Api, caller: &Caller, id: &str) -> Result<Self, ApiError> {
        Self::among([api.runtime()], caller, id).await
    }

    /// The thread of this id whose runs are asked about: one that leaves no trace, too, while it is there.
    async fn of_runs(api: &Api, caller: &Caller, id: &str) -> Result<Self, ApiError> {
        Self::among([api.runtime(), api.app().passing()], caller, id).await
    }

    /// The first thread of this id in these runtimes.
    async fn among<const N: usize>(
        runtimes: [&Runtime; N],
        caller: &Caller,
        id: &str,
    ) -> Result<Self, ApiError> {
        for runtime in runtimes {
            if let Some(row) = find(runtime, caller, id).await? {
                let runtime = runtime.clone();
                return Ok(Self { runtime, row });
            }
        }
        if uuid_of(id).is_none() {
            return Err(RequestError::at("/thread_id", "expected a UUID").into());
        }
        Err(RequestError::no_thread(id).into())
    }

    fn tenant(&self) -> &TenantId {
        &self.row.tenant
    }

    fn key(&self) -> &str {
        key_of(&self.row)
    }

    /// The id that clients know.
    fn shown(&self) -> &str {
        shown_id(&self.row.thread)
    }

    /// Our id.
    fn own(&self) -> &str {
        self.row.thread.id.as_str()
    }
}

/// The thread of this id or key, if there is one in the runtime that the caller may touch.
async fn find(runtime: &Runtime, caller: &Caller, id: &str) -> Result<Option<ThreadRow>, ApiError> {
    let id = uuid_of(id).map_or(Cow::Borrowed(id), Cow::Owned);
    thread_in(runtime, caller, THREAD, &id).await
}

/// How a thread stands, and what it asks.
struct Standing {
    status: ThreadStatus,
    /// The execution that left the calls.
    execution: Option<ExecutionId>,
    asked: Vec<Asked>,
}

impl Standing {
    /// Costs what waits.
    async fn of(found: &Found) -> Result<Self, ApiError> {
        let (state, _) = found.runtime.state(found.tenant(), found.key()).await?;
        let is_waiting = state.waiting().len() > 0;
        let stands = state
            .thread()
            .map_or(found.row.thread.status, |it| it.status);
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
    fn shown(&self) -> Option<(&ExecutionId, &[Asked])> {
        Some((self.execution.as_ref()?, self.asked.as_slice()))
    }
}

/// The calls of a thread and those beneath it that wait for somebody.
async fn asked(found: &Found) -> Result<Vec<Asked>, ApiError> {
    let key = found.key();
    let (pending, _) = found.runtime.pending(found.tenant(), key).await?;
    let pending = pending.iter();
    let asked = pending.filter_map(|it| Asked::of(key, &it.place.key, &it.call));
    Ok(asked.collect())
}
