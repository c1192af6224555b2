//! The kinds of parts (EK §4.4, §11): the canonical kinds, tool calls, and namespaced extensions.

use crate::entity::ItemType;
use crate::payload::Payload;
use serde_json::{Map, Value};

/// The kind that a part's `type` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePartKind<'a> {
    /// `input_text`.
    InputText,
    /// `output_text`.
    OutputText,
    /// `reasoning`.
    Reasoning,
    /// `input_image`.
    InputImage,
    /// `input_file`.
    InputFile,
    /// `refusal`.
    Refusal,
    /// `tool-<name>`: a call, with its result once there is one.
    Tool(&'a str),
    /// Any namespaced name: stored, never interpreted.
    Extension(&'a str),
}

/// The reason why a part is refused; `pointer` is relative to the content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// A part is not an object with a string `type`.
    #[error("{pointer}: a part is an object with a string \"type\"")]
    NotAPart {
        /// Its JSON Pointer.
        pointer: String,
    },
    /// The content of an item that is not a message has a shape that no such item allows.
    #[error("the content of an item of type {item_type} is an object or a list of parts")]
    NotContent {
        /// The item's type.
        item_type: &'static str,
    },
    /// The content of a message is not a list of parts.
    #[error("the content of a message is a list of parts")]
    NotAList,
    /// An unknown type has no namespace (EK §11 rule 2).
    #[error(
        "{pointer}/type: {kind:?} is no canonical part type, and an extension needs a namespace such as \"app-{kind}\""
    )]
    NotNamespaced {
        /// Its JSON Pointer.
        pointer: String,
        /// The type.
        kind: String,
    },
    /// A canonical type is used with another meaning (EK §11 rule 3).
    #[error("{pointer}/{field}: a part of type {kind:?} needs {expected} here")]
    Reinterpreted {
        /// Its JSON Pointer.
        pointer: String,
        /// The type.
        kind: String,
        /// The field that is missing or of another shape.
        field: &'static str,
        /// The expected value.
        expected: &'static str,
    },
}

/// Reads a part's `type`. `None` for a name that is neither canonical nor has a namespace.
pub fn part_kind(name: &str) -> Option<MessagePartKind<'_>> {
    Some(match name {
        "input_text" => MessagePartKind::InputText,
        "output_text" => MessagePartKind::OutputText,
        "reasoning" => MessagePartKind::Reasoning,
        "input_image" => MessagePartKind::InputImage,
        "input_file" => MessagePartKind::InputFile,
        "refusal" => MessagePartKind::Refusal,
        _ => {
            if let Some(tool) = name.strip_prefix("tool-") {
                MessagePartKind::Tool(tool)
            } else if name.contains([':', '.', '/', '-']) {
                MessagePartKind::Extension(name)
            } else {
                return None;
            }
        }
    })
}

/// Checks one part against EK §4.4 and §11.
pub fn check_part(part: &Payload) -> Result<(), ContentError> {
    check_value(&part.value(), "")
}

/// Checks the content of a message: a list of parts.
pub fn check_content(content: &Payload) -> Result<(), ContentError> {
    let Value::Array(parts) = content.value() else {
        return Err(ContentError::NotAList);
    };
    check_parts(&parts)
}

/// Checks the parts of a message that are parsed already.
pub fn check_parts(parts: &[Value]) -> Result<(), ContentError> {
    parts
        .iter()
        .enumerate()
        .try_for_each(|(index, part)| check_value(part, &format!("/{index}")))
}

fn check_value(part: &Value, pointer: &str) -> Result<(), ContentError> {
    let not_a_part = || ContentError::NotAPart {
        pointer: pointer.to_owned(),
    };
    let object = part.as_object().ok_or_else(not_a_part)?;
    let name = object
        .get("type")
        .and_then(Value::as_str)
        .ok_or_else(not_a_part)?;
    let kind = part_kind(name).ok_or_else(|| ContentError::NotNamespaced {
        pointer: pointer.to_owned(),
        kind: name.to_owned(),
    })?;
    let needs = |field: &'static str, expected: &'static str, holds: bool| {
        if holds {
            return Ok(());
        }
        Err(ContentError::Reinterpreted {
            pointer: pointer.to_owned(),
            kind: name.to_owned(),
            field,
            expected,
        })
    };
    match kind {
        MessagePartKind::InputText | MessagePartKind::OutputText | MessagePartKind::Reasoning => {
            needs("text", "a string", is_string(object, "text"))
        }
        MessagePartKind::Refusal => needs("refusal", "a string", is_string(object, "refusal")),
        MessagePartKind::InputImage => needs(
            "image_url",
            "a string (or a \"file_id\")",
            is_string(object, "image_url") || is_string(object, "file_id"),
        ),
        MessagePartKind::InputFile => needs(
            "file_url",
            "a string (or \"file_data\" or \"file_id\")",
            ["file_url", "file_data", "file_id"]
                .iter()
                .any(|field| is_string(object, field)),
        ),
        MessagePartKind::Tool(_) => {
            needs("toolCallId", "a string", is_string(object, "toolCallId"))?;
            // A call that was just made need not say so (EK §14).
            let state = object.get("state");
            needs("state", "a string", state.is_none_or(Value::is_string))
        }
        MessagePartKind::Extension(_) => Ok(()),
    }
}

