//! Where a conversation may be cut.

use serde_json::Value;
use upp::{Message, Messages, UserMessage};

/// Whether a cycle begins at this message: a request to the model, with its tools' results.
///
/// Input belongs to the answer after it and results to the calls before them, so a cut here
/// separates neither.
pub(super) fn begins(messages: &Messages, at: usize) -> bool {
    let follows_input = at
        .checked_sub(1)
        .and_then(|before| messages.get(before))
        .is_some_and(|before| matches!(before, Message::User(_)));
    match messages.get(at) {
        Some(Message::User(_) | Message::Assistant(_)) => {
            !follows_input || is_summary(messages, at - 1)
        }
        Some(Message::ToolResult(_)) | None => false,
    }
}

/// The first cycle at or after this place.
pub(super) fn first_from(messages: &Messages, at: usize) -> Option<usize> {
    (at..messages.len()).find(|at| begins(messages, *at))
}

/// The last cycle at or before this place.
pub(super) fn last_until(messages: &Messages, at: usize) -> Option<usize> {
    (0..=at).rev().find(|at| begins(messages, *at))
}

/// The namespace of what this protocol's own parts note on messages.
pub(super) const NAMESPACE: &str = "uap";

/// The message as a summary: the ids of the first and the last message it stands for.
pub(super) fn summary(message: &UserMessage) -> Option<(&str, &str)> {
    let of = message.metadata.get(NAMESPACE)?.get("summary")?.get("of")?;
    match of.as_array()?.as_slice() {
        [Value::String(first), Value::String(last)] => Some((first, last)),
        _ => None,
    }
}

pub(super) fn is_summary(messages: &Messages, at: usize) -> bool {
    match messages.get(at) {
        Some(Message::User(message)) => summary(message).is_some(),
        Some(Message::Assistant(_) | Message::ToolResult(_)) | None => false,
    }
}
