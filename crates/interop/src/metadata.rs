//! The owners of the members of a thread's metadata.
//!
//! A thread has one metadata object, which every protocol shows in its own form. Applications store
//! string members at its top level. A few names there are reserved for the server: they record the
//! sub-agent that a thread belongs to, the node of a tree, or the members of an imported document.
//! A client that could write them could separate a thread from its parent or attach it to another
//! one. Every view that reads thread metadata therefore refuses them, and none shows them. Metadata
//! of messages and runs is stored under the name of its view and has no such limits.

use serde_json::{Map, Value};
use timeline::Payload;

/// The names that are this system's own.
const OWN: [&str; 5] = ["threadprotocol", "uap", "loomline", "responses", "threads"];

/// The expected keys of a client's thread metadata, for error messages.
pub const EXPECTED: &str = "a key that is not the server's own, as \"threadprotocol\", \"uap\", \
                                   \"loomline\", \"responses\" and \"threads\" are";

/// Whether a member of a thread's metadata is this system's.
pub fn is_own(key: &str) -> bool {
    OWN.contains(&key)
}

/// Whether a client may set a member by replacing a thread's metadata. The server's members are not its
/// own, and actors take part by other requests.
pub fn is_replaceable(key: &str) -> bool {
    !is_own(key) && !is_aitp(key)
}

/// A thread's metadata after a client has replaced all members that it may set; none if nothing is left.
pub fn replaced(before: Option<&Payload>, new: Option<Payload>) -> Option<Payload> {
    let before: Option<Map<String, Value>> = before.and_then(|before| before.read().ok());
    let mut all = before.unwrap_or_default();
    all.retain(|key, _| !is_replaceable(key));
    if all.is_empty() {
        return new;
    }
    let new: Option<Map<String, Value>> = new.and_then(|new| new.read().ok());
    all.extend(new.unwrap_or_default());
    Some(Value::Object(all).into())
}

/// Whether a member of a thread's metadata is AITP's: the actors, and the thread's parent.
pub(crate) fn is_aitp(key: &str) -> bool {
    matches!(key, "actors" | "parent_id")
}

/// Replaces the string members of a thread's metadata by those of a client. Other members stay: the
/// server's, AITP's unless the client sets them, and members that are not strings.
pub(crate) fn noted(before: Option<&Payload>, new: Map<String, Value>) -> Map<String, Value> {
    let mut kept = match before.map(Payload::value) {
        Some(Value::Object(kept)) => kept,
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        )
        | None => Map::new(),
    };
    kept.retain(|key, value| !value.is_string() || is_own(key) || is_aitp(key));
    kept.extend(new);
    kept
}
