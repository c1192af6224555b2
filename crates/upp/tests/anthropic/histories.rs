//! Histories that other models, other providers and people had a hand in.

use crate::support::{answer_of, body, codec, request, sent, stored, with_params};
use loomline_upp::{
    Anthropic, Arguments, AssistantContent, AssistantMessage, Codec, Message, MessageOptions,
    ToolCall, ToolResult, ToolResultMessage, UserContent, UserMessage,
};
use serde_json::{Value, json};

fn call(id: &str) -> ToolCall {
    ToolCall {
        tool_call_id: id.into(),
        tool_name: "f".into(),
        arguments: Arguments::from_text("{\"x\":1}"),
        after: Vec::new(),
    }
}

fn result(id: &str, result: Value) -> ToolResult {
    ToolResult {
        tool_call_id: id.into(),
        result: result.into(),
        is_error: false,
    }
}

fn results(results: Vec<ToolResult>) -> Message {
    ToolResultMessage::new(results, MessageOptions::default()).into()
}

fn assistant(content: Vec<AssistantContent>, calls: Vec<ToolCall>) -> Message {
    AssistantMessage::new(content, calls, MessageOptions::default()).into()
}

fn text(text: &str) -> AssistantContent {
    AssistantContent::Text { text: text.into() }
}

fn marked(metadata: Value) -> MessageOptions {
    MessageOptions {
        metadata: serde_json::from_value(metadata).unwrap(),
        ..MessageOptions::default()
    }
}

fn reasoned() -> Message {
    stored(&answer_of(&[
        json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
        json!({"type": "redacted_thinking", "data": "d"}),
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        json!({"type": "text", "text": "yes", "citations": [{"type": "page_location"}]}),
        json!({"type": "tool_use", "id": "toolu_01A", "name": "f", "input": {"x": 1}}),
    ]).message)
}

#[test]
fn another_model_gets_text_and_calls_and_the_rest_is_listed() {
    let others = [
        Anthropic::new("claude-haiku-4-5").with_default_max_tokens(1),
        Anthropic::compatible("xai", "https://api.x.ai/v1", "claude-opus-4-5")
            .with_default_max_tokens(1),
    ];
    for other in others {
        let (messages, mut omitted) = sent(&other, [reasoned()]);
        assert_eq!(
            messages[0]["content"],
            json!([
                {"type": "text", "text": "yes"},
                {"type": "tool_use", "id": "toolu_01A", "name": "f", "input": {"x": 1}},
            ])
        );
        omitted.sort_unstable();
        assert_eq!(
            omitted,
            ["citation", "provider_item", "reasoning", "reasoning"]
        );
    }
}

#[test]
fn the_model_it_came_from_gets_all_of_it_again_after_a_switch() {
    let (messages, omitted) = sent(
        &codec(),
        [reasoned(), results(vec![result("toolu_01A", json!("1"))])],
    );
    assert_eq!(messages[0]["content"][0]["signature"], "s");
    assert_eq!(messages[0]["content"].as_array().unwrap().len(), 5);
    assert_eq!(omitted, [""; 0]);
}

#[test]
fn reasoning_without_a_signature_is_not_sent_to_who_refuses_it() {
    let mut options =
        marked(json!({"anthropic": {"model": "claude-opus-4-5"}, "xai": {"model": "grok"}}));
    options.id = Some("m".into());
    let thought = AssistantContent::Reasoning {
        text: "hm".into(),
        signature: None,
    };
    let message: Message =
        AssistantMessage::new(vec![thought, text("yes")], Vec::new(), options).into();
    let (messages, omitted) = sent(&codec(), [message.clone()]);
    assert_eq!(
        messages[0]["content"],
        json!([{"type": "text", "text": "yes"}])
    );
    assert_eq!(omitted, ["reasoning"]);
    let compatible =
        Anthropic::compatible("xai", "https://api.x.ai/v1", "grok").with_default_max_tokens(1);
    let (messages, omitted) = sent(&compatible, [message]);
    assert_eq!(
        messages[0]["content"][0],
        json!({"type": "thinking", "thinking": "hm"})
    );
    assert_eq!(omitted, [""; 0]);
}

