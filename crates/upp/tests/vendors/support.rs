//! Requests, and answers that come in pieces.

use loomline_upp::{
    Arguments, AssistantContent, AssistantMessage, Codec, Error, Message, MessageOptions, Request,
    Response, ToolCall, ToolResult, ToolResultMessage,
};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn request(messages: impl IntoIterator<Item = Message>) -> Request {
    Request {
        messages: messages.into_iter().collect(),
        ..Request::default()
    }
}

pub(crate) fn with_params(mut request: Request, params: &Value) -> Request {
    request.params = Arc::new(params.as_object().expect("as the test has it").clone());
    request
}

/// The body of a request.
pub(crate) fn body(codec: &impl Codec, request: &Request) -> Value {
    serde_json::from_str(&codec.encode(request).expect("as the test has it").body)
        .expect("as the test has it")
}

/// What a request leaves out.
pub(crate) fn omitted(codec: &impl Codec, request: &Request) -> Vec<String> {
    let encoded = codec.encode(request).expect("as the test has it");
    encoded.omitted.into_iter().map(|it| it.what).collect()
}

/// The answer that these frames are.
pub(crate) fn decode(codec: &impl Codec, frames: &[Value]) -> Result<Response, Error> {
    let mut decoder = codec.decoder(&Request::default());
    for frame in frames {
        decoder.push(&frame.to_string())?;
    }
    decoder.finish().map(|(_, response)| response)
}

/// A chunk of Chat Completions.
pub(crate) fn chunk(delta: &Value) -> Value {
    json!({"id": "chatcmpl-0123456789", "choices": [{"index": 0, "delta": delta}]})
}

/// The chunk that ends an answer of Chat Completions.
pub(crate) fn end(reason: &str, usage: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage})
}

pub(crate) fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        tool_call_id: id.into(),
        tool_name: "f".into(),
        arguments: Arguments::from_text(arguments),
        after: Vec::new(),
    }
}

/// A message of some other model that calls.
pub(crate) fn calling(id: &str, arguments: &str) -> Message {
    let calls = vec![call(id, arguments)];
    AssistantMessage::new(Vec::new(), calls, MessageOptions::default()).into()
}

pub(crate) fn said(content: Vec<AssistantContent>) -> Message {
    AssistantMessage::new(content, Vec::new(), MessageOptions::default()).into()
}

pub(crate) fn answered(id: &str, result: Value, is_error: bool) -> Message {
    let result = ToolResult {
        tool_call_id: id.into(),
        result: result.into(),
        is_error,
    };
    ToolResultMessage::new(vec![result], MessageOptions::default()).into()
}

/// The message as it comes back from a store of lines.
pub(crate) fn stored(message: impl Into<Message>) -> Message {
    let text = serde_json::to_string(&message.into()).expect("as the test has it");
    serde_json::from_str(&text.replace('\n', " ")).expect("as the test has it")
}
