//! What `useChat` posts (`DefaultChatTransport`).

use super::messages::METADATA;
use crate::request::is_web;
use serde_json::{Map, Value, json};
use timeline::{ANSWER, Payload};

/// The most messages a request may have; they are counted and not read.
const MAX_MESSAGES: usize = 10_000;
/// The most parts of the message that is read.
const MAX_PARTS: usize = 256;
/// The most bytes of an id.
const MAX_ID_BYTES: usize = 256;
/// The most bytes of text in one part.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// What the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatTrigger {
    /// An answer to what was submitted.
    SubmitMessage,
    /// Another answer to what was asked already.
    RegenerateMessage,
}

/// What a user said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// The client's id of it.
    pub id: String,
    /// The parts, in the log's shapes.
    pub content: Payload,
    /// The client's own metadata of it, as the metadata of its item: under a name of its own, where it
    /// comes from again and can pass for nothing else.
    pub metadata: Option<Payload>,
}

/// A request for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatRequest {
    /// The chat: a thread's key.
    pub chat_id: String,
    /// What the client wants.
    pub trigger: ChatTrigger,
    /// The message that is edited, regenerated, or gone on with.
    pub message_id: Option<String>,
    /// The last message, if a user said it. The history before it is the server's own.
    pub last_user: Option<UserMessage>,
    /// What the last message answers, if it is an agent's that the client has added answers to.
    pub answers: Vec<ChatAnswer>,
    /// How many messages the client sent.
    pub n_messages: usize,
}

/// An answer that a client has put into the part of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatAnswer {
    /// The call.
    pub tool_call_id: String,
    /// Whether it answers a question; what is no answer to one is a result.
    pub is_approval: bool,
    /// The answer, as a part of the log's ([`timeline::Answer`]).
    pub part: Value,
}

/// Why a body is no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatRequestError {
    /// A member is missing or of another type.
    #[error("{pointer}: expected {expected}")]
    Expected {
        /// Where.
        pointer: String,
        /// What.
        expected: &'static str,
    },
    /// A chat's id can't be a segment of a path.
    #[error("/id: {id:?} can't be the id of a chat")]
    ChatId {
        /// The id.
        id: String,
    },
    /// Something is larger than allowed.
    #[error("{pointer}: at most {limit} are allowed")]
    TooLarge {
        /// Where.
        pointer: String,
        /// How much is allowed: elements or bytes.
        limit: usize,
    },
    /// A user can't say this.
    #[error("{pointer}: a user's message can't have a part of type {kind:?}")]
    Part {
        /// Where.
        pointer: String,
        /// The type.
        kind: String,
    },
    /// A file is at an address that is not fetched.
    #[error("{pointer}: a file is a data:, http: or https: URL")]
    Url {
        /// Where.
        pointer: String,
    },
}

fn expected(pointer: impl Into<String>, expected: &'static str) -> ChatRequestError {
    let pointer = pointer.into();
    ChatRequestError::Expected { pointer, expected }
}

/// Reads the body of a request; members it does not know are left alone.
pub fn from_chat_request(body: &Value) -> Result<ChatRequest, ChatRequestError> {
    let body = body.as_object().ok_or_else(|| expected("", "an object"))?;
    let chat_id = id(body, "")?;
    if matches!(chat_id.as_str(), "." | "..") || chat_id.contains(['/', '\0']) {
        return Err(ChatRequestError::ChatId { id: chat_id });
    }
    let trigger = match body.get("trigger").map(Value::as_str) {
        None | Some(Some("submit-message")) => ChatTrigger::SubmitMessage,
        Some(Some("regenerate-message")) => ChatTrigger::RegenerateMessage,
        Some(_) => {
            let words = "\"submit-message\" or \"regenerate-message\"";
            return Err(expected("/trigger", words));
        }
    };
    let message_id = match body.get("messageId") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) if id.len() <= MAX_ID_BYTES => Some(id.clone()),
        Some(_) => return Err(expected("/messageId", "a string of tolerable length")),
    };
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| expected("/messages", "an array"))?;
    at_most("/messages", messages.len(), MAX_MESSAGES)?;
    let last_user = match messages.last() {
        Some(last) if last.get("role").and_then(Value::as_str) == Some("user") => {
            Some(user(last, &format!("/messages/{}", messages.len() - 1))?)
        }
        Some(_) | None => None,
    };
    let answers = match messages.last() {
        Some(last) if last.get("role").and_then(Value::as_str) == Some("assistant") => {
            answers(last, &format!("/messages/{}", messages.len() - 1))?
        }
        Some(_) | None => Vec::new(),
    };
    Ok(ChatRequest {
        answers,
        chat_id,
        trigger,
        message_id,
        last_user,
        n_messages: messages.len(),
    })
}

