//! Conversations that go on in another format of the same provider.

use crate::support::{answered, body, chunk, decode, end, request, stored};
use loomline_upp::{Anthropic, ChatCompletions, Dialect, Message, Responses};
use serde_json::{Value, json};

const MODEL: &str = "grok-4";

fn messages_format() -> Anthropic {
    Anthropic::compatible("xai", "https://api.x.ai/v1", MODEL).with_default_max_tokens(9)
}

fn by_responses() -> Message {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "so", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f",
            "arguments": "{}", "status": "completed"},
    ]);
    let done = json!({"type": "response.completed", "response": {"id": "resp_0123456789",
        "model": MODEL, "status": "completed", "output": output}});
    stored(
        decode(&Responses::xai(MODEL), &[done])
            .expect("as the test has it")
            .message,
    )
}

fn by_chat() -> Message {
    let codec = ChatCompletions::new(Dialect::xai(), MODEL);
    let call = json!({"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}});
    let frames = [
        chunk(&json!({"reasoning_content": "hm"})),
        chunk(&json!({"content": "so", "tool_calls": [call]})),
        end("tool_calls", &Value::Null),
    ];
    stored(decode(&codec, &frames).expect("as the test has it").message)
}

#[test]
fn an_answer_of_a_providers_other_formats_is_not_taken_for_one_in_the_messages_format() {
    for message in [by_responses(), by_chat()] {
        let asked = request(["hi".into(), message, answered("c1", json!(1), false)]);
        let sent = body(&messages_format(), &asked);
        assert_eq!(
            sent["messages"][1]["content"],
            json!([
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
            ])
        );
    }
}
