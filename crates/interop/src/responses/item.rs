//! The items of a request's input.

use super::content::{MAX_TEXT, Side, content};
use super::error::RequestError;
use super::fields::{Fields, invalid, unsupported, wrong};
use super::sealed;
use crate::options::{TOOL_NAME, is_tool_name};
use crate::parts::ReasoningPart;
use serde_json::{Value, json};
use timeline::{Payload, Role};

/// The most items of one input.
pub(crate) const MAX_ITEMS: usize = 10_000;
/// The most characters of a tool's name.
const MAX_NAME: usize = 64;
/// Maximum length of a call's id, in characters. The schema allows 64, but clients must be able to
/// send back every id that the server issued.
pub(crate) const MAX_CALL_ID: usize = 1_024;
/// The type of this server's approval items. The specification requires a prefix for extensions.
pub(super) const APPROVAL_RESPONSE: &str = "loomline:approval_response";

/// One input item, with its pointer in the request.
#[derive(Clone, Debug, PartialEq)]
pub struct InputItem {
    /// A JSON pointer.
    pub pointer: String,
    /// The content of the item.
    pub content: InputContent,
}

/// The content of an input item.
#[derive(Clone, Debug, PartialEq)]
pub enum InputContent {
    /// A message.
    Message {
        /// The author's role.
        role: Role,
        /// The parts of the message, in the log's format.
        content: Vec<Value>,
        /// `commentary` or `final_answer`, of an assistant's message.
        phase: Option<String>,
    },
    /// A model's reasoning: a part in the log's format.
    Reasoning(Payload),
    /// A call of a tool.
    Call {
        /// Correlates it with its result.
        call_id: String,
        /// The tool.
        name: String,
        /// The arguments, a text that should be JSON.
        arguments: String,
    },
    /// The result of a call: a text, or a list of parts.
    CallOutput {
        /// The call.
        call_id: String,
        /// The result.
        output: Value,
    },
    /// The summary of an earlier history: a compaction of this server.
    Compaction {
        /// The summary.
        summary: String,
    },
    /// An item that the server has.
    Reference {
        /// The id of the item, in the protocol's spelling.
        id: String,
    },
    /// Whether a call that waits for an approval may run; an extension.
    Approval {
        /// The call.
        call_id: String,
        /// Whether it may.
        approve: bool,
        /// The reason for a denial.
        reason: Option<String>,
    },
}

/// Reads the member `input`: a text is a user's message.
pub(super) fn input(fields: &Fields<'_>, key: &str) -> Result<Vec<InputItem>, RequestError> {
    match fields.get(key) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => {
            fields.text(key, MAX_TEXT)?;
            let content = vec![json!({"type": "input_text", "text": text})];
            let (role, phase) = (Role::User, None);
            Ok(vec![InputItem {
                pointer: fields.at(key),
                content: InputContent::Message {
                    role,
                    content,
                    phase,
                },
            }])
        }
        Some(Value::Array(_)) => items(fields, key, MAX_ITEMS),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Err(wrong(fields.at(key), "a string or an array of items"))
        }
    }
}

/// Reads a list of at most `limit` items.
pub(super) fn items(
    fields: &Fields<'_>,
    key: &str,
    limit: usize,
) -> Result<Vec<InputItem>, RequestError> {
    let list = fields.placed(key, limit)?.unwrap_or_default();
    list.into_iter()
        .map(|(at, value)| item(value, at))
        .collect()
}

