//! An answer, read, stored and sent back, is the same JSON.

use crate::support::{
    answer_of, codec, end, read, read_as, request, sent, sent_back, stored, stream_of,
};
use loomline_upp::{AssistantContent, Codec, Message, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Everything at once, in an order only the vendor would choose.
fn interleaved() -> Vec<Value> {
    vec![
        json!({"type": "thinking", "thinking": "First I search.", "signature": "EqQBCgIYAhIM"}),
        json!({"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}),
        json!({"type": "text", "text": "Let me look.", "citations": null}),
        json!({"type": "server_tool_use", "id": "srvtoolu_01WY", "name": "web_search",
            "input": {"query": "claude shannon birth date"}, "caller": {"type": "direct"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01WY", "content": [
            {"type": "web_search_result", "url": "https://en.wikipedia.org/wiki/Claude_Shannon",
                "title": "Claude Shannon", "encrypted_content": "EqgfCioIARgB", "page_age": "April 30, 2025"},
        ]}),
        json!({"type": "thinking", "thinking": "", "signature": "omitted-but-signed"}),
        json!({"type": "text", "text": "Claude Shannon was born on "}),
        json!({"type": "text", "text": "April 30, 1916", "citations": [
            {"type": "web_search_result_location", "url": "https://en.wikipedia.org/wiki/Claude_Shannon",
                "title": "Claude Shannon", "encrypted_index": "Eo8BCioI", "cited_text": "born 1916"},
            {"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": null,
                "start_char_index": 0, "end_char_index": 1},
        ]}),
        json!({"type": "server_tool_use", "id": "srvtoolu_02", "name": "bash_code_execution",
            "input": {"command": "ls -la"}}),
        json!({"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_02", "content": {
            "type": "bash_code_execution_result", "stdout": "a\n", "stderr": "", "return_code": 0, "content": []}}),
        json!({"type": "mcp_tool_use", "id": "mcptoolu_01", "name": "echo", "server_name": "s", "input": {}}),
        json!({"type": "hologram", "depth": 3, "layers": [{"hue": null}]}),
        json!({"type": "thinking", "thinking": "Now I call.", "signature": "EqQBCgIYAhIN"}),
        json!({"type": "tool_use", "id": "toolu_01A", "name": "f", "input": {"x": [1.5, "é"], "y": {}},
            "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_02"}}),
        json!({"type": "tool_use", "id": "toolu_01B", "name": "g", "input": {}}),
    ]
}

#[test]
fn interleaved_blocks_of_every_kind_come_back_exactly() {
    let blocks = interleaved();
    let response = answer_of(&blocks);
    assert_eq!(sent_back(&response), Value::Array(blocks));
    assert_eq!(response.message.tool_calls.len(), 2);
    let reasoning = response.message.content.iter().filter(|block| {
        matches!(block, AssistantContent::Reasoning { signature: Some(it), .. } if !it.is_empty())
    });
    assert_eq!(reasoning.count(), 3);
}

#[test]
fn an_answer_that_is_not_streamed_is_read_the_same() {
    let blocks = interleaved();
    let whole = json!({
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
        "model": "claude-opus-4-5-20251101", "content": blocks, "stop_reason": "tool_use",
        "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": 9},
    });
    let mut decoder = codec().decoder(&Request::default());
    let mut events = decoder.whole(&whole.to_string()).unwrap();
    let (last, mut response) = decoder.finish().unwrap();
    events.extend(last);
    let streamed = answer_of(&blocks);
    response.message.timestamp = streamed.message.timestamp;
    assert_eq!(response, streamed);
    assert_eq!(sent_back(&response), Value::Array(blocks));
}

#[test]
fn what_canonical_blocks_hold_is_not_kept_twice() {
    let response = answer_of(&[
        json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
        json!({"type": "text", "text": "yes"}),
        json!({"type": "tool_use", "id": "toolu_01A", "name": "f", "input": {}}),
    ]);
    let metadata = &response.message.metadata["anthropic"];
    assert_eq!(
        metadata,
        &json!({"model": "claude-opus-4-5-20251101", "stop_reason": "tool_use",
            "requested_model": "claude-opus-4-5"})
    );
}

#[test]
fn deltas_that_are_not_known_are_merged_by_key() {
    let mut events = stream_of(&[]);
    let block =
        |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    events.extend([
        block(json!({"type": "compaction", "content": null, "notes": {"a": [1]}})),
        delta(
            json!({"type": "compaction_delta", "content": "What was ", "encrypted_content": "x"}),
        ),
        delta(
            json!({"type": "compaction_delta", "content": "said.", "notes": {"a": [2], "b": true}}),
        ),
        json!({"type": "content_block_stop", "index": 0}),
        block(json!({"type": "text", "text": "Hel"})),
        delta(json!({"type": "text_delta_2", "text": "lo", "tone": "warm"})),
        json!({"type": "content_block_stop", "index": 0}),
    ]);
    let response = read(events.into_iter().chain(end("end_turn"))).unwrap();
    assert_eq!(response.message.joined_text(), "Hello");
    assert_eq!(
        sent_back(&response),
        json!([
            {"type": "compaction", "content": "What was said.", "encrypted_content": "x",
                "notes": {"a": [1, 2], "b": true}},
            {"type": "text", "text": "Hello", "tone": "warm"},
        ])
    );
}

#[test]
fn fields_of_known_deltas_that_are_about_the_stream_are_not_sent_back() {
    // The vendor refuses fields it does not know; every thinking delta here has such a one.
    let blocks = [
        json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
        json!({"type": "text", "text": "yes"}),
    ];
    assert_eq!(sent_back(&answer_of(&blocks)), json!(blocks));
}

#[test]
fn arguments_go_back_in_the_models_own_spelling() {
    let written = "{ \"n\": 12345678901234567890123,\n \"x\" : 1.0, \"x\": 1e2 }";
    let mut events = stream_of(&[]);
    events.extend([
        json!({"type": "content_block_start", "index": 0, "content_block":
            {"type": "tool_use", "id": "toolu_01A", "name": "f", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta":
            {"type": "input_json_delta", "partial_json": written}}),
        json!({"type": "content_block_stop", "index": 0}),
    ]);
    let response = read(events.into_iter().chain(end("tool_use"))).unwrap();
    assert_eq!(response.message.tool_calls[0].arguments.text(), written);
    // Before and after the store alike, which keeps a document on one line.
    let spelling = format!("\"input\":{}", written.replace('\n', " "));
    for message in [response.message.clone().into(), stored(&response.message)] {
        let encoded = codec().encode(&request([message])).unwrap();
        assert!(encoded.body.contains(&spelling), "{}", encoded.body);
    }
}

#[test]
fn arguments_that_were_cut_off_go_back_empty_and_are_listed() {
    let mut events = stream_of(&[]);
    events.extend([
        json!({"type": "content_block_start", "index": 0, "content_block":
            {"type": "tool_use", "id": "toolu_01A", "name": "f", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta":
            {"type": "input_json_delta", "partial_json": "{\"path\": \"a"}}),
        json!({"type": "content_block_stop", "index": 0}),
    ]);
    let response = read(events.into_iter().chain(end("max_tokens"))).unwrap();
    assert_eq!(
        response.message.tool_calls[0].arguments.text(),
        "{\"path\": \"a"
    );
    let (messages, omitted) = sent(&codec(), [stored(&response.message)]);
    assert_eq!(messages[0]["content"][0]["input"], json!({}));
    assert_eq!(omitted, ["arguments"]);
}

#[test]
fn what_the_answer_says_of_itself_is_kept() {
    let mut events = stream_of(&[json!({"type": "text", "text": "no"})]);
    events.extend([
        json!({"type": "weather_report", "sky": "clear"}),
        json!({"type": "keepalive"}),
        json!({"type": "message_delta", "usage": {"output_tokens": 9},
            "context_management": {"applied_edits": []},
            "delta": {"stop_reason": "refusal", "stop_sequence": null,
                "stop_details": {"type": "refusal", "category": "cyber", "explanation": null},
                "container": {"id": "container_011", "expires_at": "2026-01-01T00:00:00Z"}}}),
        json!({"type": "message_stop"}),
    ]);
    let response = read(events).unwrap();
    let metadata = &response.message.metadata["anthropic"];
    assert_eq!(metadata["stop_details"]["category"], "cyber");
    assert_eq!(metadata["container"]["id"], "container_011");
    assert_eq!(metadata["context_management"], json!({"applied_edits": []}));
    assert_eq!(
        metadata["events"],
        json!([{"type": "weather_report", "sky": "clear"}])
    );
    assert_eq!(
        sent_back(&response),
        json!([{"type": "text", "text": "no"}])
    );
}

#[test]
fn deltas_without_an_index_belong_to_the_last_block() {
    let mut events = stream_of(&interleaved());
    for event in &mut events {
        event.as_object_mut().unwrap().shift_remove("index");
    }
    let compatible = loomline_upp::Anthropic::compatible("xai", "https://api.x.ai/v1", "grok")
        .with_default_max_tokens(1);
    let events = events.into_iter().chain(end("tool_use"));
    let (_, response) = read_as(&compatible, &Request::default(), events).unwrap();
    let (messages, omitted) = sent(&compatible, [stored(&response.message)]);
    assert_eq!(messages[0]["content"], json!(interleaved()));
    assert_eq!(omitted, [""; 0]);
}

#[test]
fn blocks_side_by_side_are_told_apart_by_index() {
    let delta = |index: u64, text: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}});
    let start = |index: u64| json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}});
    let mut events = stream_of(&[]);
    events.extend([
        start(0),
        start(1),
        delta(1, "b"),
        delta(0, "a"),
        delta(1, "B"),
    ]);
    let response = read(events.into_iter().chain(end("end_turn"))).unwrap();
    assert_eq!(response.message.joined_text(), "a\n\nbB");
}

