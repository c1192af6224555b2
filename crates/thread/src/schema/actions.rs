//! The actions of 1.0.0.

use super::context::Context;
use super::parts;
use super::turns::{dispatch, usage};
use super::ty::{Type, is, reference, texts, when};
use crate::json::Object;
use crate::validate::actions::{
    ACTION, ASSISTANT_MESSAGE, EVENT, IMAGE_ITEM, ITEM, TEXT_ITEM, THINKING, TOOL_CALL,
    TOOL_RETURN, USER_MESSAGE,
};
use crate::validate::fields::{Field, Need};

/// The kinds of actions, by the name of their type. Events are separate.
const ACTIONS: [(&str, &str, &[Field]); 5] = [
    ("user_message", "UserMessage", USER_MESSAGE),
    ("assistant_message", "AssistantMessage", ASSISTANT_MESSAGE),
    ("thinking", "Thinking", THINKING),
    ("tool_call", "ToolCall", TOOL_CALL),
    ("tool_return", "ToolReturn", TOOL_RETURN),
];

/// The pattern of an event's name.
const SYSTEM: &str = "^system\\.";

/// The types from the action down.
pub(super) fn types(context: Context<'_>) -> Vec<(&'static str, Object)> {
    let mut types = vec![action(context)];
    types.extend(ACTIONS.map(|(kind, name, fields)| known(context, kind, name, fields)));
    let event =
        Type::new(context, "SystemEvent").required("action_type", &named("pattern", SYSTEM));
    types.push(event.fields(EVENT).finish());
    types.push(content(context));
    let text = Type::new(context, "TextContent").tagged("type", &["text"]);
    types.push(text.fields(TEXT_ITEM).finish());
    let image = Type::new(context, "ImageContent").tagged("type", &["image"]);
    types.push(image.fields(IMAGE_ITEM).finish());
    types.push(parts::attachment(context, Need::Required));
    types.push(usage(context));
    types
}

fn named(keyword: &'static str, value: &str) -> Object {
    Object::new().with(keyword, value)
}

fn action(context: Context<'_>) -> (&'static str, Object) {
    let mut action = Type::new(context, "Action").fields(ACTION);
    if context.is_strict() {
        let kinds = ACTIONS.map(|(kind, ..)| kind).join("|");
        action = action.keyword("action_type", "pattern", format!("^({kinds})$|{SYSTEM}"));
    }
    for (kind, name, _) in ACTIONS {
        action = action.rule(when(is("action_type", &[kind]), reference(name)));
    }
    let event = named("type", "string").with("pattern", SYSTEM);
    let event = Object::new()
        .with("type", "object")
        .with("required", texts(&["action_type"]))
        .with("properties", Object::new().with("action_type", event));
    action.rule(when(event, reference("SystemEvent"))).finish()
}

fn known(
    context: Context<'_>,
    kind: &'static str,
    name: &'static str,
    fields: &[Field],
) -> (&'static str, Object) {
    let action = Type::new(context, name)
        .tagged("action_type", &[kind])
        .fields(fields);
    match kind {
        "user_message" => action.items("content", "ContentPart").attachments(),
        "assistant_message" => action
            .items("content", "ContentPart")
            .object("usage", "Usage"),
        "thinking" => action.object("usage", "Usage"),
        _ => action,
    }
    .finish()
}

fn content(context: Context<'_>) -> (&'static str, Object) {
    let kinds: [(&[&str], &str); 2] = [(&["text"], "TextContent"), (&["image"], "ImageContent")];
    let ty = dispatch(context, "ContentPart", "type", &kinds).fields(ITEM);
    if !context.is_strict() {
        return ty.finish();
    }
    let known = texts(&["text", "image", "file", "audio", "video"]);
    ty.keyword("type", "enum", known).finish()
}
