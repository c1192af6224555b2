//! The routes of MCP: for each its method, path, scope, and the place of the thread id.

use crate::error::ErrorFormat;
use crate::protocol::{Access, Protocol, Route, Rules, ThreadAt};
use utoipa_axum::routes;

/// The Model Context Protocol.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::Mcp,
    prefixes: &[],
    links: &[("mcp", "/mcp")],
    rules: Rules {
        checks_origin: true,
        ..Rules::CLIENTS
    },
    routes,
    bodies: include_str!("bodies.json"),
};

fn routes() -> Vec<Route> {
    let (access, thread) = (Access::ByBody, ThreadAt::InBody);
    vec![Route::post("/mcp", access, thread, routes!(super::post))]
}
