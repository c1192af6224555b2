//! Reads UI messages and their streams into an archive, and writes them from one.
//!
//! A run of format `ai-sdk-ui` has one UI message for each record. A run of format `ai-sdk-stream` has
//! one chunk for each record. Both are unchanged. A run's `head` has these members:
//!
//! - `ai_sdk` is the major version of `ai` that they are from.
//! - `at` is the time of records that have none.
//! - `done` says whether a stream ended with `[DONE]`; `done_at` lists the chunks that an earlier
//!   `[DONE]` precedes.
//! - `continues` is the message that a stream continues, reduced to its open calls.
//! - `superseded` has the messages that a newer list changed or omitted: `[{"at": place, "records":
//!   […]}]`.
//!
//! # Namespace
//!
//! A UI message of another format's run carries the rest of its data in `metadata.loomline`:
//!
//! | member | value |
//! |---|---|
//! | `version` | `1.0.0`; others are not read |
//! | `run` | the number of the archive's run that the message shows |
//! | `place`, `of` | the number of the message in that run, and how many messages the run has |
//! | `digest` | a UUID, version 5, of the message without this namespace, the three numbers and `text` |
//! | `text` | an object with the data, as JSON text, because browsers change numbers |
//!
//! The object in `text` has `records`. On the first message of a run it also has `format`, `agent_id`,
//! `agents` and `head`. On the first message of all it also has `thread`, the archive's root.
//!
//! In `text`, a string that starts with `@/` refers to the string at that pointer of the message.
//! `@b/` refers to the text after `base64,` in it, `@u/` to the same in the URL-safe alphabet. Any
//! other string that starts with `@` has an additional `@` in front. Numbers are equal for the digest
//! if they are the same double. The order of keys does not count.
//!
//! A namespace is read only with [`Trust::OwnNamespace`](crate::convert::Trust), and trusted only if
//! the digest matches. An edited message therefore loses its namespace. Nothing in it is secret or
//! signed.

mod agents;
mod append;
mod check;
mod chunks;
mod error;
mod events;
mod halves;
mod last;
mod lower;
mod model;
mod namespace;
mod project;
mod read;
mod source;
mod stream;
mod visible;
mod write;

pub use append::{append_messages, append_stream};
pub use error::AiSdkError;
pub(crate) use model::model_runs;
pub use read::{read_messages, read_stream};
pub use write::{ui_messages, write_messages, write_stream};

use super::chunk::Major;
use thread::json::Step;
use thread::{Json, Object};
use uuid::Uuid;

/// The namespace of the ids that follow from what they name; it never changes.
const NAMESPACE: Uuid = Uuid::from_u128(0x9d3c_1a52_7e0b_4f86_a4c9_58d1_06be_73f2);

/// Where our own members of a message's metadata are.
const OURS: &str = "loomline";

/// An id that follows from a name.
fn named(name: &str) -> String {
    Uuid::new_v5(&NAMESPACE, name.as_bytes()).to_string()
}

/// The version of this number, or the one next to it.
fn major(number: u64) -> Major {
    match number {
        0..=5 => Major::V5,
        6 => Major::V6,
        _ => Major::V7,
    }
}

/// The major version that a run is from.
fn major_of(head: &Object) -> Major {
    head.get("ai_sdk")
        .and_then(Json::as_u64)
        .map_or(Major::NEWEST, major)
}

/// The time of a message, from its metadata in RFC 3339.
fn instant(metadata: Option<&Json>) -> Option<&str> {
    let metadata = metadata?;
    let found = ["/createdAt", "/timestamp", "/pydantic_ai/timestamp"]
        .into_iter()
        .filter_map(|pointer| metadata.pointer(pointer)?.as_str());
    let mut found = found.filter(|text| thread::validate::is_instant(text));
    found.next()
}

/// The string value of a member; empty if there is none.
fn text_of<'a>(json: &'a Json, key: &str) -> &'a str {
    json.get(key).and_then(Json::as_str).unwrap_or_default()
}

/// The parts of a message.
fn parts_of(message: &Json) -> &[Json] {
    message
        .get("parts")
        .and_then(Json::as_array)
        .unwrap_or_default()
}

/// The tool that a part of a message calls, if it calls one.
fn tool_of(part: &Json) -> Option<&str> {
    match text_of(part, "type") {
        "dynamic-tool" => Some(text_of(part, "toolName")),
        kind => kind.strip_prefix("tool-"),
    }
}

/// A pointer to a member.
fn member(pointer: &str, key: &str) -> String {
    format!("{pointer}{}", thread::json::pointer([Step::Key(key)]))
}
