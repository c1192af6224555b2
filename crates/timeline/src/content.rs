//! What a part may be (EK §4.4, §11): the canonical kinds, tool calls, and namespaced extensions.

use crate::payload::Payload;
use serde_json::{Map, Value};

/// What kind a part's `type` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind<'a> {
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
    /// Any namespaced name: kept, never interpreted.
    Extension(&'a str),
}

/// Why a part is refused; `pointer` is relative to the content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// A part is not an object with a string `type`.
    #[error("{pointer}: a part is an object with a string \"type\"")]
    NotAPart {
        /// Where.
        pointer: String,
    },
    /// The content of a message is not a list of parts.
    #[error("the content of a message is a list of parts")]
    NotAList,
    /// An unknown type has no namespace (EK §11 rule 2).
    #[error(
        "{pointer}/type: {kind:?} is no canonical part type, and an extension needs a namespace such as \"app-{kind}\""
    )]
    NotNamespaced {
        /// Where.
        pointer: String,
        /// The type.
        kind: String,
    },
    /// A canonical type is used with another meaning (EK §11 rule 3).
    #[error("{pointer}/{field}: a part of type {kind:?} needs {expected} here")]
    Reinterpreted {
        /// Where.
        pointer: String,
        /// The type.
        kind: String,
        /// The field that is missing or of another shape.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

/// Reads a part's `type`. A name without a namespace that is not canonical has no kind.
pub fn part_kind(name: &str) -> Option<PartKind<'_>> {
    Some(match name {
        "input_text" => PartKind::InputText,
        "output_text" => PartKind::OutputText,
        "reasoning" => PartKind::Reasoning,
        "input_image" => PartKind::InputImage,
        "input_file" => PartKind::InputFile,
        "refusal" => PartKind::Refusal,
        _ => {
            if let Some(tool) = name.strip_prefix("tool-") {
                PartKind::Tool(tool)
            } else if name.contains([':', '.', '/', '-']) {
                PartKind::Extension(name)
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
        PartKind::InputText | PartKind::OutputText | PartKind::Reasoning => {
            needs("text", "a string", is_string(object, "text"))
        }
        PartKind::Refusal => needs("refusal", "a string", is_string(object, "refusal")),
        PartKind::InputImage => needs(
            "image_url",
            "a string (or a \"file_id\")",
            is_string(object, "image_url") || is_string(object, "file_id"),
        ),
        PartKind::InputFile => needs(
            "file_url",
            "a string (or \"file_data\" or \"file_id\")",
            ["file_url", "file_data", "file_id"]
                .iter()
                .any(|field| is_string(object, field)),
        ),
        PartKind::Tool(_) => {
            needs("toolCallId", "a string", is_string(object, "toolCallId"))?;
            needs("state", "a string", is_string(object, "state"))
        }
        PartKind::Extension(_) => Ok(()),
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
    fn a_namespaced_extension_is_taken_as_it_is() {
        assert_eq!(
            check_part(&json!({"type": "codex-event", "output": {"threadId": "t1"}}).into()),
            Ok(())
        );
    }
}
