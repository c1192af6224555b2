//! Whose the members of a thread's metadata are.
//!
//! A thread has one metadata, which every protocol shows in its own way. What applications note are
//! texts beside one another at the top of it. A few names there are this system's: what sub-agent's a
//! thread is, which node of a tree, what a document said that it was read from. A client that could
//! write these could cut a thread off its parent, or tie it to another's; so every view that reads
//! metadata of a thread refuses them, and none shows them. Metadata of messages and runs is kept
//! under the name of its view and can be whatever it is.

use serde_json::{Map, Value};
use timeline::Payload;

/// The names that are this system's own.
const OWN: [&str; 5] = ["threadprotocol", "uap", "loomline", "responses", "threads"];

/// What a client may name the members of a thread's metadata, for refusals.
pub const EXPECTED: &str = "a key that is not the server's own, as \"threadprotocol\", \"uap\", \
                                   \"loomline\", \"responses\" and \"threads\" are";

/// Whether a member of a thread's metadata is this system's.
pub fn is_own(key: &str) -> bool {
    OWN.contains(&key)
}

/// Whether a member of a thread's metadata is AITP's: who takes part, and the thread it was forked off.
pub(crate) fn is_aitp(key: &str) -> bool {
    matches!(key, "actors" | "parent_id")
}

/// A thread's metadata with what a client now notes in the place of the texts that were noted before.
/// The rest stays: this system's, AITP's unless it is noted anew, and what is no text.
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
