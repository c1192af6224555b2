//! Turns and messages.

use super::fields::{self, Field, Need, Shape, expected, optional, required};
use super::{Report, Rule, events, parts};
use crate::document::{
    AgentTurn, CompletionStatus, Message, Thread, Turn, UserTurn, Version, items,
};
use crate::json::{Json, Object};
use crate::path::Path;
use std::collections::BTreeSet;

pub(crate) const USER_TURN: &[Field] = &[
    required("submitted_at", Shape::Timestamp),
    required("parts", Shape::Array),
];

pub(crate) const AGENT_TURN: &[Field] = &[
    required("agent_id", Shape::Text),
    required("started_at", Shape::Timestamp),
    required("messages", Shape::Array),
    optional("total_usage", Shape::Object),
];

/// When a turn ended, before 0.0.4.
pub(crate) const COMPLETED: &[Field] = &[expected("completed_at", Shape::Timestamp)];

/// When a turn ended, from 0.0.4.
pub(crate) const MAY_COMPLETE: &[Field] = &[optional("completed_at", Shape::Timestamp)];

pub(crate) const INTERRUPTION: &[Field] = &[
    required("reason", Shape::Text),
    required("interrupted_at", Shape::Timestamp),
];

pub(crate) const MESSAGE: &[Field] = &[
    expected("timestamp", Shape::Timestamp),
    required("parts", Shape::Array),
    expected("agent_id", Shape::Text),
    optional("model_name", Shape::Text),
    optional("provider_name", Shape::Text),
    optional("provider_response_id", Shape::Text),
    optional("usage", Shape::Object),
    optional(
        "finish_reason",
        Shape::OneOf(&["stop", "length", "content_filter", "tool_call", "error"]),
    ),
];

pub(crate) const USAGE: &[Field] = &[
    optional("input_tokens", Shape::Count),
    optional("output_tokens", Shape::Count),
    optional("thinking_tokens", Shape::Count),
    optional("total_tokens", Shape::Count),
];

/// The members of a user's turn since 0.0.3.
pub(crate) const CLIENT_METADATA: &[Field] = &[optional("client_metadata", Shape::Object)];

/// The characters that may end the namespace of a metadata key (0.0.3).
pub(crate) const SEPARATORS: [char; 5] = [':', '.', '/', '_', '-'];

/// The keys of the registry.
pub(super) type Registry<'a> = BTreeSet<&'a str>;

/// The keys of a document's registry.
pub(super) fn registry(root: &Object) -> Registry<'_> {
    let agents = root.get("agents").and_then(Json::as_object);
    agents.into_iter().flat_map(Object::keys).collect()
}

/// Checks every turn.
pub(super) fn check(report: &mut Report<'_>, thread: &Thread) {
    let registry = registry(thread.root());
    let path = Path::ROOT.key("turns");
    for (place, turn) in thread.turns().enumerate() {
        let path = path.index(place);
        match turn {
            Turn::User(turn) => check_user(report, path, turn),
            Turn::Agent(turn) => check_agent(report, path, turn, &registry),
            Turn::Unknown(json) => unknown(report, path, json, "turn_type"),
        }
    }
}

fn check_user(report: &mut Report<'_>, path: Path<'_>, turn: UserTurn<'_>) {
    fields::check(report, path, turn.object(), USER_TURN);
    parts::check(report, path.key("parts"), items(turn.object(), "parts"));
    parts::check_attachments(report, path, turn.object(), Need::Expected);
    if report.version < Version::V0_0_3 {
        return;
    }
    fields::check(report, path, turn.object(), CLIENT_METADATA);
    let path = path.key("client_metadata");
    for (key, _) in turn.client_metadata().into_iter().flatten() {
        if !key.contains(SEPARATORS) {
            let message = format!("the key {key:?} has no namespace");
            report.add(Rule::ClientMetadataKey, path.key(key), message);
        }
    }
}

fn check_agent(
    report: &mut Report<'_>,
    path: Path<'_>,
    turn: AgentTurn<'_>,
    registry: &Registry<'_>,
) {
    fields::check(report, path, turn.object(), AGENT_TURN);
    check_registered(
        report,
        Rule::AgentId,
        path.key("agent_id"),
        turn.agent_id(),
        registry,
    );
    if report.version < Version::V0_0_4 {
        fields::check(report, path, turn.object(), COMPLETED);
        check_early(report, path, turn.object());
    } else {
        check_completion(report, path, turn);
    }
    check_usage(report, path.key("total_usage"), turn.total_usage());
    let path = path.key("messages");
    for (place, message) in turn.messages().enumerate() {
        let path = path.index(place);
        match message {
            Message::Request(request) => {
                check_message(report, path, request.object(), registry);
                check_agent_of(report, path, request.object(), turn);
                check_instructions(report, path, request.object());
            }
            Message::Response(response) => {
                check_message(report, path, response.object(), registry);
                check_agent_of(report, path, response.object(), turn);
                check_empty(report, path, response.object(), turn);
            }
            Message::System(system) => events::check(report, path, system, registry),
            Message::Unknown(json) => unknown(report, path, json, "message_type"),
        }
    }
}

