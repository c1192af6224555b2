//! Leaves out explicit nulls of optional members.

use serde_json::Value;

const ROOT: &[&str] = &["title", "metadata", "relationships"];
const LINK: &[&str] = &["metadata"];
const AGENT: &[&str] = &["model_name", "provider_name", "config_ref"];
const USER_TURN: &[&str] = &["client_metadata"];
const AGENT_TURN: &[&str] = &["completed_at", "total_usage", "interruption"];
const MESSAGE: &[&str] = &[
    "model_name",
    "provider_name",
    "provider_response_id",
    "usage",
    "finish_reason",
];
const SYSTEM: &[&str] = &["source_agent", "target_agents"];
const USAGE: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "thinking_tokens",
    "total_tokens",
];
const CONTENT_REF: &[&str] = &["size_bytes", "hash", "media_type"];

/// The optional members of each part kind. `provider_name` of a thought counts (ruling 7);
/// `content` and `args` never do, since `null` is a legal value of both.
fn optional_in_part(kind: &str) -> &'static [&'static str] {
    match kind {
        "text" | "file" => &["id"],
        "thinking" => &["content", "signature", "provider_name", "thinking_id"],
        "tool-return" => &["metadata", "content_ref"],
        "retry-prompt" => &["tool_name", "tool_call_id"],
        _ => &[],
    }
}

/// Takes the nulls out, level by level; the levels are fixed, so nothing recurses.
pub(super) fn omit(root: &mut Value) {
    prune(root, ROOT);
    if let Some(relationships) = root.get_mut("relationships") {
        prune(relationships, &["links"]);
        each(relationships, "links", |link| prune(link, LINK));
    }
    if let Some(agents) = root.get_mut("agents").and_then(Value::as_object_mut) {
        agents.values_mut().for_each(|agent| prune(agent, AGENT));
    }
    each(root, "turns", turn);
}

fn turn(turn: &mut Value) {
    match tag(turn, "turn_type") {
        "user" => {
            prune(turn, USER_TURN);
            each(turn, "parts", part);
        }
        "agent" => {
            prune(turn, AGENT_TURN);
            if let Some(usage) = turn.get_mut("total_usage") {
                prune(usage, USAGE);
            }
            each(turn, "messages", message);
        }
        _ => {}
    }
}

fn message(message: &mut Value) {
    match tag(message, "message_type") {
        "request" | "response" => {
            prune(message, MESSAGE);
            if let Some(usage) = message.get_mut("usage") {
                prune(usage, USAGE);
            }
            each(message, "parts", part);
        }
        "system" => prune(message, SYSTEM),
        _ => {}
    }
}

fn part(part: &mut Value) {
    let kind = tag(part, "part_kind");
    let is_return = kind == "tool-return";
    let optional = optional_in_part(kind);
    prune(part, optional);
    if is_return && let Some(content_ref) = part.get_mut("content_ref") {
        prune(content_ref, CONTENT_REF);
    }
}

fn tag<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn each(value: &mut Value, key: &str, change: impl FnMut(&mut Value)) {
    let items = value.get_mut(key).and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(change);
}

fn prune(value: &mut Value, optional: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, member| !(member.is_null() && optional.contains(&key.as_str())));
    }
}
