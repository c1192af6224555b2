//! The routes of Open Responses: for each its method, path, scope, and the place of the thread id.

use super::{compact, conversations, create, items, lookup, models, socket};
use crate::error::ErrorFormat;
use crate::protocol::Access::{Delete, Read, Write};
use crate::protocol::ThreadAt::{InBody, NoThread};
use crate::protocol::{Protocol, Route, Rules, ThreadAt};
use interop::ids::CONVERSATION;
use utoipa_axum::routes;

/// Open Responses and `OpenAI`'s Responses, Conversations and Models.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::OpenAi,
    prefixes: &[("/v1", ErrorFormat::OpenAi)],
    links: &[("openAi", "/v1/models")],
    rules: Rules {
        empty_body_is_object: true,
        ..Rules::CLIENTS
    },
    routes,
    bodies: include_str!("bodies.json"),
};

/// The conversation that a path names.
const CONVERSATION_ID: ThreadAt = ThreadAt::PathId("conversation_id", CONVERSATION);

/// The response that a path names: its id has its thread's.
const RESPONSE_ID: ThreadAt = ThreadAt::PathPart("response_id");

#[rustfmt::skip]
fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/responses", Write, InBody, routes!(create::post)),
        // A WebSocket whose messages create responses.
        Route::get("/v1/responses", Write, InBody, routes!(socket::open)),
        Route::post("/v1/responses/input_tokens", Read, InBody, routes!(compact::count)),
        Route::post("/v1/responses/compact", Write, InBody, routes!(compact::post)),
        Route::get("/v1/responses/{response_id}", Read, RESPONSE_ID, routes!(lookup::read)),
        Route::delete("/v1/responses/{response_id}", Delete, RESPONSE_ID, routes!(lookup::delete)),
        Route::post("/v1/responses/{response_id}/cancel", Write, RESPONSE_ID, routes!(lookup::cancel)).ends_runs(),
        Route::get("/v1/responses/{response_id}/input_items", Read, RESPONSE_ID, routes!(lookup::input)),
        Route::post("/v1/conversations", Write, InBody, routes!(conversations::create)),
        Route::get("/v1/conversations/{conversation_id}", Read, CONVERSATION_ID, routes!(conversations::read)),
        Route::post("/v1/conversations/{conversation_id}", Write, CONVERSATION_ID, routes!(conversations::update)),
        Route::delete("/v1/conversations/{conversation_id}", Delete, CONVERSATION_ID, routes!(conversations::delete)),
        Route::get("/v1/conversations/{conversation_id}/items", Read, CONVERSATION_ID, routes!(items::list)),
        Route::post("/v1/conversations/{conversation_id}/items", Write, CONVERSATION_ID, routes!(items::create)),
        Route::get("/v1/conversations/{conversation_id}/items/{item_id}", Read, CONVERSATION_ID, routes!(items::read)),
        Route::delete("/v1/conversations/{conversation_id}/items/{item_id}", Delete, CONVERSATION_ID, routes!(items::delete)),
        Route::get("/v1/models", Read, NoThread, routes!(models::list)),
        Route::get("/v1/models/{model}", Read, NoThread, routes!(models::read)),
    ]
}