/// Before 0.0.4 every turn is complete, so no turn has a `completion_status`.
fn check_early(report: &mut Report<'_>, path: Path<'_>, turn: &Object) {
    let key = "completion_status";
    if turn.get(key).is_some_and(|value| !value.is_null()) {
        let message = format!("`{key}` has no meaning before version 0.0.4");
        report.add(Rule::EarlyCompletion, path.key(key), message);
    }
}

/// A turn is one run of one agent, so its messages are of that agent.
fn check_agent_of(report: &mut Report<'_>, path: Path<'_>, message: &Object, turn: AgentTurn<'_>) {
    let agents = turn.agent_id().zip(message.get_str("agent_id"));
    if let Some((of_turn, of_message)) = agents.filter(|(turn, message)| turn != message) {
        let message = format!("the message is of {of_message:?}, and its turn of {of_turn:?}");
        report.add(Rule::MessageAgent, path.key("agent_id"), message);
    }
}

/// The invariants of 0.0.4 on how a turn ended.
fn check_completion(report: &mut Report<'_>, path: Path<'_>, turn: AgentTurn<'_>) {
    let object = turn.object();
    fields::check(report, path, object, MAY_COMPLETE);
    let present = |key: &str| object.get(key).is_some_and(|value| !value.is_null());
    let Some(status) = turn.completion_status() else {
        let message = "`completion_status` is neither `complete` nor `interrupted`";
        report.add(
            Rule::CompletionStatus,
            path.key("completion_status"),
            message,
        );
        return;
    };
    let interruption = path.key("interruption");
    match (status, present("interruption")) {
        (CompletionStatus::Complete, true) => {
            report.add(
                Rule::Interruption,
                interruption,
                "a complete turn was not interrupted",
            );
        }
        (CompletionStatus::Interrupted, false) => {
            report.add(
                Rule::Interruption,
                path,
                "an interrupted turn says why and when",
            );
        }
        (CompletionStatus::Complete, false) => {}
        (CompletionStatus::Interrupted, true) => {
            if let Some(value) = object.get("interruption")
                && let Some(value) = fields::object(report, interruption, value)
            {
                fields::check(report, interruption, value, INTERRUPTION);
            }
        }
    }
    if status == CompletionStatus::Interrupted {
        if present("completed_at") {
            report.add(
                Rule::CompletedAt,
                path.key("completed_at"),
                "an interrupted turn did not complete",
            );
        }
        if !turn
            .messages()
            .any(|message| matches!(message, Message::Response(_)))
        {
            report.add(
                Rule::NoCycle,
                path,
                "an interrupted turn holds at least one complete cycle",
            );
        }
    }
}

fn check_message(
    report: &mut Report<'_>,
    path: Path<'_>,
    message: &Object,
    registry: &Registry<'_>,
) {
    fields::check(report, path, message, MESSAGE);
    check_registered(
        report,
        Rule::AgentId,
        path.key("agent_id"),
        message.get_str("agent_id"),
        registry,
    );
    check_usage(
        report,
        path.key("usage"),
        message.get("usage").and_then(Json::as_object),
    );
    parts::check(report, path.key("parts"), items(message, "parts"));
}

/// Instructions are configuration, as system prompts are.
fn check_instructions(report: &mut Report<'_>, path: Path<'_>, request: &Object) {
    if request.get_str("instructions").is_some() {
        let message = "instructions belong into the configuration of the agent";
        report.add(Rule::SystemPrompt, path.key("instructions"), message);
    }
}

/// A complete response has a part; a run that is complete may have had an empty one all the same.
fn check_empty(report: &mut Report<'_>, path: Path<'_>, response: &Object, turn: AgentTurn<'_>) {
    let empty = response
        .get("parts")
        .and_then(Json::as_array)
        .is_some_and(<[Json]>::is_empty);
    if empty && report.version >= Version::V0_0_4 {
        let rule = match turn.completion_status() {
            Some(CompletionStatus::Interrupted) => Rule::CompleteCycle,
            Some(CompletionStatus::Complete) | None => Rule::EmptyResponse,
        };
        report.add(rule, path, "the response has no parts");
    }
}

fn check_usage(report: &mut Report<'_>, path: Path<'_>, usage: Option<&Object>) {
    if let Some(usage) = usage {
        fields::check(report, path, usage, USAGE);
    }
}

/// Reports an agent that the registry has not.
pub(super) fn check_registered(
    report: &mut Report<'_>,
    rule: Rule,
    path: Path<'_>,
    agent_id: Option<&str>,
    registry: &Registry<'_>,
) {
    if let Some(id) = agent_id.filter(|id| !registry.contains(id)) {
        report.add(
            rule,
            path,
            format!("the agent {id:?} is not in the registry"),
        );
    }
}

fn unknown(report: &mut Report<'_>, path: Path<'_>, json: &Json, tag: &'static str) {
    let Some(object) = fields::object(report, path, json) else {
        return;
    };
    fields::check(report, path, object, &[required(tag, Shape::Text)]);
    if let Some(kind) = object.get_str(tag) {
        report.add(
            Rule::UnknownKind,
            path.key(tag),
            format!("{kind:?} is not known"),
        );
    }
}
