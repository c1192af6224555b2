//! Open Responses, and further routes of `OpenAI`'s API: stored responses, conversations, models.
//!
//! A response is an execution, a conversation is a thread. [`interop::responses`] parses requests and
//! formats responses. These routes find, create, follow and delete threads.

mod compact;
pub(super) mod continuation;
mod conversations;
mod create;
mod items;
mod lookup;
pub(super) mod models;
mod page_items;
mod past;
pub(super) mod refused;
mod routes;
mod socket;
pub(super) mod start;
mod stream;

use axum::response::{IntoResponse, Response};
use http::header;
pub(crate) use routes::PROTOCOL;

/// An answer that is JSON text already.
fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
