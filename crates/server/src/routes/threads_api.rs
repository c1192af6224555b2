//! The Threads API (`OpenAI`'s Assistants v2) and AITP-T01: what the official `openai` clients talk to.
//!
//! What the objects and the refusals are is `interop::threads`'; here they are found, kept and sent.

mod assistants;
mod attach;
mod files;
mod lookup;
mod messages;
mod notes;
mod outputs;
mod runs;
mod steps;
mod stream;
mod threads;

use crate::aitp::BodyPointers;
use crate::error::{ApiError, ErrorFormat};
use crate::protocol::Access::{Delete, Read, Write};
use crate::protocol::ThreadAt::{InBody, NoThread};
use crate::protocol::{Protocol, Route, Rules, ThreadAt};
use crate::state::Api;
use crate::threads::{NamedThread, ThreadRef};
use interop::ids::THREAD;
use interop::threads::{ObjectKind, RequestError};
use serde_json::Value;
use utoipa_axum::routes;

/// The pairs of a query string.
type Pairs = Vec<(String, String)>;

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
        Route::post("/v1/threads/{thread_id}/runs/{run_id}/cancel", Write, THREAD_ID, routes!(runs::cancel)),
        Route::post("/v1/threads/{thread_id}/runs/{run_id}/submit_tool_outputs", Write, THREAD_ID, routes!(outputs::submit)),
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

/// The thread that a path names.
async fn find(api: &Api, named: &NamedThread) -> Result<ThreadRef, ApiError> {
    let found = named.find(api).await?;
    found.ok_or_else(|| not_found(ObjectKind::Thread, named.id()))
}

/// Where a message stands in a body: its content, and what names its actor.
fn message_pointers(pointer: &str, body: &Value) -> BodyPointers {
    let message = body.pointer(pointer);
    let content = message.and_then(|message| message.get("content"));
    let place = match content {
        Some(Value::Array(_)) => BodyPointers::parts(format!("{pointer}/content")),
        Some(_) => BodyPointers::text(format!("{pointer}/content")),
        // AITP's may be a text alone.
        None => BodyPointers::text(pointer),
    };
    place.by(format!("{pointer}/metadata/actor"))
}

fn not_found(what: ObjectKind, id: &str) -> ApiError {
    let id = id.to_owned();
    RequestError::NotFound { what, id }.into()
}

/// The pairs of a query, as readers of them want them.
fn pairs(pairs: &Pairs) -> impl Iterator<Item = (&str, &str)> {
    pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
}
