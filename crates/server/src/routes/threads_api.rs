//! The Threads API (`OpenAI`'s Assistants v2) and AITP-T01: what the official `openai` clients talk to.
//!
//! What the objects and the refusals are is `interop::threads`'; here they are found, kept and sent.

mod assistants;
mod attach;
mod files;
mod look;
mod messages;
mod notes;
mod outputs;
mod runs;
mod steps;
mod stream;
mod threads;

use crate::aitp::Place;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::idempotency::fingerprint;
use crate::protocol::{key_of, thread_of};
use crate::state::Api;
use interop::ids::THREAD;
use interop::threads::{ObjectKind, RequestError};
use runtime::ThreadRow;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The pairs of a query string.
type Pairs = Vec<(String, String)>;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(threads::create))
        .routes(routes!(threads::create_aitp))
        .routes(routes!(threads::read, threads::modify, threads::delete))
        .routes(routes!(messages::list, messages::create))
        .routes(routes!(messages::read, messages::modify, messages::delete))
        .routes(routes!(runs::create_with_thread))
        .routes(routes!(runs::list, runs::create))
        .routes(routes!(runs::read, runs::modify))
        .routes(routes!(runs::cancel))
        .routes(routes!(outputs::submit))
        .routes(routes!(steps::list))
        .routes(routes!(steps::read))
        .routes(routes!(assistants::list, assistants::create))
        .routes(routes!(
            assistants::read,
            assistants::modify,
            assistants::delete
        ))
        .merge(files())
}

/// Files, which belong to no thread.
fn files() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(files::list, files::upload))
        .routes(routes!(files::read, files::delete))
        .routes(routes!(files::content))
}

/// A thread that a request names, and who asks.
struct Found {
    /// Who asks. A key that is for some threads only has no files and no assistants that were made.
    caller: Caller,
    row: ThreadRow,
}

impl Found {
    /// The thread of this id, if the caller may touch it.
    async fn of(api: &Api, caller: Caller, id: &str) -> Result<Self, ApiError> {
        match thread_of(api, &caller, THREAD, id).await? {
            Some(row) => Ok(Self { caller, row }),
            None => Err(not_found(ObjectKind::Thread, id)),
        }
    }

    /// The thread's key.
    fn key(&self) -> &str {
        key_of(&self.row)
    }

    /// Our id of the thread.
    fn id(&self) -> &str {
        self.row.thread.id.as_str()
    }
}

/// Where a message stands in a body: its content, and what names its actor.
fn said_at(pointer: &str, body: &Value) -> Place {
    let message = body.pointer(pointer);
    let content = message.and_then(|message| message.get("content"));
    let place = match content {
        Some(Value::Array(_)) => Place::parts(format!("{pointer}/content")),
        Some(_) => Place::text(format!("{pointer}/content")),
        // AITP's may be a text alone.
        None => Place::text(pointer),
    };
    place.by(format!("{pointer}/metadata/actor"))
}

fn not_found(what: ObjectKind, id: &str) -> ApiError {
    let id = id.to_owned();
    RequestError::NotFound { what, id }.into()
}

/// The pairs of a query, as readers of them want them.
fn pairs(pairs: &Pairs) -> impl Iterator<Item = (&str, &str)> {
    pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
}

/// An id for what a request makes: the same for the same token, and else a new one. A request whose
/// answer was lost then finds what it has made before.
pub(super) fn id_for(api: &Api, parts: &[&str], token: Option<&str>) -> String {
    let Some(token) = token else {
        return api.runtime().mint();
    };
    let parts: Vec<&str> = parts.iter().copied().chain([token]).collect();
    let digits = fingerprint(&parts);
    // A UUID of version 8: what its bits mean is whoever makes it to say.
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    let (first, second, third) = (part(0, 8), part(8, 12), part(13, 16));
    let (fourth, fifth) = (part(17, 20), part(20, 32));
    format!("{first}-{second}-8{third}-8{fourth}-{fifth}")
}
