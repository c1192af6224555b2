//! Open Responses, and what `OpenAI`'s API has beside it: stored responses, conversations, models.
//!
//! A response is an execution, a conversation is a thread. What requests mean and how responses look
//! is decided in [`interop::responses`]; here are threads found, begun, followed and forgotten.

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
