//! The messages of a request.

use crate::parts::ReasoningPart;
use crate::responses::content::{MAX_PARTS, MAX_TEXT, file, image};
use crate::responses::fields::{Fields, invalid, unsupported, wrong};
use crate::responses::item::{MAX_CALL_ID, MAX_ITEMS, name};
use crate::responses::{InputContent, InputItem, RequestError};
use serde_json::{Value, json};
use timeline::{Payload, Role};

/// The most calls of one message.
const MAX_CALLS: usize = 128;

/// One message of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryMessage {
    /// Its index in `messages`.
    pub index: usize,
    /// The content.
    pub content: MessageContent,
    /// The model's reasoning before an answer, as its client sends it back.
    pub reasoning: Option<String>,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageContent {
    /// A message to the agents.
    Message {
        /// User, system or developer.
        role: Role,
        /// Its parts, in the log's shapes.
        parts: Vec<Value>,
    },
    /// An answer of an agent.
    Answer {
        /// Its text; empty if it has none.
        text: String,
        /// The calls that its client answers.
        calls: Vec<HistoryCall>,
    },
    /// The result of a call.
    Result {
        /// The call.
        call_id: String,
        /// A text, or a list of parts in the log's shapes.
        output: Value,
    },
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCall {
    /// Correlates it with its result.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, a text that should be JSON.
    pub arguments: String,
}

impl HistoryMessage {
    /// Its JSON pointer in the request.
    pub fn pointer(&self) -> String {
        format!("/messages/{}", self.index)
    }

    /// Whether it is a system prompt, of the role system or developer.
    pub(super) fn is_prompt(&self) -> bool {
        matches!(&self.content, MessageContent::Message { role, .. } if *role != Role::User)
    }

    /// Whether it is an answer without text and calls.
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.content, MessageContent::Answer { text, calls } if text.is_empty() && calls.is_empty())
    }

    /// The message as items of an input.
    pub(super) fn items(&self) -> Vec<InputItem> {
        let message = |role, content| InputContent::Message {
            role,
            content,
            phase: None,
        };
        let mut contents = Vec::new();
        match &self.content {
            MessageContent::Message { role, parts } => contents.push(message(*role, parts.clone())),
            MessageContent::Answer { text, calls } => {
                contents.extend(self.reasoning.as_deref().and_then(reasoning));
                if !text.is_empty() {
                    let text = json!({"type": "output_text", "text": text});
                    contents.push(message(Role::Assistant, vec![text]));
                }
                contents.extend(calls.iter().map(|call| InputContent::Call {
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                }));
            }
            MessageContent::Result { call_id, output } => contents.push(InputContent::CallOutput {
                call_id: call_id.clone(),
                output: output.clone(),
            }),
        }
        let pointer = self.pointer();
        let item = |content| InputItem {
            pointer: pointer.clone(),
            content,
        };
        contents.into_iter().map(item).collect()
    }
}

fn reasoning(text: &str) -> Option<InputContent> {
    let part = ReasoningPart {
        part_type: "reasoning".to_owned(),
        text: text.to_owned(),
        signature: None,
        provider: None,
        extra: None,
    };
    Payload::write(&part).ok().map(InputContent::Reasoning)
}

/// Reads the member `messages`.
pub(super) fn messages(fields: &Fields<'_>) -> Result<Vec<HistoryMessage>, RequestError> {
    let list = fields.placed("messages", MAX_ITEMS)?;
    let list = list.ok_or_else(|| fields.missing("messages"))?;
    if list.is_empty() {
        return Err(invalid(
            fields.at("messages"),
            "expected one message or more",
        ));
    }
    let messages = list.into_iter().enumerate();
    messages
        .map(|(index, (at, value))| message(value, &at, index))
        .collect()
}

