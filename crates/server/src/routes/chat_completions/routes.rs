//! The routes of Chat Completions: for each its method, path, scope, and the place of the thread id.

use crate::error::ErrorFormat;
use crate::protocol::Access::Write;
use crate::protocol::ThreadAt::InBody;
use crate::protocol::{Protocol, Route, Rules};
use utoipa_axum::routes;

/// `OpenAI`'s Chat Completions. Its models are those of Responses.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::OpenAi,
    prefixes: &[("/v1/chat", ErrorFormat::OpenAi)],
    links: &[("chatCompletions", "/v1/chat/completions")],
    rules: Rules {
        empty_body_is_object: true,
        ..Rules::CLIENTS
    },
    routes,
    bodies: include_str!("bodies.json"),
};

fn routes() -> Vec<Route> {
    let post = Route::post("/v1/chat/completions", Write, InBody, routes!(super::post));
    vec![post]
}
