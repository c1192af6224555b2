//! Requests to remote agents that speak A2A 1.0. The module `reader` reads their responses.

mod object;
mod reader;

use super::delta::News;
use super::position::{AskKind, RemoteQuestion};
use crate::a2a::ErrorKind;
pub use object::{ObjectError, result};
pub use reader::{TaskEnd, TaskReader};
use serde_json::{Map, Value, json};
use upp::{Message, ToolResult, UserContent};

/// The tool name of the pending call for a task in the state `INPUT_REQUIRED` that names no calls.
pub const INPUT_REQUIRED: &str = "input_required";
/// The tool name of the pending call for a task in the state `AUTH_REQUIRED` that names no calls. The
/// remote agent waits for a sign-in.
pub const AUTH_REQUIRED: &str = "auth_required";
/// The A2A error code of an operation that the remote agent or the task does not support.
pub const UNSUPPORTED: i64 = -32_004;

/// Whether an error code is a final refusal: the remote agent would refuse the message again.
///
/// `answers` is true if the message answers a task's questions. Then [`ErrorKind::TaskNotFound`] and
/// [`ErrorKind::UnsupportedOperation`] are final too: the task does not exist or is over.
pub fn is_final(code: i64, answers: bool) -> bool {
    let is = |kind: ErrorKind| i64::from(kind.code()) == code;
    let of_message = [
        ErrorKind::InvalidRequest,
        ErrorKind::InvalidParams,
        ErrorKind::ContentTypeNotSupported,
    ];
    let of_task = [ErrorKind::TaskNotFound, ErrorKind::UnsupportedOperation];
    of_message.into_iter().any(is) || answers && of_task.into_iter().any(is)
}

/// A JSON-RPC 2.0 request.
pub fn call(method: &str, id: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The parameters of a request that sends a message. `context` is the id of the remote conversation,
/// `task` the id of the task that the message answers.
pub fn message(id: &str, context: Option<&str>, task: Option<&str>, parts: &[Value]) -> Value {
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
    for (key, value) in [("contextId", context), ("taskId", task)] {
        if let Some(value) = value {
            message[key] = value.into();
        }
    }
    json!({ "message": message })
}

/// The parts of a message with everything that the remote agent has not received yet.
///
/// The answers to its questions come first. They are left out if [`News::superseded`] is true.
pub fn parts(news: &News<'_>) -> Vec<Value> {
    let mut parts = Vec::new();
    if !news.superseded {
        for result in &news.results {
            parts.extend(answer(news, result));
        }
    }
    if news.cut {
        parts.push(json!({"text": "(Earlier messages are left out.)"}));
    }
    // A conversation of others is told with its speakers.
    let told = news
        .messages
        .iter()
        .any(|it| matches!(it, Message::Assistant(_)));
    for message in &news.messages {
        match message {
            Message::User(user) => {
                if told {
                    parts.push(json!({"text": "User:"}));
                }
                parts.extend(user.content.iter().filter_map(part));
            }
            Message::Assistant(answer) => {
                let text = answer.joined_text();
                if !text.is_empty() {
                    parts.push(json!({"text": format!("Agent:\n{text}")}));
                }
            }
            Message::ToolResult(_) => {}
        }
    }
    parts
}

/// The parts that answer one question of the remote agent.
fn answer(news: &News<'_>, result: &ToolResult) -> Vec<Value> {
    let ask = news.position.as_ref();
    let ask = ask.and_then(|place| place.ask(result.tool_call_id.as_str()));
    let value = result.result.value().clone();
    let Some(RemoteQuestion {
        id: Some(id),
        kind: kind @ (AskKind::Result | AskKind::Approval),
        thread_key,
        ..
    }) = ask
    else {
        if let Value::String(text) = value {
            return vec![json!({ "text": text })];
        }
        if let Value::Array(list) = &value
            && !list.is_empty()
            && list.iter().all(Value::is_object)
        {
            return list.iter().map(|data| json!({ "data": data })).collect();
        }
        return vec![json!({ "data": value })];
    };
    let mut data = Map::new();
    data.insert("toolCallId".to_owned(), id.as_str().into());
    if let Some(key) = thread_key {
        data.insert("threadKey".to_owned(), key.as_str().into());
    }
    let value = match (kind, value) {
        (AskKind::Approval, value) => without_extensions(&value),
        (_, value) => value,
    };
    match (kind, value) {
        (AskKind::Approval, Value::Object(said)) => {
            let wanted = ["approved", "arguments", "message"];
            data.extend(
                said.into_iter()
                    .filter(|(key, _)| wanted.contains(&key.as_str())),
            );
        }
        // Other words are no leave.
        (AskKind::Approval, value) => {
            data.insert("approved".to_owned(), false.into());
            data.insert("message".to_owned(), text_of(&value).into());
        }
        (_, value) if result.is_error => {
            data.insert("errorText".to_owned(), text_of(&value).into());
        }
        (_, value) => {
            data.insert("output".to_owned(), value);
        }
    }
    vec![json!({ "data": data })]
}

/// The value that answers an approval: an object with a boolean `approved`.
///
/// The object may arrive as JSON text, because most protocols only have text outputs. Any other value
/// becomes a text, and `answer` sends it as a denial.
fn without_extensions(value: &Value) -> Value {
    let text = value.as_str();
    let read: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
    let said = read.as_ref().unwrap_or(value);
    if said.get("approved").is_some_and(Value::is_boolean) {
        said.clone()
    } else {
        text_of(value).into()
    }
}

fn text_of(value: &Value) -> String {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

fn part(content: &UserContent) -> Option<Value> {
    let media = match content {
        UserContent::Text { text } => return Some(json!({ "text": text })),
        UserContent::Image(media)
        | UserContent::Document(media)
        | UserContent::Audio(media)
        | UserContent::Video(media)
        | UserContent::Binary(media) => media,
    };
    if let Some(text) = media.text() {
        return Some(json!({ "text": text }));
    }
    let mut part = match (media.url(), media.base64()) {
        (Some(url), _) => json!({ "url": url }),
        (None, Some(data)) => json!({ "raw": data }),
        (None, None) => return None,
    };
    part["mediaType"] = media.mime_type.as_str().into();
    if let Some(title) = &media.title {
        part["filename"] = title.as_str().into();
    }
    Some(part)
}

#[cfg(test)]
mod tests;
