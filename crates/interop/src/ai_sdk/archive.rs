//! UI messages and their streams in and out of an archive.
//!
//! A run of format `ai-sdk-ui` has one UI message for each record, a run of format `ai-sdk-stream`
//! one chunk, both as they came. `head.ai_sdk` is the major version of `ai` that they are from, and
//! `head.at` the instant of what has none. A stream's `head.done` says whether it ended with
//! `[DONE]`, its `head.done_at` before which chunks it said that too; where it goes on with a message, `head.continues` is that message with nothing but its
//! calls that were open. Messages that a newer list has not, or has otherwise, stand in
//! `head.superseded`: `[{"at": place, "records": […]}]`.
//!
//! # Namespace
//!
//! What a UI message of another format's run can't carry travels in its `metadata.loomline`:
//!
//! | member | is |
//! |---|---|
//! | `version` | `1.0.0`; others are not read |
//! | `run` | which run of the archive the message shows |
//! | `place`, `of` | which of how many messages of that run it is |
//! | `digest` | a UUID, version 5, of the message without this namespace, of the three numbers and of `text` |
//! | `text` | JSON as text, for browsers change numbers: `records`, and on the first message of a run `format`, `agent_id`, `agent`, `head`, on the first of all `thread`, the archive's root |
//!
//! In `text`, a string that begins with `@/` stands for the string at that pointer of the message,
//! `@b/` for what follows `base64,` in it, `@u/` for the same in the URL-safe alphabet; any other that
//! begins with `@` has one more of it. Numbers are equal for the digest when they are the same double,
//! and the order of keys does not count.
//!
//! A namespace is read only with [`Trust::OwnNamespace`](crate::convert::Trust), and believed only
//! if the digest fits: whoever edits the message edits it away. Nothing in it is secret or signed.

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

/// The instant of a message, as its metadata has it in RFC 3339.
fn instant(metadata: Option<&Json>) -> Option<&str> {
    let metadata = metadata?;
    let found = ["/createdAt", "/timestamp", "/pydantic_ai/timestamp"]
        .into_iter()
        .filter_map(|pointer| metadata.pointer(pointer)?.as_str());
    let mut found = found.filter(|text| thread::validate::is_instant(text));
    found.next()
}

/// A text of a member, empty where there is none.
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
