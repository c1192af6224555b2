//! Messages of other formats in the library's words.

use super::check::CHECKED;
use super::note::notes;
use super::{PydanticAiError, schema};
use crate::Loss;
use crate::runs::ModelMessage;
use thread::{Json, Object};

/// Kinds of parts that the library gives the present instant if they have none.
const TIMED: [&str; 6] = [
    "user-prompt",
    "system-prompt",
    "tool-return",
    "retry-prompt",
    "retry-feedback",
    "builtin-tool-return",
];

/// A message that the library loads, or `None` if it has no word for it.
pub(super) fn library_message(message: &ModelMessage, losses: &mut Vec<Loss>) -> Option<Json> {
    let mut lost = |pointer: String, what: &str| {
        losses.push(Loss {
            pointer,
            what: what.to_owned(),
        });
    };
    let at = &message.pointer;
    let Some(source) = message.json.as_object() else {
        lost(at.clone(), "what is no message");
        return None;
    };
    if source.get_str("message_type") == Some("system") {
        lost(at.clone(), "a system message");
        return None;
    }
    let instant = source.get_str("timestamp");
    let parts = source
        .get("parts")
        .and_then(Json::as_array)
        .unwrap_or_default();
    let mut written = Vec::with_capacity(parts.len());
    for (place, part) in parts.iter().enumerate() {
        let at = format!("{at}/parts/{place}");
        let kind = part.get("part_kind").and_then(Json::as_str);
        match kind.and_then(schema::part).zip(part.as_object()) {
            Some(((_, table), part)) => {
                written.push(ordered(library_part(part, instant, &at, &mut lost), table).into());
            }
            None => lost(at, "a part of a kind that the library has not"),
        }
    }
    let mut whole = source.clone();
    whole.insert("parts", Json::Array(written));
    loop {
        let text = format!(
            "[{}]",
            Json::from(ordered(whole.clone(), &schema::MESSAGE)).to_text()
        );
        let Err(error) = notes(&text, &CHECKED) else {
            return Some(ordered(whole, &schema::MESSAGE).into());
        };
        let what = format!("what the library does not take: {error}");
        let mut steps = error.pointer().split('/').skip(2);
        let gone = match (steps.next(), steps.next().and_then(|n| n.parse().ok())) {
            (Some("parts"), Some(place)) => take_part(&mut whole, place),
            (Some(member), _) => whole.remove(member).is_some(),
            (None, _) => false,
        };
        lost(at.clone(), &what);
        if !gone || matches!(error, PydanticAiError::NotAMessage { .. }) {
            return None;
        }
    }
}

fn take_part(message: &mut Object, place: usize) -> bool {
    let parts = message.get_mut("parts").and_then(Json::as_array_mut);
    let parts = parts.filter(|parts| place < parts.len());
    parts.map(|parts| parts.remove(place)).is_some()
}

/// The members in the order of the table, and then those that it has not.
fn ordered(object: Object, table: &schema::Table) -> Object {
    let mut members: Vec<_> = object
        .into_iter()
        .map(|(key, value)| (table.place(&key, 0).unwrap_or(usize::MAX), key, value))
        .collect();
    members.sort_by_key(|(place, ..)| *place);
    members
        .into_iter()
        .map(|(_, key, value)| (key, value))
        .collect()
}

/// A part in the library's words: outcome for status, `id` for `thinking_id`, an instant where the
/// library would make one up.
fn library_part(
    part: &Object,
    instant: Option<&str>,
    at: &str,
    lost: &mut impl FnMut(String, &str),
) -> Object {
    let mut part = part.clone();
    let kind = part.get_str("part_kind").unwrap_or_default().to_owned();
    if TIMED.contains(&kind.as_str()) && part.get("timestamp").is_none_or(Json::is_null) {
        part.remove("timestamp");
        if let Some(instant) = instant {
            part.insert("timestamp", instant);
        }
    }
    match kind.as_str() {
        "tool-return" => {
            let status = part.get_str("status").map(str::to_owned);
            if let Some(status) = status {
                part.remove("status");
                if !part.contains_key("outcome") {
                    outcome(&mut part, &status);
                }
            }
            if part
                .get("content_ref")
                .is_some_and(|value| !value.is_null())
            {
                lost(format!("{at}/content_ref"), "where the content is stored");
                part.remove("content_ref");
                if !part.contains_key("content") {
                    part.insert("content", Json::Null);
                }
            }
        }
        "tool-call" => {
            let args = part.get_mut("args");
            if let Some(args @ (Json::Bool(_) | Json::Number(_) | Json::Array(_))) = args {
                *args = args.to_text().into();
                lost(
                    format!("{at}/args"),
                    "arguments that are no object; their text is kept",
                );
            }
        }
        "thinking" => {
            if let Some(id) = part.remove("thinking_id")
                && !part.contains_key("id")
            {
                part.insert("id", id);
            }
            if part.get("content").is_none_or(Json::is_null) {
                part.insert("content", "");
            }
        }
        _ => {}
    }
    part
}

/// What the library says where the protocol says `status`; success goes without saying.
fn outcome(part: &mut Object, status: &str) {
    match status {
        "error" => {
            part.insert("outcome", "failed");
        }
        "validation_error" => {
            part.insert("outcome", "retried");
            part.insert("retry", Object::new().with("cause", "validation_error"));
        }
        _ => {}
    }
}
