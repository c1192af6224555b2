//! What wrong requests are told.

use super::requests::read;
use loomline_interop::responses::{
    CompactRequest, CreateConversation, NewItems, read_conversation_update,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bodies that are refused, each with the member that is wrong and the code.
type Wrong<'a> = (Value, Option<&'a str>, &'a str);

fn refused<const N: usize>(wrong: [Wrong<'_>; N]) {
    for (body, param, code) in wrong {
        let error = read(&body).unwrap_err();
        assert_eq!(
            (error.param().as_deref(), error.code),
            (param, code),
            "{body}"
        );
        assert_eq!(error.body()["error"]["type"], "invalid_request_error");
    }
}

#[test]
fn the_length_of_an_image_and_of_a_file_is_counted_in_characters() {
    let part = |part: Value| json!({"input": [{"role": "user", "content": [part]}]});
    for (kind, member, max) in [
        ("input_image", "image_url", 20_971_520),
        ("input_file", "file_url", 33_554_432),
    ] {
        let head = "https://a.example/";
        let long = |n: usize| {
            // One byte more than characters.
            let url = format!("{head}é{}", "a".repeat(n - head.len() - 1));
            part(json!({"type": kind, member: url}))
        };
        assert!(read(&long(max)).is_ok(), "{kind}");
        let param = format!("input[0].content[0].{member}");
        let code = "string_above_max_length";
        let error = read(&long(max + 1)).unwrap_err();
        assert_eq!((error.param(), error.code), (Some(param), code));
    }
}

#[test]
fn a_wrong_item_is_told_where_and_what_was_expected() {
    let part = |part: Value| json!({"input": [{"role": "user", "content": [part]}]});
    refused([
        (json!([]), None, "invalid_type"),
        (json!({}), Some("input"), "missing_required_parameter"),
        (
            json!({"input": []}),
            Some("input"),
            "missing_required_parameter",
        ),
        (json!({"input": 7}), Some("input"), "invalid_type"),
        (
            json!({"input": [{"type": "web_search_call"}]}),
            Some("input[0].type"),
            "unsupported_value",
        ),
        (
            json!({"input": [{"role": "tool", "content": "x"}]}),
            Some("input[0].role"),
            "invalid_value",
        ),
        (
            json!({"input": [{"role": "user"}]}),
            Some("input[0].content"),
            "missing_required_parameter",
        ),
        (
            part(json!({"type": "input_audio"})),
            Some("input[0].content[0].type"),
            "unsupported_value",
        ),
        (
            part(json!({"type": "input_text"})),
            Some("input[0].content[0].text"),
            "missing_required_parameter",
        ),
        (
            part(json!({"type": "input_image", "file_id": "f"})),
            Some("input[0].content[0].file_id"),
            "unsupported_value",
        ),
        (
            part(json!({"type": "input_image", "image_url": "file:///etc"})),
            Some("input[0].content[0].image_url"),
            "invalid_value",
        ),
        (
            part(json!({"type": "input_file", "file_data": "%"})),
            Some("input[0].content[0].file_data"),
            "invalid_value",
        ),
        (
            part(json!({"type": "input_file", "filename": "a"})),
            Some("input[0].content[0].file_data"),
            "missing_required_parameter",
        ),
        (
            json!({"input": [{"type": "function_call", "call_id": "c", "name": "a b", "arguments": ""}]}),
            Some("input[0].name"),
            "invalid_value",
        ),
        (
            json!({"input": [{"type": "function_call_output", "call_id": "", "output": ""}]}),
            Some("input[0].call_id"),
            "invalid_value",
        ),
    ]);
}

#[test]
fn a_wrong_wish_is_told_where_and_what_was_expected() {
    let tool = |tool: Value| json!({"input": "hi", "tools": [tool]});
    let with = |key: &str, value: Value| {
        let mut body = json!({"input": "hi"});
        body[key] = value;
        body
    };
    refused([
        (
            tool(json!({"type": "web_search"})),
            Some("tools[0].type"),
            "unsupported_value",
        ),
        (
            tool(json!({"type": "acme:search"})),
            Some("tools[0].type"),
            "unsupported_value",
        ),
        (
            tool(json!({"type": "function"})),
            Some("tools[0].name"),
            "missing_required_parameter",
        ),
        (
            tool(json!({"type": "function", "name": "a", "parameters": []})),
            Some("tools[0].parameters"),
            "invalid_type",
        ),
        (
            json!({"input": "hi", "tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "a"}]}),
            Some("tools[1].name"),
            "invalid_value",
        ),
        (
            with("tool_choice", json!("some")),
            Some("tool_choice"),
            "invalid_value",
        ),
        (
            with("tool_choice", json!({"type": "allowed_tools", "tools": []})),
            Some("tool_choice.tools"),
            "invalid_value",
        ),
    ]);
}

#[test]
fn a_number_or_a_word_out_of_its_range_is_refused() {
    let with = |key: &str, value: Value| {
        let mut body = json!({"input": "hi"});
        body[key] = value;
        body
    };
    refused([
        (
            with("temperature", json!(2.5)),
            Some("temperature"),
            "invalid_value",
        ),
        (
            with("max_output_tokens", json!(15)),
            Some("max_output_tokens"),
            "invalid_value",
        ),
        (
            with("max_tool_calls", json!(0)),
            Some("max_tool_calls"),
            "invalid_value",
        ),
        (
            with("top_logprobs", json!(21)),
            Some("top_logprobs"),
            "invalid_value",
        ),
        (with("stream", json!("yes")), Some("stream"), "invalid_type"),
        (
            with("reasoning", json!({"effort": "huge"})),
            Some("reasoning.effort"),
            "invalid_value",
        ),
        (
            with(
                "text",
                json!({"format": {"type": "json_schema", "name": "n"}}),
            ),
            Some("text.format.schema"),
            "missing_required_parameter",
        ),
        (
            with("text", json!({"format": {"type": "xml"}})),
            Some("text.format.type"),
            "unsupported_value",
        ),
        (
            with("metadata", json!({"a": 1})),
            Some("metadata.a"),
            "invalid_type",
        ),
        (
            with("metadata", json!({"a": "x".repeat(513)})),
            Some("metadata.a"),
            "string_above_max_length",
        ),
        (
            with("safety_identifier", json!("x".repeat(65))),
            Some("safety_identifier"),
            "string_above_max_length",
        ),
        (
            with("conversation", json!("x".repeat(1_025))),
            Some("conversation"),
            "string_above_max_length",
        ),
        (
            with("prompt", json!({"id": "p"})),
            Some("prompt"),
            "unsupported_value",
        ),
        (
            with("include", json!([1])),
            Some("include[0]"),
            "invalid_type",
        ),
        (
            with(
                "include",
                json!(["reasoning.encrypted_content", "nonsense"]),
            ),
            Some("include[1]"),
            "invalid_value",
        ),
        (
            with("generate", json!("no")),
            Some("generate"),
            "invalid_type",
        ),
    ]);
}

fn json_value() -> impl Strategy<Value = Value> {
    let words = [
        "input",
        "type",
        "message",
        "role",
        "user",
        "assistant",
        "content",
        "input_text",
        "output_text",
        "text",
        "input_image",
        "image_url",
        "function_call",
        "function_call_output",
        "call_id",
        "name",
        "arguments",
        "output",
        "reasoning",
        "summary",
        "tools",
        "function",
        "tool_choice",
        "metadata",
        "items",
        "id",
        "item_reference",
        "conversation",
        "model",
    ];
    let word = proptest::sample::select(words.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let members = prop::collection::vec((word.clone(), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::Array),
            members.prop_map(|members| Value::Object(
                members
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn no_body_brings_a_reader_down(body in json_value()) {
        let at = jiff::Timestamp::UNIX_EPOCH;
        if let Ok(request) = read(&body) {
            let _ = request.thread_input(&BTreeMap::new(), None, at, &mut crate::log::ids());
        }
        let _ = CompactRequest::read(&body);
        let _ = read_conversation_update(&body);
        if let Ok(items) = NewItems::read(&body) {
            let _ = items.records(&mut crate::log::ids());
        }
        if let Ok(conversation) = CreateConversation::read(&body) {
            let _ = conversation.commands(at, &mut crate::log::ids());
        }
    }
}
