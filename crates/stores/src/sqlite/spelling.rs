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
#[derive(Debug, Default)]
pub(super) struct ResponseTag<'a> {
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) provider: Option<Cow<'a, str>>,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawResponse<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    provider: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawUsage<'a> {
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
}

impl<'a> ResponseTag<'a> {
    pub(super) fn of(response: &'a Payload) -> Self {
        let said: RawResponse<'a> = response.read().unwrap_or_default();
        let usage: RawUsage<'a> = plain(said.usage).unwrap_or_default();
        Self {
            model: plain(said.model),
            provider: plain(said.provider),
            input_tokens: plain(usage.input_tokens),
            output_tokens: plain(usage.output_tokens),
        }
    }
}

/// A value that is of this type.
fn plain<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// JSON as its text.
pub(super) fn text(payload: Option<&Payload>) -> Option<&str> {
    payload.map(Payload::text)
}

/// An item's type as EK §4.3 spells it.
pub(super) fn item_type(item_type: ItemType) -> &'static str {
    item_type.name()
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_odd_in_an_answer_is_absent_and_the_rest_is_not() {
        let odd = json!({
            "model": 7, "provider": "p", "other": [{"model": "no"}],
            "usage": {"inputTokens": 12, "outputTokens": 3.5},
        });
        let response = Payload::from(odd);
        let tag = ResponseTag::of(&response);
        assert_eq!(tag.model, None);
        assert_eq!(tag.provider.as_deref(), Some("p"));
        assert_eq!((tag.input_tokens, tag.output_tokens), (Some(12), None));
        let response = Payload::from(json!({"model": "m", "usage": "much"}));
        let tag = ResponseTag::of(&response);
        assert_eq!(tag.model.as_deref(), Some("m"));
        assert_eq!((tag.input_tokens, tag.output_tokens), (None, None));
    }
}
