//! The parts of such messages.

use super::{judged, refusal, without_refused};
use crate::Losses;
use crate::pydantic_ai::PydanticAiError;
use crate::pydantic_ai::schema::{self, NAMED_BY_KIND};
use thread::{Json, Object};

/// Kinds of parts to which the library assigns the current time if they have none.
const TIMED: [&str; 6] = [
    "user-prompt",
    "system-prompt",
    "tool-return",
    "retry-prompt",
    "retry-feedback",
    "builtin-tool-return",
];

/// Kinds of parts that name a tool.
const TOOLS: [&str; 4] = [
    "tool-call",
    "tool-return",
    "builtin-tool-call",
    "builtin-tool-return",
];

/// A part of a message of this kind and instant as the library takes it, or `None` if it does not.
pub(super) fn library_part(
    part: &Object,
    kind: &str,
    instant: Option<&str>,
    at: &str,
    losses: &mut Losses,
) -> Option<Object> {
    let part = in_words(part, instant, at, losses);
    read_part(part, kind, at, losses)
}

/// A part in the library's form: outcome for status, `id` for `thinking_id`, and a timestamp if the
/// library would make one up.
fn in_words(part: &Object, instant: Option<&str>, at: &str, losses: &mut Losses) -> Object {
    let mut part = part.clone();
    let kind = part.get_str("part_kind").unwrap_or_default().to_owned();
    if TIMED.contains(&kind.as_str()) && part.get("timestamp").is_none_or(Json::is_null) {
        part.remove("timestamp");
        if let Some(instant) = instant {
            part.insert("timestamp", instant);
        }
    }
    if TOOLS.contains(&kind.as_str()) {
        name_tool(&mut part, at, losses);
    }
    match kind.as_str() {
        "tool-return" => {
            let status = part.get_str("status").map(str::to_owned);
            if let Some(status) = status {
                part.remove("status");
                if part.get("outcome").is_none_or(Json::is_null) && !outcome(&mut part, &status) {
                    losses.push(format!("{at}/status"), "a status that the library has not");
                }
            }
            if part
                .get("content_ref")
                .is_some_and(|value| !value.is_null())
            {
                losses.push(format!("{at}/content_ref"), "where the content is stored");
                part.remove("content_ref");
            }
            if !part.contains_key("content") {
                part.insert("content", Json::Null);
            }
        }
        "retry-prompt" => {
            let takes = |part: &Object| judged_part(part.clone(), "request");
            let content = part.get("content").cloned().unwrap_or_default();
            let mut alone = Object::new().with("part_kind", "retry-prompt");
            alone.insert("content", content.clone());
            if takes(&alone).is_err() {
                let text = if content.is_null() {
                    String::new()
                } else {
                    losses.push(
                        format!("{at}/content"),
                        "content that the library does not take; its text is kept",
                    );
                    content.to_text()
                };
                part.insert("content", text);
            }
        }
        "tool-call" | "builtin-tool-call" => {
            let args = part.get_mut("args");
            if let Some(args @ (Json::Bool(_) | Json::Number(_) | Json::Array(_))) = args {
                *args = args.to_text().into();
                losses.push(
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

/// Names a call or an answer that has no name, so that both stay.
fn name_tool(part: &mut Object, at: &str, losses: &mut Losses) {
    let by_kind = part
        .get_str("tool_kind")
        .is_some_and(|kind| NAMED_BY_KIND.contains(&kind));
    let is_named = part.get_str("tool_name").is_some();
    if is_named || (by_kind && !part.contains_key("tool_name")) {
        return;
    }
    part.insert("tool_name", "unknown");
    losses.push(
        format!("{at}/tool_name"),
        "that the tool has no name; it is called unknown",
    );
}

/// Writes the library's equivalent of `status`; success needs none. Returns whether there is an
/// equivalent.
fn outcome(part: &mut Object, status: &str) -> bool {
    match status {
        "success" => {
            part.remove("outcome");
        }
        "error" => {
            part.insert("outcome", "failed");
        }
        "validation_error" => {
            part.insert("outcome", "retried");
            part.insert("retry", Object::new().with("cause", "validation_error"));
        }
        _ => return false,
    }
    true
}

/// A part of a message of this kind without the data that the library refuses, or `None` if it
/// refuses the part.
fn read_part(mut part: Object, kind: &str, at: &str, losses: &mut Losses) -> Option<Object> {
    if part.get_str("part_kind") == Some("user-prompt")
        && let Some(content) = part.get_mut("content").and_then(Json::as_array_mut)
    {
        let n_items = content.len();
        let items = std::mem::take(content).into_iter().enumerate();
        let taken =
            items.filter_map(|(n, item)| taken_item(item, &format!("{at}/content/{n}"), losses));
        *content = taken.collect();
        if content.is_empty() && n_items > 0 {
            part.insert("content", "");
        }
    }
    while let Err(error) = judged_part(part.clone(), kind) {
        let member = error.pointer().split('/').nth(4);
        let can_go = member.is_some_and(|member| !["content", "part_kind"].contains(&member));
        if !can_go || !without_refused(&mut part, &error, 4, at, losses) {
            losses.push(at, refusal(&error));
            return None;
        }
    }
    Some(part)
}

/// Converts an item of user content to the library's form. Removes nulls that the library refuses.
fn taken_item(item: Json, at: &str, losses: &mut Losses) -> Option<Json> {
    let kind = item.get("kind").and_then(Json::as_str);
    if kind.is_some_and(|kind| schema::content(kind).is_none()) {
        losses.push(at, "content of a kind that the library has not");
        return None;
    }
    let prompt = |item: &Json| {
        Object::new()
            .with("part_kind", "user-prompt")
            .with("content", Json::Array(vec![item.clone()]))
    };
    let Err(error) = judged_part(prompt(&item), "request") else {
        return Some(item);
    };
    let mut plain = item;
    if let Some(object) = plain.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
    if judged_part(prompt(&plain), "request").is_ok() {
        return Some(plain);
    }
    losses.push(at, refusal(&error));
    None
}

fn judged_part(part: Object, kind: &str) -> Result<(), PydanticAiError> {
    let message = Object::new().with("parts", Json::Array(vec![part.into()]));
    judged(message.with("kind", kind))
}
