//! Turns and messages.

use super::context::Context;
use super::ty::{Type, is, member, nothing, reference, texts, when};
use crate::document::{CompletionStatus, Version};
use crate::json::Object;
use crate::validate::fields::{Shape, required};
use crate::validate::turns::{
    AGENT_TURN, CLIENT_METADATA, COMPLETED, INTERRUPTION, MAY_COMPLETE, MESSAGE, SEPARATORS, USAGE,
    USER_TURN,
};
use crate::validate::{Rule, Severity, parts};

/// The types from the turn down to the message.
pub(super) fn types(context: Context<'_>) -> Vec<(&'static str, Object)> {
    let mut types = vec![
        turn(context),
        user(context),
        agent(context),
        message(context),
        model_message(context),
        usage(context),
    ];
    if *context.version >= Version::V0_0_4 {
        let interruption = Type::new(context, "Interruption").fields(INTERRUPTION);
        types.insert(3, interruption.finish());
    }
    types
}

/// An object whose kind its member `tag` names.
pub(super) fn dispatch<'v>(
    context: Context<'v>,
    name: &'static str,
    tag: &'static str,
    kinds: &[(&[&str], &str)],
) -> Type<'v> {
    let mut ty = Type::new(context, name).fields(&[required(tag, Shape::Text)]);
    for (values, name) in kinds {
        ty = ty.rule(when(is(tag, values), reference(name)));
    }
    ty
}

/// An object by its member `tag`. An unknown kind breaks a rule for writers.
fn closed<'v>(
    context: Context<'v>,
    name: &'static str,
    tag: &'static str,
    kinds: &[(&[&str], &str)],
) -> Type<'v> {
    let ty = dispatch(context, name, tag, kinds);
    if Rule::UnknownKind.severity(&context.profile.into()) < Severity::Error {
        return ty;
    }
    let known: Vec<_> = kinds
        .iter()
        .flat_map(|(values, _)| *values)
        .copied()
        .collect();
    ty.keyword(tag, "enum", texts(&known))
}

fn turn(context: Context<'_>) -> (&'static str, Object) {
    let kinds: [(&[&str], &str); 2] = [(&["user"], "UserTurn"), (&["agent"], "AgentTurn")];
    closed(context, "Turn", "turn_type", &kinds).finish()
}

fn user(context: Context<'_>) -> (&'static str, Object) {
    let mut user = Type::new(context, "UserTurn")
        .tagged("turn_type", &["user"])
        .fields(USER_TURN)
        .items("parts", "MessagePart")
        .fields(parts::ATTACHMENTS)
        .items("attachments", "Attachment");
    if *context.version >= Version::V0_0_3 {
        user = user.fields(CLIENT_METADATA);
        if context.is_strict() {
            let separators: String = SEPARATORS.iter().collect();
            let namespaced = Object::new().with("pattern", format!("[{separators}]"));
            user = user.keyword("client_metadata", "propertyNames", namespaced);
        }
    }
    user.finish()
}

fn agent(context: Context<'_>) -> (&'static str, Object) {
    let agent = Type::new(context, "AgentTurn")
        .tagged("turn_type", &["agent"])
        .fields(AGENT_TURN);
    let agent = if *context.version < Version::V0_0_4 {
        agent.fields(COMPLETED)
    } else {
        completion(context, agent.fields(MAY_COMPLETE))
    };
    agent
        .items("messages", "Message")
        .object("total_usage", "Usage")
        .finish()
}

/// How a turn ended (0.0.4 "Updated `AgentTurn`").
fn completion<'v>(context: Context<'v>, agent: Type<'v>) -> Type<'v> {
    let [complete, interrupted] =
        [CompletionStatus::Complete, CompletionStatus::Interrupted].map(CompletionStatus::as_str);
    let response = when(
        is("message_type", &["response"]),
        member("parts", Object::new().with("minItems", 1)),
    );
    let mut members = Object::new()
        .with("interruption", reference("Interruption"))
        .with("messages", Object::new().with("items", response));
    if context.is_strict() {
        members.insert("completed_at", nothing());
    }
    let ended = Object::new()
        .with("required", texts(&["interruption"]))
        .with("properties", members);
    agent
        .tagged("completion_status", &[complete, interrupted])
        .optional("interruption", &Object::new())
        .rule(when(
            is("completion_status", &[complete]),
            member("interruption", nothing()),
        ))
        .rule(when(is("completion_status", &[interrupted]), ended))
}

fn message(context: Context<'_>) -> (&'static str, Object) {
    let kinds: [(&[&str], &str); 2] = [
        (&["request", "response"], "ThreadMessage"),
        (&["system"], "SystemMessage"),
    ];
    closed(context, "Message", "message_type", &kinds).finish()
}

fn model_message(context: Context<'_>) -> (&'static str, Object) {
    let mut message = Type::new(context, "ThreadMessage")
        .tagged("message_type", &["request", "response"])
        .fields(MESSAGE)
        .items("parts", "MessagePart")
        .object("usage", "Usage");
    if context.is_strict() {
        let no_text = Object::new().with("not", Object::new().with("type", "string"));
        let request = is("message_type", &["request"]);
        message = message.rule(when(request, member("instructions", no_text)));
    }
    message.finish()
}

/// The usage of a model.
pub(super) fn usage(context: Context<'_>) -> (&'static str, Object) {
    Type::new(context, "Usage").fields(USAGE).finish()
}
