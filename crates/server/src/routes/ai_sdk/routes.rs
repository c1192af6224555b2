//! The routes of the AI SDK: for each its method, path, scope, and the place of the thread id.

use crate::error::ErrorFormat;
use crate::protocol::Access::{Read, Write};
use crate::protocol::ThreadAt::{InBody, PathKey};
use crate::protocol::{Protocol, Route, Rules};
use utoipa_axum::routes;

/// The AI SDK's chats.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::Own,
    prefixes: &[],
    links: &[("aiSdk", "/api/chat")],
    rules: Rules::CLIENTS,
    routes,
    bodies: include_str!("bodies.json"),
};

#[rustfmt::skip]
fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/chat", Write, InBody, routes!(super::post)),
        Route::get("/api/chat/{id}/stream", Read, PathKey("id"), routes!(super::resume)),
        Route::get("/api/chat/{id}/messages", Read, PathKey("id"), routes!(super::messages)),
        Route::post("/api/chat/{id}/stop", Write, PathKey("id"), routes!(super::stop)),
    ]
}
