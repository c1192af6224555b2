mod decode;
mod encode;

use super::*;
use crate::codec::Decoder as _;
use crate::content::{AssistantContent, Media, MediaSource, UserContent};
use crate::error::{Code, Error};
use crate::event::StreamEvent;
use crate::message::{AssistantMessage, Message, MessageOptions, ToolResultMessage, UserMessage};
use crate::model::{Request, Response, StopReason, ToolChoice};
use crate::tool::{Arguments, Tool, ToolCall, ToolOutput, ToolResult};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn decode(chunks: &[Value], structured: bool) -> Result<(Vec<StreamEvent>, Response), Error> {
    decode_as(&Dialect::openai(), chunks, structured)
}

fn decode_as(
    dialect: &Dialect,
    chunks: &[Value],
    structured: bool,
) -> Result<(Vec<StreamEvent>, Response), Error> {
    let mut decoder = Box::new(Decoder::new(dialect, "m".into(), structured));
    let mut events = Vec::new();
    for chunk in chunks {
        events.extend(decoder.push(&chunk.to_string())?);
    }
    let (last, response) = decoder.finish()?;
    events.extend(last);
    Ok((events, response))
}

fn delta(delta: &Value) -> Value {
    json!({"id": "chatcmpl-0123456789", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(response: &Response) -> Vec<(&str, &str, &str)> {
    response
        .message
        .tool_calls
        .iter()
        .map(|call| {
            (
                call.tool_call_id.as_str(),
                &*call.tool_name,
                call.arguments.text(),
            )
        })
        .collect()
}

fn tool_delta(call: &Value) -> Value {
    delta(&json!({"tool_calls": [call]}))
}