fn block() -> impl Strategy<Value = Value> {
    let text = "[a-zé🌍][ a-z\\n\"\\\\é🌍]{0,12}";
    let json = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let json = json.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect::<Value>()),
        ]
    });
    let input = prop::collection::btree_map(text, json.clone(), 0..3)
        .prop_map(|fields| fields.into_iter().collect::<Value>());
    prop_oneof![
        text.prop_map(|text| json!({"type": "text", "text": text})),
        (text, prop::collection::vec(json.clone(), 0..3)).prop_map(
            |(text, citations)| json!({"type": "text", "text": text, "citations": citations})
        ),
        ("[ -~]{0,12}", "[A-Za-z0-9+/]{1,12}").prop_map(|(text, signature)| {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }),
        "[A-Za-z0-9+/]{0,12}".prop_map(|data| json!({"type": "redacted_thinking", "data": data})),
        ("[a-z]{1,9}", input.clone()).prop_map(
            |(name, input)| json!({"type": "tool_use", "id": "", "name": name, "input": input})
        ),
        (text, input)
            .prop_map(|(id, input)| json!({"type": "server_tool_use", "id": id, "input": input})),
        ("new_[a-z]{1,9}", json).prop_map(|(kind, value)| json!({"type": kind, "value": value})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_answer_comes_back_exactly(blocks in prop::collection::vec(block(), 0..9)) {
        let mut blocks = blocks;
        for (at, block) in blocks.iter_mut().enumerate() {
            if block["type"] == "tool_use" {
                block["id"] = json!(format!("toolu_{at}"));
            }
        }
        blocks.push(json!({"type": "text", "text": "."}));
        let response = answer_of(&blocks);
        prop_assert_eq!(sent_back(&response), Value::Array(blocks));
        let Message::Assistant(again) = stored(&response.message) else { panic!() };
        prop_assert_eq!(&*again, &response.message);
    }
}