/// Reads one item.
pub(super) fn item(value: &Value, pointer: String) -> Result<InputItem, RequestError> {
    let fields = Fields::of(value, &pointer)?;
    let says = match fields.text("type", usize::MAX)? {
        Some("message") => message(&fields)?,
        None if fields.get("role").is_some() => message(&fields)?,
        Some("function_call") => call(&fields)?,
        Some("function_call_output") => call_output(&fields)?,
        Some("reasoning") => reasoning(&fields)?,
        Some("compaction" | "compaction_summary") => compaction(&fields)?,
        None | Some("item_reference") => InputContent::Reference {
            id: fields.required("id", 1_024)?.to_owned(),
        },
        Some(APPROVAL_RESPONSE) => InputContent::Approval {
            call_id: call_id(&fields)?,
            approve: fields.expect("approve", "true or false", Value::as_bool)?,
            reason: fields.text("reason", MAX_TEXT)?.map(str::to_owned),
        },
        Some(kind) => {
            let message = format!("items of type {kind:?} are not supported");
            return Err(unsupported(fields.at("type"), &message));
        }
    };
    Ok(InputItem {
        pointer,
        content: says,
    })
}

fn message(fields: &Fields<'_>) -> Result<InputContent, RequestError> {
    let role = match fields.word("role", &["user", "assistant", "system", "developer"])? {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        Some(_) | None => return Err(fields.missing("role")),
    };
    let side = match role {
        Role::Assistant => Side::Output,
        Role::User | Role::System | Role::Developer => Side::Input,
    };
    let phase = match role {
        Role::Assistant => fields.word("phase", &["commentary", "final_answer"])?,
        Role::User | Role::System | Role::Developer => None,
    };
    Ok(InputContent::Message {
        role,
        content: content(fields, "content", side)?,
        phase: phase.map(str::to_owned),
    })
}

/// The name of a tool.
pub(crate) fn name(fields: &Fields<'_>) -> Result<String, RequestError> {
    let name = fields.required("name", MAX_NAME)?;
    if is_tool_name(name) {
        return Ok(name.to_owned());
    }
    Err(invalid(fields.at("name"), &format!("expected {TOOL_NAME}")))
}

fn call_id(fields: &Fields<'_>) -> Result<String, RequestError> {
    let id = fields.required("call_id", MAX_CALL_ID)?;
    if id.is_empty() {
        return Err(invalid(
            fields.at("call_id"),
            "expected a text that is not empty",
        ));
    }
    Ok(id.to_owned())
}

fn call(fields: &Fields<'_>) -> Result<InputContent, RequestError> {
    Ok(InputContent::Call {
        call_id: call_id(fields)?,
        name: name(fields)?,
        arguments: fields.required("arguments", MAX_TEXT)?.to_owned(),
    })
}

fn call_output(fields: &Fields<'_>) -> Result<InputContent, RequestError> {
    let output = match fields.get("output") {
        Some(Value::String(text)) => {
            fields.text("output", MAX_TEXT)?;
            text.as_str().into()
        }
        _ => Value::Array(content(fields, "output", Side::Result)?),
    };
    Ok(InputContent::CallOutput {
        call_id: call_id(fields)?,
        output,
    })
}

/// Reads a reasoning item as one part of the log; several texts are joined.
fn reasoning(fields: &Fields<'_>) -> Result<InputContent, RequestError> {
    let mut texts = Vec::new();
    for key in ["content", "summary"] {
        for (at, value) in fields.placed(key, 1_000)?.unwrap_or_default() {
            let text = Fields::of(value, &at)?;
            texts.push(text.required("text", MAX_TEXT)?.to_owned());
        }
        if !texts.is_empty() {
            break;
        }
    }
    let sealed = fields.text("encrypted_content", MAX_TEXT)?;
    let (provider, signature) = sealed.and_then(sealed::open_reasoning).unzip();
    let part = ReasoningPart {
        part_type: "reasoning".to_owned(),
        text: texts.join("\n\n"),
        signature,
        provider,
        extra: None,
    };
    let part = Payload::write(&part).map_err(|_| wrong(fields.at("summary"), "texts"))?;
    Ok(InputContent::Reasoning(part))
}

fn compaction(fields: &Fields<'_>) -> Result<InputContent, RequestError> {
    let sealed = fields.required("encrypted_content", MAX_TEXT)?;
    let summary = sealed::open_summary(sealed).ok_or_else(|| {
        invalid(
            fields.at("encrypted_content"),
            "expected a compaction that this server has made",
        )
    })?;
    Ok(InputContent::Compaction { summary })
}
