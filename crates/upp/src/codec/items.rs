//! A provider's own items of an answer, in the provider's order.
//!
//! A message stores content blocks and calls separately, and has no server tools, citations, item ids or
//! encrypted blocks. A codec stores what it needs to send an answer back exactly under
//! `metadata.<provider>.items`. Values that the message itself has are not stored twice.

use super::Conversation;
use crate::message::AssistantMessage;
use serde_json::{Map, Value};

const KEY: &str = "items";

/// One item of an answer. In JSON: `{"content": 0}`, `{"call": 0}`, with `"with"` if there are more
/// fields, or `{"native": …}`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    /// The content block at this index, and what the block does not hold.
    Content(usize, Map<String, Value>),
    /// The call at this index, and what the call does not hold.
    Call(usize, Map<String, Value>),
    /// Something that is neither, as the provider sent it.
    Native(Value),
}

/// Writes the items into a provider's fields. Writes nothing if the message's own order is enough.
pub(crate) fn write(items: &[Item], fields: &mut Map<String, Value>) {
    let n_content = items
        .iter()
        .filter(|item| matches!(item, Item::Content(..)))
        .count();
    let plain = items.iter().enumerate().all(|(at, item)| match item {
        Item::Content(index, with) => with.is_empty() && *index == at,
        Item::Call(index, with) => with.is_empty() && n_content.checked_add(*index) == Some(at),
        Item::Native(_) => false,
    });
    if !plain {
        let items = items.iter().map(json).collect();
        fields.insert(KEY.to_owned(), Value::Array(items));
    }
}

fn json(item: &Item) -> Value {
    let entry = |key: &str, value: Value, with: &Map<String, Value>| {
        let mut entry = Map::from_iter([(key.to_owned(), value)]);
        if !with.is_empty() {
            entry.insert("with".to_owned(), Value::Object(with.clone()));
        }
        Value::Object(entry)
    };
    match item {
        Item::Content(index, with) => entry("content", Value::from(*index), with),
        Item::Call(index, with) => entry("call", Value::from(*index), with),
        Item::Native(native) => entry("native", native.clone(), &Map::new()),
    }
}

/// The items of a message of this provider; without stored items, the content and then the calls. Items
/// that don't name every block and call exactly once are ignored, because the message was edited since.
pub(crate) fn read(message: &AssistantMessage, provider: &str) -> Vec<Item> {
    let kept = message
        .metadata
        .get(provider)
        .and_then(|fields| fields.get(KEY)?.as_array())
        .and_then(|items| items.iter().map(item).collect::<Option<Vec<Item>>>());
    kept.filter(|items| is_whole(items, message))
        .unwrap_or_else(|| plain(message))
}

/// Lists the items that another model or provider stored with its message as omitted.
pub(crate) fn omit_foreign(assistant: &AssistantMessage, conversation: &mut Conversation) {
    let why = "it is of another model or provider";
    for provider in assistant.metadata.keys() {
        for item in read(assistant, provider) {
            match item {
                Item::Native(value) => {
                    let kind = value.get("type").and_then(Value::as_str);
                    let reasoning = kind.is_some_and(|kind| {
                        kind.contains("thinking") || kind.contains("reasoning")
                    });
                    let what = if reasoning {
                        "reasoning"
                    } else {
                        "provider_item"
                    };
                    conversation.omit(assistant, what, why);
                }
                Item::Content(_, with) if with.contains_key("citations") => {
                    conversation.omit(assistant, "citation", why);
                }
                Item::Content(..) | Item::Call(..) => {}
            }
        }
    }
}

/// Content, then calls.
pub(crate) fn plain(message: &AssistantMessage) -> Vec<Item> {
    let content = (0..message.content.len()).map(|at| Item::Content(at, Map::new()));
    let calls = (0..message.tool_calls.len()).map(|at| Item::Call(at, Map::new()));
    content.chain(calls).collect()
}

fn item(value: &Value) -> Option<Item> {
    let with = || match value.get("with") {
        Some(Value::Object(with)) => with.clone(),
        _ => Map::new(),
    };
    let index = |key: &str| usize::try_from(value.get(key)?.as_u64()?).ok();
    if let Some(native) = value.get("native") {
        return Some(Item::Native(native.clone()));
    }
    match (index("content"), index("call")) {
        (Some(at), None) => Some(Item::Content(at, with())),
        (None, Some(at)) => Some(Item::Call(at, with())),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

fn is_whole(items: &[Item], message: &AssistantMessage) -> bool {
    let mut content = vec![false; message.content.len()];
    let mut calls = vec![false; message.tool_calls.len()];
    let each_once = items.iter().all(|item| {
        let seen = match item {
            Item::Content(at, _) => content.get_mut(*at),
            Item::Call(at, _) => calls.get_mut(*at),
            Item::Native(_) => return true,
        };
        seen.is_some_and(|seen| !std::mem::replace(seen, true))
    });
    each_once && content.into_iter().chain(calls).all(|seen| seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::AssistantContent;
    use crate::message::{MessageOptions, Metadata};
    use crate::tool::{Arguments, ToolCall};
    use serde_json::json;

    fn message(items: &[Item]) -> AssistantMessage {
        let mut fields = Map::new();
        write(items, &mut fields);
        let text = |text: &str| AssistantContent::Text { text: text.into() };
        let call = ToolCall {
            tool_call_id: "c".into(),
            tool_name: "f".into(),
            arguments: Arguments::from_text("{}"),
            after: Vec::new(),
        };
        let options = MessageOptions {
            metadata: Some(Metadata::from_iter([("p".into(), Value::Object(fields))])),
            ..MessageOptions::default()
        };
        AssistantMessage::new(vec![text("a"), text("b")], vec![call], options)
    }

    #[test]
    fn items_come_back_in_the_providers_order() {
        let with = Map::from_iter([("id".to_owned(), json!("fc_1"))]);
        let items = [
            Item::Content(0, Map::new()),
            Item::Native(json!({"type": "search"})),
            Item::Call(0, with),
            Item::Content(1, Map::new()),
        ];
        assert_eq!(read(&message(&items), "p"), items);
    }

    #[test]
    fn the_usual_order_is_not_written_down() {
        let items = plain(&message(&[]));
        let message = message(&items);
        assert_eq!(message.metadata["p"], json!({}));
        assert_eq!(read(&message, "p"), items);
    }

    #[test]
    fn items_of_an_edited_message_are_not_believed() {
        for items in [
            vec![Item::Content(0, Map::new()), Item::Call(0, Map::new())],
            vec![Item::Content(7, Map::new())],
            vec![Item::Call(0, Map::new()), Item::Call(0, Map::new())],
        ] {
            let message = message(&items);
            assert_eq!(read(&message, "p"), plain(&message));
        }
    }
}
