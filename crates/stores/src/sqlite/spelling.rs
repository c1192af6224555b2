//! How things are spelled in columns.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use timeline::{ItemType, Payload, Role};

/// What a part says of itself; whatever is odd is absent.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartTag<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) tool_call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) state: Option<Cow<'a, str>>,
}

impl<'a> PartTag<'a> {
    pub(super) fn of(part: &'a Payload) -> Self {
        part.read().unwrap_or_default()
    }
}

/// What a model's answer says of itself; whatever is odd is absent.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ResponseTag<'a> {
    #[serde(borrow, default)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) provider: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// The tokens of a model call.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageTag {
    #[serde(default)]
    pub(super) input_tokens: Option<u64>,
    #[serde(default)]
    pub(super) output_tokens: Option<u64>,
}

/// JSON as its text.
pub(super) fn text(payload: Option<&Payload>) -> Option<&str> {
    payload.map(Payload::text)
}

/// An item's type as EK §4.3 spells it.
pub(super) fn item_type(item_type: ItemType) -> &'static str {
    match item_type {
        ItemType::Message => "message",
        ItemType::ActionExecute => "action_execute",
        ItemType::ActionResult => "action_result",
        ItemType::ItemReference => "item_reference",
    }
}

/// The item's type of this name.
pub(super) fn item_type_of(name: &str) -> Option<ItemType> {
    let all = [
        ItemType::Message,
        ItemType::ActionExecute,
        ItemType::ActionResult,
        ItemType::ItemReference,
    ];
    all.into_iter().find(|it| item_type(*it) == name)
}

/// A message's role as EK §4.3 spells it.
pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Developer => "developer",
    }
}
