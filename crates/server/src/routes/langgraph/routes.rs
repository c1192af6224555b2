//! The routes of `LangGraph` and the Agent Protocol: for each its method, path, scope, and the place of
//! the thread id.

use super::{agents, by_run, protocol, runs, search, state, store, threads};
use crate::error::{ApiError, ErrorFormat};
use crate::protocol::Access::{Delete, Open, Read, Write};
use crate::protocol::ThreadAt::{InBody, NoThread, Visible};
use crate::protocol::{Protocol, Route, Rules, ThreadAt};
use axum::routing::any;
use interop::ids::THREAD;
use interop::langgraph::{ErrorKind, RequestError};
use utoipa_axum::routes;

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
    bodies: include_str!("bodies.json"),
};

/// The thread that a path names.
const THREAD_ID: ThreadAt = ThreadAt::PathId("thread_id", THREAD);

/// The run that a path names; its thread is found by it.
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
        Route::get("/ok", Open, NoThread, routes!(super::ok)),
        Route::get("/info", Read, NoThread, routes!(super::info)),
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
        Route::post("/threads/{thread_id}/runs/{run_id}/cancel", Write, THREAD_ID, routes!(runs::cancel)).ends_runs(),
        Route::post("/runs", Write, InBody, routes!(by_run::create)),
        Route::post("/runs/wait", Write, InBody, routes!(by_run::create_and_wait)),
        Route::post("/runs/stream", Write, InBody, routes!(by_run::create_and_stream)),
        Route::post("/runs/search", Read, Visible, routes!(by_run::search)),
        Route::get("/runs/{run_id}", Read, RUN_ID, routes!(by_run::read)),
        Route::delete("/runs/{run_id}", Delete, RUN_ID, routes!(by_run::delete)),
        Route::get("/runs/{run_id}/wait", Read, RUN_ID, routes!(by_run::wait)),
        Route::get("/runs/{run_id}/stream", Read, RUN_ID, routes!(by_run::stream)),
        Route::post("/runs/{run_id}/cancel", Write, RUN_ID, routes!(by_run::cancel)).ends_runs(),
    ]
}

/// The routes of the store. It belongs to no thread: the handlers refuse restricted keys.
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

/// The parts of both protocols that the server does not support, and the reason.
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

/// Routes that refuse the unsupported parts with their reason.
fn refused() -> Vec<Route> {
    let routes = REFUSED.iter().flat_map(|(paths, why)| {
        let refuse =
            any(async move || ApiError::from(RequestError::new(ErrorKind::NotAllowed, *why)));
        let paths = paths.iter();
        paths.map(move |path| Route::any(path, NoThread, refuse.clone()))
    });
    routes.collect()
}