/// Checks the content of an item of this type (EK §4.3, §10, §11).
///
/// A message has a list of parts. A call and a result are Open Responses' `function_call` and
/// `function_call_output`, or a list of parts. A pointer names an item, or carries namespaced data.
pub fn check_item(item_type: ItemType, content: &Payload) -> Result<(), ContentError> {
    let content = match (item_type, content.value()) {
        (_, Value::Array(parts)) => return check_parts(&parts),
        (ItemType::Message, _) => return Err(ContentError::NotAList),
        (_, Value::Object(content)) => content,
        (
            ItemType::ActionExecute | ItemType::ActionResult | ItemType::ItemReference,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_),
        ) => {
            let item_type = item_type.name();
            return Err(ContentError::NotContent { item_type });
        }
    };
    let item_type_name = item_type.name();
    let needs = |field: &'static str, expected: &'static str, holds: bool| {
        if holds {
            return Ok(());
        }
        Err(ContentError::Reinterpreted {
            pointer: String::new(),
            kind: item_type_name.to_owned(),
            field,
            expected,
        })
    };
    let type_is = |is: fn(&str) -> bool| {
        let name = content
            .get("type")
            .map(|name| name.as_str().is_some_and(is));
        name.unwrap_or(true)
    };
    match item_type {
        ItemType::ActionExecute => {
            let is_call = type_is(|name| name == "function_call");
            needs("type", "\"function_call\"", is_call)?;
            let texts = ["call_id", "name", "arguments"];
            let mut texts = texts.into_iter();
            texts.try_for_each(|field| needs(field, "a string", is_string(&content, field)))
        }
        ItemType::ActionResult => {
            let is_result = type_is(|name| name == "function_call_output");
            needs("type", "\"function_call_output\"", is_result)?;
            needs("call_id", "a string", is_string(&content, "call_id"))?;
            needs(
                "output",
                "what the call gave",
                content.contains_key("output"),
            )
        }
        ItemType::ItemReference => {
            let is_other = |name: &str| {
                name == "item_reference"
                    || matches!(part_kind(name), Some(MessagePartKind::Extension(_)))
            };
            needs(
                "type",
                "\"item_reference\" or a name with a namespace",
                type_is(is_other),
            )?;
            let points = content.get("itemId");
            needs("itemId", "a string", points.is_none_or(Value::is_string))
        }
        ItemType::Message => Ok(()),
    }
}

fn is_string(object: &Map<String, Value>, field: &str) -> bool {
    object.get(field).is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_extension_without_a_namespace_is_refused() {
        let error = check_part(&json!({"type": "sparkle"}).into()).unwrap_err();
        assert_eq!(
            error,
            ContentError::NotNamespaced {
                pointer: String::new(),
                kind: "sparkle".into()
            }
        );
    }

    #[test]
    fn an_extension_can_not_reinterpret_a_canonical_kind() {
        let error = check_content(&json!([{"type": "output_text", "text": {"rich": true}}]).into())
            .unwrap_err();
        let pointer = "/0".to_owned();
        assert_eq!(
            error,
            ContentError::Reinterpreted {
                pointer,
                kind: "output_text".into(),
                field: "text",
                expected: "a string"
            }
        );
    }

    #[test]
    fn a_tool_part_without_a_state_is_taken() {
        let part = json!({"type": "tool-plan_writer", "toolCallId": "tc_1", "input": {}});
        assert_eq!(check_part(&part.into()), Ok(()));
        let odd = json!({"type": "tool-t", "toolCallId": "tc_1", "state": 7});
        assert!(check_part(&odd.into()).is_err());
    }

    fn field(item_type: ItemType, content: Value) -> &'static str {
        match check_item(item_type, &content.into()) {
            Err(ContentError::Reinterpreted { field, .. }) => field,
            Err(ContentError::NotContent { .. }) => "content",
            Err(_) => "part",
            Ok(()) => "",
        }
    }

    #[test]
    fn content_of_action_items_is_checked() {
        let (call, result) = (ItemType::ActionExecute, ItemType::ActionResult);
        let made = json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"});
        let gave = json!({"type": "function_call_output", "call_id": "c", "output": [1]});
        assert_eq!(field(call, made.clone()), "");
        assert_eq!(field(result, gave.clone()), "");
        assert_eq!(field(call, gave), "type");
        assert_eq!(field(result, made), "type");
        assert_eq!(
            field(call, json!({"call_id": "c", "name": "n"})),
            "arguments"
        );
        assert_eq!(field(call, json!({"call_id": 7})), "call_id");
        assert_eq!(field(result, json!({"call_id": "c"})), "output");
        assert_eq!(field(result, json!([{"type": "loomline-answer"}])), "");
        assert_eq!(field(result, json!([{"type": "sparkle"}])), "part");
        for item_type in [call, result] {
            assert_eq!(field(item_type, json!("text")), "content");
        }
    }

    #[test]
    fn content_of_an_item_reference_is_checked() {
        let points = |content: Value| field(ItemType::ItemReference, content);
        assert_eq!(points(json!({"itemId": "i"})), "");
        assert_eq!(points(json!({"type": "app-checkout", "node": "n"})), "");
        assert_eq!(points(json!([{"type": "data-app-joined", "data": {}}])), "");
        assert_eq!(points(json!({"itemId": 7})), "itemId");
        assert_eq!(points(json!({"type": "output_text", "text": "hi"})), "type");
        assert_eq!(points(json!({"type": "message"})), "type");
        assert_eq!(points(json!(7)), "content");
    }

    #[test]
    fn a_namespaced_extension_is_taken_as_it_is() {
        assert_eq!(
            check_part(&json!({"type": "codex-event", "output": {"threadId": "t1"}}).into()),
            Ok(())
        );
    }
}
