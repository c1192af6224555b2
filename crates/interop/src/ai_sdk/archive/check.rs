//! Whether a value is a UI message.

use super::error::{AiSdkError, shape};
use super::{text_of, tool_of};
use thread::Json;
use thread::json::{Step, Within};

/// The states of the part of a call.
const STATES: [&str; 7] = [
    "input-streaming",
    "input-available",
    "approval-requested",
    "approval-responded",
    "output-available",
    "output-error",
    "output-denied",
];

/// Refuses what no client could have; members and types that are not known are let be.
pub(super) fn message(message: &Json) -> Result<(), AiSdkError> {
    if message.as_object().is_none() {
        return Err(shape("a message, which is an object", message.type_name()));
    }
    text(message, "id", "an id")?;
    let roles = "`system`, `user` or `assistant`";
    word(message, "role", &["system", "user", "assistant"], roles)?;
    let parts = message.get("parts");
    let Some(items) = parts.and_then(Json::as_array) else {
        return Err(wrong("parts", "a list of parts", parts));
    };
    for (place, found) in items.iter().enumerate() {
        part(found)
            .map_err(|error| error.within(Step::Index(place)))
            .map_err(|error| error.within(Step::Key("parts")))?;
    }
    Ok(())
}

fn part(part: &Json) -> Result<(), AiSdkError> {
    if part.as_object().is_none() {
        return Err(shape("a part, which is an object", part.type_name()));
    }
    text(part, "type", "the type of a part")?;
    if tool_of(part).is_some() {
        return call(part);
    }
    let needed: &[&str] = match text_of(part, "type") {
        "text" | "reasoning" => {
            if part.get("state").is_some() {
                word(
                    part,
                    "state",
                    &["streaming", "done"],
                    "`streaming` or `done`",
                )?;
            }
            &["text"]
        }
        "file" | "reasoning-file" => &["mediaType", "url"],
        "source-url" => &["sourceId", "url"],
        "source-document" => &["sourceId", "mediaType", "title"],
        "custom" => &["kind"],
        kind if kind.starts_with("data-") && part.get("data").is_none() => {
            return Err(wrong("data", "the data of the part", None));
        }
        _ => &[],
    };
    needed
        .iter()
        .try_for_each(|key| text(part, key, "a string"))
}

fn call(part: &Json) -> Result<(), AiSdkError> {
    text(part, "toolCallId", "the id of a call")?;
    if text_of(part, "type") == "dynamic-tool" {
        text(part, "toolName", "the name of a tool")?;
    }
    word(part, "state", &STATES, "a state of a call")?;
    if text_of(part, "state") == "output-error" {
        text(part, "errorText", "the text of an error")?;
    }
    match part.get("approval") {
        Some(approval) if !approval.is_null() => text(approval, "id", "the id of an approval")
            .map_err(|error| error.within(Step::Key("approval"))),
        Some(_) | None => Ok(()),
    }
}

fn text(json: &Json, key: &'static str, expected: &'static str) -> Result<(), AiSdkError> {
    let found = json.get(key);
    match found.map(Json::as_str) {
        Some(Some(_)) => Ok(()),
        Some(None) | None => Err(wrong(key, expected, found)),
    }
}

fn word(
    json: &Json,
    key: &'static str,
    words: &[&str],
    expected: &'static str,
) -> Result<(), AiSdkError> {
    match json.get(key).and_then(Json::as_str) {
        Some(found) if words.contains(&found) => Ok(()),
        Some(found) => Err(shape(expected, format!("{found:?}")).within(Step::Key(key))),
        None => Err(wrong(key, expected, json.get(key))),
    }
}

fn wrong(key: &'static str, expected: &'static str, found: Option<&Json>) -> AiSdkError {
    shape(expected, found.map_or("none", Json::type_name)).within(Step::Key(key))
}