#[test]
fn a_message_never_ends_with_reasoning() {
    let cut = answer_of(&[
        json!({"type": "text", "text": "yes"}),
        json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
        json!({"type": "redacted_thinking", "data": "d"}),
    ]);
    let (messages, omitted) = sent(&codec(), [stored(&cut.message)]);
    assert_eq!(
        messages[0]["content"],
        json!([{"type": "text", "text": "yes"}])
    );
    assert_eq!(omitted, ["reasoning", "reasoning"]);
    let only = answer_of(&[json!({"type": "thinking", "thinking": "hm", "signature": "s"})]);
    let (messages, _) = sent(&codec(), ["a".into(), stored(&only.message), "b".into()]);
    assert_eq!(messages.len(), 2);
}

#[test]
fn empty_text_is_left_out_and_white_space_alone_is_listed() {
    let (messages, omitted) = sent(
        &codec(),
        [
            assistant(vec![text(""), text("\n"), text("a")], Vec::new()),
            assistant(vec![text(""), text("\n\n")], vec![call("c")]),
            "".into(),
            " ".into(),
        ],
    );
    assert_eq!(
        messages,
        [
            json!({"role": "assistant", "content": [{"type": "text", "text": "\n"}, {"type": "text", "text": "a"}]}),
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}}]}),
        ]
    );
    assert_eq!(omitted, ["text", "text"]);
}

#[test]
fn results_in_several_messages_go_back_as_one_right_after_their_calls() {
    let (messages, _) = sent(
        &codec(),
        [
            assistant(Vec::new(), vec![call("a"), call("b")]),
            results(vec![result("a", json!("1"))]),
            results(vec![result("b", json!({"n": 2}))]),
            "and now?".into(),
        ],
    );
    assert_eq!(
        messages[1..],
        [
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": "{\"n\":2}"},
            ]}),
            json!({"role": "user", "content": [{"type": "text", "text": "and now?"}]}),
        ]
    );
}

#[test]
fn repeated_and_foreign_ids_of_calls_are_made_to_fit() {
    let foreign = "call|with spaces and more than sixty-four bytes, as some providers write them";
    let round = |id: &str| {
        let answered = results(vec![result(id, json!("r"))]);
        [assistant(Vec::new(), vec![call(id)]), answered]
    };
    let history = [round("call_1"), round("call_1"), round(foreign)].concat();
    let (messages, _) = sent(&codec(), history);
    let pairs: Vec<(&str, &str)> = messages
        .chunks(2)
        .map(|pair| {
            let id = |at: usize, key: &str| pair[at]["content"][0][key].as_str().unwrap();
            (id(0, "id"), id(1, "tool_use_id"))
        })
        .collect();
    assert_eq!(pairs[0], ("call_1", "call_1"));
    assert_eq!(pairs[1], ("call_1_2", "call_1_2"));
    assert_eq!(pairs[2].0, pairs[2].1);
    assert!(pairs[2].0.len() <= 64 && !pairs[2].0.contains(['|', ' ']));
}

#[test]
fn pictures_and_documents_of_results_are_shown() {
    let shot = json!({"content": [
        {"type": "text", "text": "The screen:"},
        {"type": "text", "text": ""},
        {"type": "image", "data": "QUJD", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "x:y", "mimeType": "application/pdf", "blob": "UERG"}},
        {"type": "resource_link", "uri": "x:y"},
    ], "isError": false, "structuredContent": {"n": 1}});
    let (messages, _) = sent(
        &codec(),
        [
            assistant(Vec::new(), vec![call("a")]),
            results(vec![result("a", shot)]),
        ],
    );
    assert_eq!(
        messages[1]["content"][0]["content"],
        json!([
            {"type": "text", "text": "The screen:"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "UERG"}},
            {"type": "text", "text": "{\"type\":\"resource_link\",\"uri\":\"x:y\"}"},
            {"type": "text", "text": "{\"structuredContent\":{\"n\":1}}"},
        ])
    );
}

