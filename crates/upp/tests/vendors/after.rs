//! The order that a model gives its calls (UAP §8.6).

use crate::support::{chunk, decode, end};
use loomline_upp::{
    Anthropic, ChatCompletions, Codec, Gemini, Ollama, Request, Responses, ToolCall,
};
use serde_json::{Value, json};

fn calls(codec: &impl Codec, frames: &[Value]) -> Vec<ToolCall> {
    let answer = decode(codec, frames).expect("as the test has it");
    answer.message.tool_calls
}

/// Of two calls the second waits for the first, and names something that is no id.
fn assert_ordered(calls: &[ToolCall]) {
    let told: Vec<_> = calls
        .iter()
        .map(|call| (call.tool_call_id.as_str(), call.after.clone()))
        .collect();
    assert_eq!(told, [("a", vec![]), ("b", vec!["a".into()])]);
}

#[test]
fn chat_completions_keeps_the_order_of_calls() {
    let one = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}});
    let two = json!({"index": 1, "id": "b", "after": ["a", 7], "function": {"name": "g", "arguments": ""}});
    let more = json!({"index": 1, "function": {"arguments": "{}"}});
    let frames = [
        chunk(&json!({"tool_calls": [one, two]})),
        chunk(&json!({"tool_calls": [more]})),
        end("tool_calls", &Value::Null),
    ];
    assert_ordered(&calls(&ChatCompletions::openai("m"), &frames));
}

#[test]
fn responses_keeps_the_order_of_calls() {
    let item = |id: &str, after: &[&str]| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "f",
            "arguments": "{}", "status": "completed", "after": after})
    };
    let output = json!([item("a", &[]), item("b", &["a"])]);
    let done = json!({"type": "response.completed",
        "response": {"id": "r", "model": "m", "status": "completed", "output": output}});
    let added = json!({"type": "response.output_item.done", "output_index": 0, "item": output[0]});
    let codec = Responses::openai("m");
    assert_ordered(&calls(&codec, &[added, done.clone()]));
    let mut whole = codec.decoder(&Request::default());
    whole
        .whole(&done["response"].to_string())
        .expect("as the test has it");
    let (_, answer) = whole.finish().expect("as the test has it");
    assert_ordered(&answer.message.tool_calls);
}

#[test]
fn anthropic_keeps_the_order_of_calls() {
    let start = |index: u32, block: Value| {
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    };
    let block = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let mut second = block("b");
    second["after"] = json!(["a", null]);
    let message = json!({"id": "m", "model": "m", "role": "assistant", "content": [], "usage": {}});
    let mut frames = vec![json!({"type": "message_start", "message": message})];
    frames.extend(start(0, block("a")));
    frames.extend(start(1, second));
    frames
        .push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}));
    frames.push(json!({"type": "message_stop"}));
    assert_ordered(&calls(&Anthropic::new("m"), &frames));
}

#[test]
fn gemini_keeps_the_order_of_calls() {
    let call = |id: &str, after: &[&str]| json!({"functionCall": {"id": id, "name": "f", "args": {}, "after": after}});
    let parts = json!([call("a", &[]), call("b", &["a"])]);
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP"});
    assert_ordered(&calls(
        &Gemini::new("m"),
        &[json!({"candidates": [candidate]})],
    ));
}

#[test]
fn ollama_keeps_the_order_of_calls() {
    let call = |id: &str, after: Value| json!({"id": id, "after": after, "function": {"name": "f", "arguments": {}}});
    let message = json!({"role": "assistant", "content": "",
        "tool_calls": [call("a", Value::Null), call("b", json!(["a"]))]});
    let line = json!({"model": "m", "message": message, "done": true, "done_reason": "stop"});
    assert_ordered(&calls(&Ollama::new("m"), &[line]));
}
