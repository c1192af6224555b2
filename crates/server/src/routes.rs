//! The routes, one module a noun.

mod a2a;
pub(crate) mod ag_ui;
pub(crate) mod agents;
pub(crate) mod answers;
pub(crate) mod chat;
pub(crate) mod documents;
pub(crate) mod events;
pub(crate) mod health;
mod langgraph;
mod listing;
pub(crate) mod messages;
mod responses;
pub(crate) mod runs;
pub(crate) mod threads;
mod threads_api;
mod tree;
mod view;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest key of a thread, in bytes.
const MAX_KEY_BYTES: usize = 512;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Loomline",
        description = "The record and the runtime of agent threads. Every error is {\"error\": {\"code\", \"message\", …}}; the codes are stable.",
    ),
    modifiers(&BearerKey),
)]
struct Document;

struct BearerKey;

impl utoipa::Modify for BearerKey {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        components.add_security_scheme(
            "key",
            SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
        );
    }
}

/// What anyone may ask.
pub(crate) fn open() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::openapi))
        .merge(a2a::open())
        .merge(langgraph::open())
}

/// What needs a key.
pub(crate) fn guarded() -> OpenApiRouter<Api> {
    let v1 = OpenApiRouter::new()
        .routes(routes!(threads::list, threads::create))
        .routes(routes!(threads::read, threads::delete))
        .routes(routes!(threads::fork))
        .routes(routes!(threads::close))
        .routes(routes!(threads::reopen))
        .routes(routes!(threads::cancel))
        .routes(routes!(messages::list, messages::post))
        .routes(routes!(answers::pending))
        .routes(routes!(answers::post))
        .routes(routes!(runs::list))
        .routes(routes!(runs::read))
        .routes(routes!(runs::cancel))
        .routes(routes!(events::follow))
        .routes(routes!(documents::export))
        .routes(routes!(documents::import))
        .routes(routes!(agents::list));
    OpenApiRouter::new()
        .nest("/api/v1", v1)
        .merge(threads_api::routes())
        .merge(responses::routes())
        .merge(a2a::routes())
        .merge(langgraph::routes())
        .routes(routes!(chat::post))
        .routes(routes!(chat::resume))
        .routes(routes!(chat::messages))
        .routes(routes!(chat::stop))
        .routes(routes!(ag_ui::run_default))
        .routes(routes!(ag_ui::run_agent))
        .routes(routes!(ag_ui::messages))
        .routes(routes!(health::metrics))
}

/// The OpenAPI document (3.1) of all routes, as JSON.
pub fn openapi() -> Result<String, serde_json::Error> {
    document().to_pretty_json()
}

/// The OpenAPI document of all routes.
fn document() -> utoipa::openapi::OpenApi {
    open().merge(guarded()).into_openapi()
}

/// A key that a thread may be made with.
fn check_key(key: &str, pointer: &str) -> Result<(), ApiError> {
    let what = if key.is_empty() {
        "a key is not empty".to_owned()
    } else if key.len() > MAX_KEY_BYTES {
        format!("a key has at most {MAX_KEY_BYTES} bytes")
    } else if matches!(key, "." | "..") || key.chars().any(char::is_control) {
        "a key is not \".\" or \"..\" and has no control characters".to_owned()
    } else {
        return Ok(());
    };
    Err(ApiError::field(pointer, what))
}

/// The same, where the caller names it in the body. One that is made up because none is named can be
/// reached only by who may touch all threads.
fn check_named_key(caller: &Caller, key: Option<&str>, pointer: &str) -> Result<(), ApiError> {
    match key {
        Some(key) => {
            check_key(key, pointer)?;
            caller.check(key)
        }
        None if caller.rights.threads.is_some() => Err(ApiError::ForbiddenThread),
        None => Ok(()),
    }
}
