//! Messages for older clients: unknown parts and members are removed and reported.

use super::{member, parts_of, tool_of};
use crate::Losses;
use crate::ai_sdk::chunk::Major;
use thread::{Json, Object};

/// A message as clients of `major` know it.
pub(super) fn lowered(message: Json, major: Major, pointer: &str, losses: &mut Losses) -> Json {
    let known = |part: &Json| lowered_part(part, major).as_ref() == Some(part);
    if major == Major::NEWEST || parts_of(&message).iter().all(known) {
        return message;
    }
    let mut message = message;
    let parts = message
        .as_object_mut()
        .and_then(|message| message.get_mut("parts"));
    let Some(Json::Array(parts)) = parts else {
        return message;
    };
    let unknown = || format!("what clients of {major:?} don't know");
    let mut kept = Vec::with_capacity(parts.len());
    for (place, part) in std::mem::take(parts).into_iter().enumerate() {
        let at = format!("{pointer}/parts/{place}");
        let Some(lower) = lowered_part(&part, major) else {
            losses.push(at, unknown());
            continue;
        };
        for (key, value) in part.as_object().into_iter().flatten() {
            if lower.get(key) != Some(value) {
                losses.push(member(&at, key), unknown());
            }
        }
        kept.push(lower);
    }
    *parts = kept;
    message
}

fn lowered_part(part: &Json, major: Major) -> Option<Json> {
    let object = part.as_object()?;
    let mut lower = object.clone();
    let without = |lower: &mut Object, keys: &[&str]| lower.retain(|key, _| !keys.contains(&key));
    match object.get_str("type").unwrap_or_default() {
        "reasoning-file" | "custom" | "steering-message" if major < Major::V7 => return None,
        "text" if major < Major::V7 => without(&mut lower, &["citations"]),
        "file" if major < Major::V7 => without(&mut lower, &["providerReference"]),
        _ if tool_of(part).is_some() && major == Major::V5 => {
            let newer = [
                "title",
                "toolMetadata",
                "inputEncoding",
                "resultProviderMetadata",
                "approval",
            ];
            without(&mut lower, &newer);
            match object.get_str("state") {
                Some("approval-requested" | "approval-responded") => {
                    lower.insert("state", "input-available");
                }
                Some("output-denied") => {
                    let reason = part.pointer("/approval/reason").and_then(Json::as_str);
                    lower.insert("state", "output-error");
                    lower.insert("errorText", reason.unwrap_or("denied"));
                }
                _ => {}
            }
            if object.get_str("state") == Some("input-streaming") {
                without(&mut lower, &["rawInput"]);
            }
        }
        _ => {}
    }
    Some(lower.into())
}
