//! Open Responses, and what `OpenAI`'s API has beside it: stored responses, conversations, models.
//!
//! A response is an execution, a conversation is a thread. What requests mean and how responses look
//! is decided in [`interop::responses`]; here are threads found, begun, followed and forgotten.

mod begin;
mod compact;
mod conversations;
mod create;
mod items;
mod models;
pub(super) mod passing;
mod past;
mod refused;
mod site;
mod socket;
mod stored;
mod stream;
mod walk;

use crate::state::Api;
use axum::response::{IntoResponse, Response};
use http::header;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes below `/v1` that are Open Responses' and `OpenAI`'s.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(create::post, socket::open))
        .routes(routes!(compact::count))
        .routes(routes!(compact::post))
        .routes(routes!(stored::read, stored::delete))
        .routes(routes!(stored::cancel))
        .routes(routes!(stored::input))
        .routes(routes!(conversations::create))
        .routes(routes!(
            conversations::read,
            conversations::update,
            conversations::delete
        ))
        .routes(routes!(items::list, items::create))
        .routes(routes!(items::read, items::delete))
        .routes(routes!(models::list))
        .routes(routes!(models::read))
}

/// An answer that is JSON text already.
fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
