//! The routes of the Threads API: for each its method, path, scope, and the place of the thread id.

use super::{answers, assistants, files, messages, runs, steps, threads};
use crate::error::ErrorFormat;
use crate::protocol::Access::{Delete, Read, Write};
use crate::protocol::ThreadAt::{InBody, NoThread};
use crate::protocol::{Protocol, Route, Rules, ThreadAt};
use interop::ids::THREAD;
use utoipa_axum::routes;

/// The Threads API.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::OpenAi,
    prefixes: &[],
    links: &[],
    rules: Rules {
        empty_body_is_object: true,
        ..Rules::CLIENTS
    },
    routes,
    bodies: include_str!("bodies.json"),
};

/// The thread that a path names.
const THREAD_ID: ThreadAt = ThreadAt::PathId("thread_id", THREAD);

#[rustfmt::skip]
fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/threads", Write, InBody, routes!(threads::create)),
        Route::post("/v1/thread", Write, InBody, routes!(threads::create_aitp)),
        Route::get("/v1/threads/{thread_id}", Read, THREAD_ID, routes!(threads::read)),
        Route::post("/v1/threads/{thread_id}", Write, THREAD_ID, routes!(threads::modify)),
        Route::delete("/v1/threads/{thread_id}", Delete, THREAD_ID, routes!(threads::delete)),
        Route::get("/v1/threads/{thread_id}/messages", Read, THREAD_ID, routes!(messages::list)),
        Route::post("/v1/threads/{thread_id}/messages", Write, THREAD_ID, routes!(messages::create)),
        Route::get("/v1/threads/{thread_id}/messages/{message_id}", Read, THREAD_ID, routes!(messages::read)),
        Route::post("/v1/threads/{thread_id}/messages/{message_id}", Write, THREAD_ID, routes!(messages::modify)),
        Route::delete("/v1/threads/{thread_id}/messages/{message_id}", Delete, THREAD_ID, routes!(messages::delete)),
        Route::post("/v1/threads/runs", Write, InBody, routes!(runs::create_with_thread)),
        Route::get("/v1/threads/{thread_id}/runs", Read, THREAD_ID, routes!(runs::list)),
        Route::post("/v1/threads/{thread_id}/runs", Write, THREAD_ID, routes!(runs::create)),
        Route::get("/v1/threads/{thread_id}/runs/{run_id}", Read, THREAD_ID, routes!(runs::read)),
        Route::post("/v1/threads/{thread_id}/runs/{run_id}", Write, THREAD_ID, routes!(runs::modify)),
        Route::post("/v1/threads/{thread_id}/runs/{run_id}/cancel", Write, THREAD_ID, routes!(runs::cancel)).ends_runs(),
        Route::post("/v1/threads/{thread_id}/runs/{run_id}/submit_tool_outputs", Write, THREAD_ID, routes!(answers::submit)),
        Route::get("/v1/threads/{thread_id}/runs/{run_id}/steps", Read, THREAD_ID, routes!(steps::list)),
        Route::get("/v1/threads/{thread_id}/runs/{run_id}/steps/{step_id}", Read, THREAD_ID, routes!(steps::read)),
        // Assistants that were made and files belong to no thread: their handlers refuse restricted keys.
        Route::get("/v1/assistants", Read, NoThread, routes!(assistants::list)),
        Route::post("/v1/assistants", Write, NoThread, routes!(assistants::create)),
        Route::get("/v1/assistants/{assistant_id}", Read, NoThread, routes!(assistants::read)),
        Route::post("/v1/assistants/{assistant_id}", Write, NoThread, routes!(assistants::modify)),
        Route::delete("/v1/assistants/{assistant_id}", Delete, NoThread, routes!(assistants::delete)),
        Route::get("/v1/files", Read, NoThread, routes!(files::list)),
        Route::post("/v1/files", Write, NoThread, routes!(files::upload)),
        Route::get("/v1/files/{file_id}", Read, NoThread, routes!(files::read)),
        Route::delete("/v1/files/{file_id}", Delete, NoThread, routes!(files::delete)),
        Route::get("/v1/files/{file_id}/content", Read, NoThread, routes!(files::content)),
    ]
}
