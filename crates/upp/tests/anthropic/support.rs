//! Streams as the vendor writes them, and what becomes of them.

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use loomline_upp::{
    Anthropic, AssistantMessage, Codec, Encoded, Error, Message, ModelEvent, Request, Response,
    StreamEvent, answer,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) const MODEL: &str = "claude-opus-4-5";

pub(crate) fn codec() -> Anthropic {
    Anthropic::new(MODEL).with_default_max_tokens(64)
}

/// The events that stream these blocks. The input of a tool goes in two pieces.
pub(crate) fn stream_of(blocks: &[Value]) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
        "model": "claude-opus-4-5-20251101", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": 1},
    }})];
    for (index, block) in blocks.iter().enumerate() {
        let (start, deltas) = streamed(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events
}

fn streamed(block: &Value) -> (Value, Vec<Value>) {
    let mut start = block.clone();
    let mut deltas = Vec::new();
    let fields = start.as_object_mut().unwrap();
    let kind = block["type"].as_str().unwrap();
    match kind {
        "text" => {
            fields.insert("text".into(), json!(""));
            deltas.push(json!({"type": "text_delta", "text": block["text"]}));
            if let Some(Value::Array(citations)) = fields.get_mut("citations") {
                for citation in std::mem::take(citations) {
                    deltas.push(json!({"type": "citations_delta", "citation": citation}));
                }
            }
        }
        "thinking" => {
            fields.insert("thinking".into(), json!(""));
            fields.insert("signature".into(), json!(""));
            let thinking = block["thinking"].as_str().unwrap();
            let delta = |text: &str| json!({"type": "thinking_delta", "thinking": text, "estimated_tokens": 7});
            deltas.extend((!thinking.is_empty()).then(|| delta(thinking)));
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
        }
        _ if fields.contains_key("input") => {
            fields.insert("input".into(), json!({}));
            let text = block["input"].to_string();
            let half = (1..text.len())
                .find(|at| text.is_char_boundary(*at))
                .unwrap();
            for piece in ["", &text[..half], &text[half..]] {
                deltas.push(json!({"type": "input_json_delta", "partial_json": piece}));
            }
        }
        _ => {}
    }
    (start, deltas)
}

pub(crate) fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

pub(crate) fn read_as(
    codec: &Anthropic,
    request: &Request,
    events: impl IntoIterator<Item = Value>,
) -> Result<(Vec<StreamEvent>, Response), Error> {
    let frame = |event: Value| format!("data: {event}\n\n");
    let text: String = events.into_iter().map(frame).collect();
    let bytes = futures_util::stream::iter([Ok(Bytes::from(text))]);
    let mut stream = std::pin::pin!(answer(codec, codec.decoder(request), bytes, 1 << 20));
    let mut seen = Vec::new();
    while let Some(item) = stream.next().now_or_never().expect("all is there") {
        match item? {
            ModelEvent::Event(event) => seen.push(event),
            ModelEvent::Done(response) => return Ok((seen, *response)),
        }
    }
    panic!("no end")
}

pub(crate) fn read(events: impl IntoIterator<Item = Value>) -> Result<Response, Error> {
    read_as(&codec(), &Request::default(), events).map(|(_, response)| response)
}

/// The answer whose blocks these are, streamed.
pub(crate) fn answer_of(blocks: &[Value]) -> Response {
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let reason = if calls { "tool_use" } else { "end_turn" };
    read(stream_of(blocks).into_iter().chain(end(reason))).unwrap()
}

/// The message as the store gives it back.
pub(crate) fn stored(message: &AssistantMessage) -> Message {
    let text = serde_json::to_string(&Message::from(message.clone())).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn request(messages: impl IntoIterator<Item = Message>) -> Request {
    Request {
        messages: messages.into_iter().collect(),
        ..Request::default()
    }
}

pub(crate) fn with_params(mut request: Request, params: Value) -> Request {
    let params: Map<String, Value> = serde_json::from_value(params).unwrap();
    request.params = Arc::new(params);
    request
}

pub(crate) fn body(encoded: &Encoded) -> Value {
    serde_json::from_str(&encoded.body).unwrap()
}

/// The messages of a conversation as this codec writes them, and what it lists as not sent.
pub(crate) fn sent(
    codec: &Anthropic,
    messages: impl IntoIterator<Item = Message>,
) -> (Vec<Value>, Vec<String>) {
    let encoded = codec.encode(&request(messages)).unwrap();
    let messages = body(&encoded)["messages"].as_array().unwrap().clone();
    let omitted = encoded.omitted.into_iter().map(|omission| omission.what);
    (messages, omitted.collect())
}

/// The blocks of a message of the model's as they go back to it, through the store.
pub(crate) fn sent_back(response: &Response) -> Value {
    let (messages, omitted) = sent(&codec(), [stored(&response.message)]);
    assert_eq!(omitted, [""; 0]);
    messages[0]["content"].clone()
}