fn message(value: &Value, pointer: &str, index: usize) -> Result<HistoryMessage, RequestError> {
    let fields = Fields::of(value, pointer)?;
    let roles = ["system", "developer", "user", "assistant", "tool"];
    let role = fields.word("role", &roles)?;
    let content = match role.ok_or_else(|| fields.missing("role"))? {
        "assistant" => answer(&fields)?,
        "tool" => MessageContent::Result {
            call_id: fields.id("tool_call_id", MAX_CALL_ID)?,
            output: match fields.get("content") {
                Some(Value::String(_)) => required_text(&fields)?.into(),
                _ => Value::Array(parts(&fields, false)?),
            },
        },
        role => {
            let (role, has_media) = match role {
                "system" => (Role::System, false),
                "developer" => (Role::Developer, false),
                _ => (Role::User, true),
            };
            MessageContent::Message {
                role,
                parts: parts(&fields, has_media)?,
            }
        }
    };
    // A result's tool is known by its call; other names would be lost.
    if fields.get("name").is_some() && !matches!(content, MessageContent::Result { .. }) {
        return Err(unsupported(
            fields.at("name"),
            "names of speakers are not kept; say it in the content",
        ));
    }
    let is_answer = matches!(content, MessageContent::Answer { .. });
    let reasoning = if is_answer {
        fields.text("reasoning_content", MAX_TEXT)?
    } else {
        None
    };
    Ok(HistoryMessage {
        index,
        content,
        reasoning: reasoning.filter(|it| !it.is_empty()).map(str::to_owned),
    })
}

fn required_text<'a>(fields: &Fields<'a>) -> Result<&'a str, RequestError> {
    fields.required("content", MAX_TEXT)
}

/// The content of a message to the agents or of a result, as parts of the log.
fn parts(fields: &Fields<'_>, has_media: bool) -> Result<Vec<Value>, RequestError> {
    match fields.get("content") {
        None => Err(fields.missing("content")),
        Some(Value::String(_)) => {
            let text = required_text(fields)?;
            Ok(vec![json!({"type": "input_text", "text": text})])
        }
        Some(Value::Array(_)) => {
            let parts = fields.placed("content", MAX_PARTS)?.unwrap_or_default();
            let read = |(at, value): (String, &Value)| part(value, &at, has_media);
            parts.into_iter().map(read).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Err(wrong(fields.at("content"), "a string or an array of parts"))
        }
    }
}

fn part(value: &Value, pointer: &str, has_media: bool) -> Result<Value, RequestError> {
    let fields = Fields::of(value, pointer)?;
    match (fields.required("type", 256)?, has_media) {
        ("text", _) => {
            let text = fields.required("text", MAX_TEXT)?;
            Ok(json!({"type": "input_text", "text": text}))
        }
        ("image_url", true) => image(&fields.inner("image_url")?, "url"),
        ("file", true) => file(&fields.inner("file")?),
        (kind, _) => {
            let expected = if has_media {
                "expected \"text\", \"image_url\" or \"file\""
            } else {
                "expected \"text\""
            };
            let message = format!("{expected}, got {kind:?}");
            Err(unsupported(fields.at("type"), &message))
        }
    }
}

fn answer(fields: &Fields<'_>) -> Result<MessageContent, RequestError> {
    for key in ["audio", "function_call"] {
        if fields.get(key).is_some() {
            return Err(unsupported(fields.at(key), "expected no value"));
        }
    }
    let mut text = match fields.get("content") {
        None => String::new(),
        Some(Value::Array(_)) => {
            let parts = fields.placed("content", MAX_PARTS)?.unwrap_or_default();
            let texts = parts.into_iter().map(|(at, value)| answer_text(value, &at));
            texts.collect::<Result<_, _>>()?
        }
        Some(_) => required_text(fields)?.to_owned(),
    };
    text.push_str(fields.text("refusal", MAX_TEXT)?.unwrap_or_default());
    let calls = fields.placed("tool_calls", MAX_CALLS)?.unwrap_or_default();
    let calls = calls.into_iter().map(|(at, value)| call(value, &at));
    Ok(MessageContent::Answer {
        text,
        calls: calls.collect::<Result<_, _>>()?,
    })
}

fn answer_text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str, RequestError> {
    let fields = Fields::of(value, pointer.to_owned())?;
    match fields.required("type", 256)? {
        kind @ ("text" | "refusal") => fields.required(kind, MAX_TEXT),
        kind => {
            let message = format!("expected \"text\" or \"refusal\", got {kind:?}");
            Err(unsupported(fields.at("type"), &message))
        }
    }
}

fn call(value: &Value, pointer: &str) -> Result<HistoryCall, RequestError> {
    let fields = Fields::of(value, pointer)?;
    super::options::check_function(&fields)?;
    let function = fields.inner("function")?;
    Ok(HistoryCall {
        id: fields.id("id", MAX_CALL_ID)?,
        name: name(&function)?,
        arguments: function.required("arguments", MAX_TEXT)?.to_owned(),
    })
}
