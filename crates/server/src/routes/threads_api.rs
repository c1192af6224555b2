//! The Threads API (`OpenAI`'s Assistants v2) and AITP-T01, for the official `openai` clients.
//!
//! `interop::threads` has the objects and the errors. This module looks them up, stores them and sends
//! them.

mod answers;
mod assistants;
mod attach;
mod files;
mod lookup;
mod messages;
mod notes;
mod routes;
mod runs;
mod steps;
mod stream;
mod threads;

use crate::aitp::BodyPointers;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::{NamedThread, ThreadRef};
use interop::threads::{ObjectKind, RequestError};
pub(crate) use routes::PROTOCOL;
use serde_json::Value;

/// The pairs of a query string.
type Pairs = Vec<(String, String)>;

/// The thread that a path names.
async fn find(api: &Api, named: &NamedThread) -> Result<ThreadRef, ApiError> {
    let found = named.find(api).await?;
    found.ok_or_else(|| not_found(ObjectKind::Thread, named.id()))
}

/// The JSON pointers of a message in a body: its content, and its actor.
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

/// The pairs of a query as string slices.
fn pairs(pairs: &Pairs) -> impl Iterator<Item = (&str, &str)> {
    pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
}