/// The answers in the tool parts of an agent's message: to questions, and results of tools that
/// the client has run. Whether anybody asked is not known here.
fn answers(message: &Value, pointer: &str) -> Result<Vec<ChatAnswer>, ChatRequestError> {
    let pointer = format!("{pointer}/parts");
    let parts = message.get("parts").and_then(Value::as_array);
    let parts = parts.ok_or_else(|| expected(pointer.as_str(), "an array"))?;
    at_most(&pointer, parts.len(), MAX_MESSAGES)?;
    Ok(parts.iter().filter_map(answer).collect())
}

fn answer(part: &Value) -> Option<ChatAnswer> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let kind = text("type")?;
    if kind != "dynamic-tool" && !kind.starts_with("tool-") {
        return None;
    }
    let id = text("toolCallId")?;
    let mut answer = json!({"type": ANSWER, "toolCallId": id});
    let state = text("state")?;
    match state {
        "approval-responded" => {
            let approval = part.get("approval")?;
            let approved = approval.get("approved")?.as_bool()?;
            answer["approved"] = approved.into();
            let reason = approval.get("reason").and_then(Value::as_str);
            if let Some(reason) = reason.filter(|_| !approved) {
                answer["message"] = reason.into();
            }
        }
        "output-available" => answer["output"] = part.get("output").cloned().unwrap_or_default(),
        "output-error" => answer["errorText"] = text("errorText").unwrap_or_default().into(),
        _ => return None,
    }
    Some(ChatAnswer {
        tool_call_id: id.to_owned(),
        is_approval: state == "approval-responded",
        part: answer,
    })
}

fn id(object: &Map<String, Value>, pointer: &str) -> Result<String, ChatRequestError> {
    let id = object
        .get("id")
        .and_then(Value::as_str)
        .filter(|id| !id.is_empty());
    let pointer = format!("{pointer}/id");
    let id = id.ok_or_else(|| expected(pointer.as_str(), "a string that is not empty"))?;
    at_most(&pointer, id.len(), MAX_ID_BYTES)?;
    Ok(id.to_owned())
}

fn at_most(pointer: &str, n: usize, limit: usize) -> Result<(), ChatRequestError> {
    if n <= limit {
        return Ok(());
    }
    let pointer = pointer.to_owned();
    Err(ChatRequestError::TooLarge { pointer, limit })
}

fn user(message: &Value, pointer: &str) -> Result<UserMessage, ChatRequestError> {
    let message = message
        .as_object()
        .ok_or_else(|| expected(pointer, "an object"))?;
    let id = id(message, pointer)?;
    let pointer = format!("{pointer}/parts");
    let parts = message.get("parts").and_then(Value::as_array);
    let parts = parts.ok_or_else(|| expected(pointer.as_str(), "an array"))?;
    at_most(&pointer, parts.len(), MAX_PARTS)?;
    let content = parts
        .iter()
        .enumerate()
        .map(|(place, part)| own_part(part, &format!("{pointer}/{place}")))
        .collect::<Result<Vec<Value>, _>>()?;
    let metadata = message
        .get("metadata")
        .filter(|metadata| !metadata.is_null());
    Ok(UserMessage {
        id,
        content: Value::Array(content).into(),
        metadata: metadata.map(|noted| json!({ METADATA: noted }).into()),
    })
}

fn own_part(part: &Value, pointer: &str) -> Result<Value, ChatRequestError> {
    let text = |key: &str| {
        let text = part.get(key).and_then(Value::as_str);
        text.ok_or_else(|| expected(format!("{pointer}/{key}"), "a string"))
    };
    let kind = text("type")?;
    match kind {
        "text" => {
            let said = text("text")?;
            at_most(&format!("{pointer}/text"), said.len(), MAX_TEXT_BYTES)?;
            Ok(json!({"type": "input_text", "text": said}))
        }
        "file" => file(part, text("url")?, text("mediaType")?, pointer),
        _ if kind.len() > "data-".len() && kind.starts_with("data-") => Ok(part.clone()),
        _ => Err(ChatRequestError::Part {
            pointer: pointer.to_owned(),
            kind: kind.to_owned(),
        }),
    }
}

fn file(part: &Value, url: &str, mime: &str, pointer: &str) -> Result<Value, ChatRequestError> {
    let inline = url.starts_with("data:");
    if !inline && !is_web(url) {
        let pointer = format!("{pointer}/url");
        return Err(ChatRequestError::Url { pointer });
    }
    let mut own = if mime.starts_with("image/") {
        json!({"type": "input_image", "image_url": url, "media_type": mime})
    } else {
        let field = if inline { "file_data" } else { "file_url" };
        json!({"type": "input_file", field: url, "media_type": mime})
    };
    let name = part.get("filename").and_then(Value::as_str);
    if let (Value::Object(own), Some(name)) = (&mut own, name) {
        own.insert("filename".to_owned(), name.into());
    }
    Ok(own)
}
