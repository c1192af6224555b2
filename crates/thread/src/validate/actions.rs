//! The actions of 1.0.0.

use super::fields::{self, Field, Need, Shape, expected, optional, required};
use super::turns::{Registry, USAGE, check_registered, registry};
use super::{Report, Rule, base64, events, instants, parts};
use crate::document::{Thread, Tier, items};
use crate::json::{Json, Object};
use crate::path::Path;
use std::collections::BTreeSet;

/// The root members of 1.0.0 only.
pub(crate) const ROOT: &[Field] = &[
    expected("title", Shape::Text),
    optional("parent_thread_id", Shape::Uuid),
    required("actions", Shape::Array),
];

/// The members of an agent of 1.0.0 only.
pub(crate) const AGENT: &[Field] = &[expected("agent_identifier", Shape::Text)];

pub(crate) const ACTION: &[Field] = &[
    required("action_type", Shape::Text),
    expected("timestamp", Shape::Timestamp),
    expected("sequence", Shape::Count),
    optional("action_id", Shape::Text),
];

pub(crate) const USER_MESSAGE: &[Field] = &[required("content", Shape::TextOrArray)];

pub(crate) const ASSISTANT_MESSAGE: &[Field] = &[
    required("agent_id", Shape::Text),
    required("content", Shape::TextOrArray),
    optional(
        "finish_reason",
        Shape::OneOf(&["stop", "tool_call", "length", "content_filter", "error"]),
    ),
    optional("usage", Shape::Object),
];

pub(crate) const THINKING: &[Field] = &[
    required("agent_id", Shape::Text),
    optional("content", Shape::Text),
    optional("signature", Shape::Text),
    optional("provider_name", Shape::Text),
    optional("thinking_id", Shape::Text),
    optional("usage", Shape::Object),
];

pub(crate) const TOOL_CALL: &[Field] = &[
    required("agent_id", Shape::Text),
    required("tool_name", Shape::Text),
    required("tool_call_id", Shape::Text),
    expected("args", Shape::Any),
];

pub(crate) const TOOL_RETURN: &[Field] = &[
    required("tool_name", Shape::Text),
    required("tool_call_id", Shape::Text),
    expected("status", parts::STATUS),
    expected("content", Shape::Any),
];

pub(crate) const EVENT: &[Field] = &[expected("data", Shape::Any)];

pub(crate) const ITEM: &[Field] = &[required("type", Shape::Text)];

pub(crate) const TEXT_ITEM: &[Field] = &[required("text", Shape::Text)];

pub(crate) const IMAGE_ITEM: &[Field] = &[
    optional("image_url", Shape::Text),
    optional("image_base64", Shape::Text),
    optional("media_type", Shape::Text),
];

/// Checks every action and their sequence.
pub(super) fn check(report: &mut Report<'_>, thread: &Thread) {
    let root = thread.root();
    fields::check(report, Path::ROOT, root, ROOT);
    check_identifiers(report, root);
    let registry = registry(root);
    let path = Path::ROOT.key("actions");
    let mut numbers = BTreeSet::new();
    for (place, action) in items(root, "actions").iter().enumerate() {
        let path = path.index(place);
        let Some(action) = fields::object(report, path, action) else {
            continue;
        };
        fields::check(report, path, action, ACTION);
        check_kind(report, path, action, &registry);
        let number = action.get("sequence").and_then(Json::as_i64);
        if let Some(number) = number.filter(|number| !numbers.insert(*number)) {
            let message = format!("{number} comes twice");
            report.add(Rule::Sequence, path.key("sequence"), message);
        }
    }
    check_gaps(report, &numbers);
    instants::check_actions(report, root);
}

fn check_identifiers(report: &mut Report<'_>, root: &Object) {
    let agents = root.get("agents").and_then(Json::as_object);
    let mut known = BTreeSet::new();
    let path = Path::ROOT.key("agents");
    for (key, config) in agents.into_iter().flatten() {
        let path = path.key(key);
        let Some(config) = config.as_object() else {
            continue;
        };
        fields::check(report, path, config, AGENT);
        let identifier = config.get_str("agent_identifier");
        if let Some(identifier) = identifier.filter(|identifier| !known.insert(*identifier)) {
            let message = format!("two agents are identified as {identifier:?}");
            report.add(Rule::AgentIdentifier, path.key("agent_identifier"), message);
        }
    }
}

/// The numbers go from 1 without a gap; the first that does not follow is reported with the list.
fn check_gaps(report: &mut Report<'_>, numbers: &BTreeSet<i64>) {
    let mut former = 0i64;
    for number in numbers {
        if *number != former.saturating_add(1) {
            let message = format!("the sequence goes on with {number} after {former}");
            report.add(Rule::Sequence, Path::ROOT.key("actions"), message);
        }
        former = *number;
    }
}

fn check_kind(report: &mut Report<'_>, path: Path<'_>, action: &Object, registry: &Registry<'_>) {
    let fields = match action.get_str("action_type") {
        Some("user_message") => {
            parts::check_attachments(report, path, action, Need::Required);
            USER_MESSAGE
        }
        Some("assistant_message") => ASSISTANT_MESSAGE,
        Some("thinking") => THINKING,
        Some("tool_call") => TOOL_CALL,
        Some("tool_return") => TOOL_RETURN,
        Some(name) if name.starts_with("system.") => EVENT,
        Some(name) => {
            let message = format!("{name:?} is not known");
            return report.add(Rule::UnknownKind, path.key("action_type"), message);
        }
        None => return,
    };
    fields::check(report, path, action, fields);
    if action.get_str("action_type") == Some("thinking") {
        parts::check_provider(report, path, action);
    }
    let event = action
        .get_str("action_type")
        .and_then(|name| name.strip_prefix("system."));
    if let Some(event) = event.filter(|event| Tier::of(event, &report.version) == Tier::Canonical) {
        events::check_payload(report, path, ["action_type", "data"], action, event, false);
    }
    let agent = path.key("agent_id");
    let agent_id = action.get_str("agent_id");
    check_registered(report, Rule::AgentId, agent, agent_id, registry);
    if let Some(usage) = action.get("usage").and_then(Json::as_object) {
        fields::check(report, path.key("usage"), usage, USAGE);
    }
    if matches!(
        action.get_str("action_type"),
        Some("user_message" | "assistant_message")
    ) {
        check_content(report, path.key("content"), items(action, "content"));
    }
}

fn check_content(report: &mut Report<'_>, path: Path<'_>, content: &[Json]) {
    for (place, item) in content.iter().enumerate() {
        let path = path.index(place);
        let Some(item) = fields::object(report, path, item) else {
            continue;
        };
        fields::check(report, path, item, ITEM);
        match item.get_str("type") {
            Some("text") => fields::check(report, path, item, TEXT_ITEM),
            Some("image") => {
                fields::check(report, path, item, IMAGE_ITEM);
                base64::check(report, path, item, "image_base64");
            }
            Some("file" | "audio" | "video") | None => {}
            Some(kind) => {
                let message = format!("{kind:?} is not known");
                report.add(Rule::UnknownKind, path.key("type"), message);
            }
        }
    }
}
