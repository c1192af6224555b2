//! Tool calls and their results.

use super::vendor;
use crate::Losses;
use crate::ai_sdk::archive::{member, text_of, tool_of};
use crate::ai_sdk::chunk::{is_set, some};
use thread::{Json, Object};

/// Members of a call's part that no model message can hold; they are reported as losses.
const BESIDE: [&str; 5] = [
    "title",
    "toolMetadata",
    "inputEncoding",
    "approval",
    "resultProviderMetadata",
];

/// The call of a part, and the answer where there is one. A call whose input streams is none yet.
pub(super) fn call(
    part: &Json,
    timestamp: &str,
    at: &str,
    losses: &mut Losses,
) -> Option<(Object, Option<Object>)> {
    let name = tool_of(part)?;
    if text_of(part, "state") == "input-streaming" {
        return None;
    }
    let kind = if is_executed(part) {
        "builtin-tool-call"
    } else {
        "tool-call"
    };
    let mut call = Object::new()
        .with("tool_name", name)
        .with("args", args(part))
        .with("tool_call_id", text_of(part, "toolCallId"))
        .with("part_kind", kind);
    let metadata = part.get("callProviderMetadata");
    vendor::put(
        &mut call,
        metadata,
        &member(at, "callProviderMetadata"),
        losses,
    );
    let answer = answer(part, timestamp);
    for key in BESIDE {
        if some(part, key).is_some() && !(key == "approval" && is_plain_denial(part)) {
            losses.push(member(at, key), "a member of a call's part");
        }
    }
    if text_of(part, "type") == "dynamic-tool" {
        losses.push(member(at, "type"), "that a tool is dynamic");
    }
    if is_set(part, "preliminary") {
        losses.push(member(at, "output"), "an output that is not final");
    }
    Some((call, answer))
}

fn is_executed(part: &Json) -> bool {
    is_set(part, "providerExecuted")
}

/// Whether an approval contains nothing but a denial and its reason.
fn is_plain_denial(part: &Json) -> bool {
    let approval = part.get("approval").and_then(Json::as_object);
    let mut members = approval.into_iter().flatten();
    text_of(part, "state") == "output-denied"
        && members.all(|(key, value)| match key {
            "id" => value.as_str() == Some(text_of(part, "toolCallId")),
            key => matches!(key, "approved" | "reason"),
        })
}

/// The arguments as Pydantic AI has them: an object, or a text that should be JSON, or none.
fn args(part: &Json) -> Json {
    /// The key under which Pydantic AI's adapter stores text that is not JSON.
    const INVALID: &str = "INVALID_JSON";
    match (part.get("input"), part.get("rawInput")) {
        (Some(Json::Object(input)), _) => match input.get_str(INVALID).filter(|_| input.len() == 1)
        {
            Some(raw) => raw.into(),
            None => input.clone().into(),
        },
        (None | Some(Json::Null), Some(raw @ (Json::String(_) | Json::Object(_)))) => raw.clone(),
        (None | Some(Json::Null), None | Some(Json::Null)) => Json::Null,
        (None | Some(Json::Null), Some(raw)) => raw.to_text().into(),
        (Some(input), _) => input.to_text().into(),
    }
}

/// The final result of a call; `None` while there is none.
pub(super) fn answer(part: &Json, timestamp: &str) -> Option<Object> {
    let (outcome, content) = match text_of(part, "state") {
        "output-available" if !is_set(part, "preliminary") => {
            let output = part.get("output").cloned().unwrap_or_default();
            ("success", output)
        }
        "output-error" => ("failed", text_of(part, "errorText").into()),
        "output-denied" => {
            let reason = part
                .get("approval")
                .and_then(|approval| some(approval, "reason"));
            let reason = reason.and_then(Json::as_str).unwrap_or("denied");
            ("denied", reason.into())
        }
        _ => return None,
    };
    let kind = if is_executed(part) {
        "builtin-tool-return"
    } else {
        "tool-return"
    };
    let status = match outcome {
        "success" => Some("success"),
        "failed" => Some("error"),
        _ => None,
    };
    let answer = Object::new()
        .with("tool_name", tool_of(part).unwrap_or_default())
        .with("content", content)
        .with("tool_call_id", text_of(part, "toolCallId"))
        .with("timestamp", timestamp)
        .with("outcome", outcome)
        .with_some("status", status.filter(|_| !is_executed(part)))
        .with("part_kind", kind);
    Some(answer)
}
