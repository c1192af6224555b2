//! The routes of AG-UI: for each its method, path, scope, and the place of the thread id.

use crate::error::ErrorFormat;
use crate::protocol::Access::{Read, Write};
use crate::protocol::ThreadAt::{InBody, PathKey};
use crate::protocol::{Protocol, Route, Rules};
use utoipa_axum::routes;

/// AG-UI 1.0.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::Own,
    prefixes: &[("/ag-ui", ErrorFormat::Own)],
    links: &[("agUi", "/ag-ui")],
    rules: Rules::CLIENTS,
    routes,
    bodies: include_str!("bodies.json"),
};

#[rustfmt::skip]
fn routes() -> Vec<Route> {
    vec![
        Route::post("/ag-ui", Write, InBody, routes!(super::run_default)),
        Route::post("/ag-ui/agents/{agent}", Write, InBody, routes!(super::run_agent)),
        Route::get("/ag-ui/threads/{key}/messages", Read, PathKey("key"), routes!(super::messages)),
    ]
}