#[test]
fn results_without_pictures_are_text_and_empty_ones_are_taken() {
    let plain = json!({"content": [{"type": "text", "text": "t"}]});
    let failed = ToolResult {
        is_error: true,
        ..result("c", json!(""))
    };
    let (messages, _) = sent(
        &codec(),
        [
            assistant(Vec::new(), vec![call("a"), call("b"), call("c")]),
            results(vec![result("a", plain), result("b", json!("")), failed]),
        ],
    );
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": "{\"content\":[{\"type\":\"text\",\"text\":\"t\"}]}"},
            {"type": "tool_result", "tool_use_id": "b"},
            {"type": "tool_result", "tool_use_id": "c", "content": "error", "is_error": true},
        ])
    );
}

#[test]
fn the_models_own_pictures_are_not_sent_and_are_listed() {
    let image = serde_json::from_value(json!({
        "type": "image", "source": {"type": "base64", "data": "QUJD"}, "mimeType": "image/png",
    }));
    let (messages, omitted) = sent(
        &codec(),
        [assistant(vec![image.unwrap(), text("a")], Vec::new())],
    );
    assert_eq!(
        messages[0]["content"],
        json!([{"type": "text", "text": "a"}])
    );
    assert_eq!(omitted, ["image"]);
}

#[test]
fn the_cache_is_cut_at_the_last_block_of_a_message() {
    let cut =
        || marked(json!({"anthropic": {"cache_control": {"type": "ephemeral", "ttl": "1h"}}}));
    let user = UserMessage::new(
        vec![
            UserContent::Text { text: "a".into() },
            UserContent::Text { text: "b".into() },
        ],
        cut(),
    );
    let called = AssistantMessage::new(vec![text("c")], vec![call("x")], cut());
    let answered = ToolResultMessage::new(vec![result("x", json!("1"))], cut());
    let (messages, _) = sent(&codec(), [user.into(), called.into(), answered.into()]);
    let cuts = |message: &Value| -> Vec<bool> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks
            .map(|block| block["cache_control"] == json!({"type": "ephemeral", "ttl": "1h"}))
            .collect()
    };
    assert_eq!(cuts(&messages[0]), [false, true]);
    assert_eq!(cuts(&messages[1]), [false, true]);
    assert_eq!(cuts(&messages[2]), [true]);
    assert_eq!(messages[1]["content"][1]["input"], json!({"x": 1}));
}

#[test]
fn code_that_waits_in_a_container_is_found_again() {
    let blocks = |caller: &str| {
        let mut events = crate::support::stream_of(&[json!({
            "type": "tool_use", "id": "toolu_01A", "name": "f", "input": {}, "caller": {"type": caller},
        })]);
        events.push(json!({"type": "message_delta", "delta": {
            "stop_reason": "tool_use", "container": {"id": "container_011", "expires_at": "2026-01-01T00:00:00Z"},
        }}));
        stored(&crate::support::read(events).unwrap().message)
    };
    let answered = || results(vec![result("toolu_01A", json!("1"))]);
    let container = |messages: Vec<Message>| {
        body(&codec().encode(&request(messages)).unwrap())
            .get("container")
            .cloned()
    };
    let waits = blocks("code_execution_20250825");
    assert_eq!(
        container(vec!["a".into(), waits.clone(), answered()]),
        Some(json!("container_011"))
    );
    assert_eq!(container(vec![waits.clone(), answered(), "b".into()]), None);
    assert_eq!(container(vec![blocks("direct"), answered()]), None);
    // It stands after the conversation, which stays what the next request begins with.
    let before = codec().encode(&request(["a".into()])).unwrap();
    let with = codec()
        .encode(&request(["a".into(), waits.clone(), answered()]))
        .unwrap();
    let after = codec()
        .encode(&request([
            "a".into(),
            waits.clone(),
            answered(),
            "b".into(),
        ]))
        .unwrap();
    assert!(with.body.starts_with(before.conversation()));
    assert!(after.body.starts_with(with.conversation()));
    // The caller's own wins.
    let own = with_params(request([waits, answered()]), json!({"container": "mine"}));
    assert_eq!(body(&codec().encode(&own).unwrap())["container"], "mine");
}
