//! The content of messages in the JSON of the conventions. Used only if content is captured.

use super::names;
use crate::content::{AssistantContent, Media, UserContent};
use crate::message::{AssistantMessage, Message};
use crate::model::{Request, Response};
use serde_json::{Value, json};
use tracing::Span;

pub(super) fn record_request(span: &Span, request: &Request) {
    if let Some(system) = &request.system {
        let parts = json!([{ "type": "text", "content": system }]);
        span.record(names::SYSTEM_INSTRUCTIONS, parts.to_string().as_str());
    }
    let messages: Vec<Value> = request.messages.iter().map(message).collect();
    let messages = Value::Array(messages).to_string();
    span.record(names::INPUT_MESSAGES, messages.as_str());
}

pub(super) fn record_response(span: &Span, response: &Response, finish_reason: &str) {
    let parts = message_parts(&response.message);
    let message = json!([{
        "role": "assistant", "parts": parts, "finish_reason": finish_reason,
    }]);
    span.record(names::OUTPUT_MESSAGES, message.to_string().as_str());
}

fn message(message: &Message) -> Value {
    match message {
        Message::User(user) => {
            let parts: Vec<Value> = user.content.iter().map(user_part).collect();
            json!({ "role": "user", "parts": parts })
        }
        Message::Assistant(assistant) => {
            json!({ "role": "assistant", "parts": message_parts(assistant) })
        }
        Message::ToolResult(results) => {
            let parts = results.results.iter().map(|result| {
                json!({
                    "type": "tool_call_response",
                    "id": result.tool_call_id,
                    "response": result.result,
                })
            });
            json!({ "role": "tool", "parts": parts.collect::<Vec<_>>() })
        }
    }
}

fn message_parts(message: &AssistantMessage) -> Vec<Value> {
    let content = message.content.iter().map(assistant_part);
    let calls = message.tool_calls.iter().map(|call| {
        json!({
            "type": "tool_call",
            "id": call.tool_call_id,
            "name": call.tool_name,
            "arguments": call.arguments,
        })
    });
    content.chain(calls).collect()
}

fn user_part(content: &UserContent) -> Value {
    match content {
        UserContent::Text { text } => json!({ "type": "text", "content": text }),
        UserContent::Image(it) => media("image", it),
        UserContent::Document(it) => media("document", it),
        UserContent::Audio(it) => media("audio", it),
        UserContent::Video(it) => media("video", it),
        UserContent::Binary(it) => media("binary", it),
    }
}

fn assistant_part(content: &AssistantContent) -> Value {
    match content {
        AssistantContent::Text { text } => json!({ "type": "text", "content": text }),
        AssistantContent::Reasoning { text, .. } => json!({ "type": "reasoning", "content": text }),
        AssistantContent::Image(it) => media("image", it),
        AssistantContent::Audio(it) => media("audio", it),
        AssistantContent::Video(it) => media("video", it),
    }
}

// The bytes are left out: a span that holds a film reaches no collector.
fn media(modality: &str, media: &Media) -> Value {
    match media.url() {
        Some(uri) => json!({
            "type": "uri", "modality": modality, "mime_type": media.mime_type, "uri": uri,
        }),
        None => json!({ "type": modality, "mime_type": media.mime_type }),
    }
}
