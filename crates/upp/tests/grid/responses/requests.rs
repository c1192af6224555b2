//! What a request says.

use super::codec;
use super::round_trip::{params, sent, stored, whole};
use super::wire::{self, Host, call};
use futures_util::future::BoxFuture;
use loomline_upp::responses::tools;
use loomline_upp::{
    Arguments, AssistantContent, AssistantMessage, Codec, Message, MessageOptions, Request,
    Responses, Tool, ToolCall, ToolChoice, ToolOutput, ToolResult, ToolResultMessage,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn body(codec: &Responses, request: &Request) -> Value {
    serde_json::from_str(&codec.encode(request).unwrap().body).unwrap()
}

fn head(codec: &Responses, with: Value) -> Value {
    let request = Request {
        params: params(with),
        ..Request::default()
    };
    let mut body = body(codec, &request);
    body.as_object_mut().unwrap().shift_remove("input");
    body
}

fn tool(name: &str, metadata: &Value) -> Tool {
    let run =
        |_: Value, _| -> BoxFuture<'static, ToolOutput> { Box::pin(async { Ok(Value::Null) }) };
    let mut tool = Tool::new(name, "does", json!({"type": "object"}), run);
    tool.metadata.insert("openai".into(), metadata.clone());
    tool
}

#[test]
fn nothing_is_stored_and_reasoning_comes_encrypted() {
    let encrypted = json!(["reasoning.encrypted_content"]);
    let plain = json!({"model": "gpt-5.1", "stream": true, "store": false, "include": encrypted});
    assert_eq!(head(&codec(Host::OpenAi), json!({})), plain);
    let asked = json!({"model": "other", "stream": false, "store": true,
        "include": ["web_search_call.action.sources"], "previous_response_id": "resp_1",
        "reasoning": {"effort": "low"}, "input": "ignored", "x_unknown": [1]});
    assert_eq!(
        head(&codec(Host::OpenAi), asked),
        json!({"model": "gpt-5.1", "stream": true, "store": true,
            "include": ["web_search_call.action.sources", "reasoning.encrypted_content"],
            "previous_response_id": "resp_1", "reasoning": {"effort": "low"}, "x_unknown": [1]})
    );
    let background = head(&codec(Host::OpenAi), json!({"background": true}));
    assert_eq!(background.get("store"), None);
}

#[test]
fn encrypted_reasoning_is_asked_for_where_the_model_may_reason() {
    let asks = |codec: Responses, with: Value| {
        head(&codec, with)
            .get("include")
            .is_some_and(|include| *include == json!(["reasoning.encrypted_content"]))
    };
    for name in [
        "gpt-5",
        "gpt-6-pro",
        "o3",
        "o4-mini",
        "openai/gpt-5.1-codex",
        "ft:o4-mini:x",
    ] {
        assert!(asks(Responses::openai(name), json!({})), "{name}");
    }
    for name in [
        "gpt-4o",
        "gpt-4.1-mini",
        "gpt-3.5-turbo",
        "gpt-5-chat-latest",
        "ft:gpt-4o:x",
    ] {
        assert!(!asks(Responses::openai(name), json!({})), "{name}");
        let reasoning = json!({"reasoning": {"effort": "low"}});
        assert!(asks(Responses::openai(name), reasoning), "{name}");
    }
    let told = Responses::host("azure", "https://x.example", "my-deployment");
    assert!(asks(told.clone(), json!({})));
    assert!(!asks(told.with_encrypted_reasoning(false), json!({})));
    assert!(!asks(Responses::openai("o3"), json!({"include": null})));
}

#[test]
fn tools_say_whether_they_are_strict_and_native_ones_follow() {
    let request = Request {
        tools: [
            tool("f", &json!({})),
            tool(
                "g",
                &json!({"strict": true, "defer_loading": true, "name": "no"}),
            ),
            tool("sh", &json!({"type": "custom", "format": {"type": "text"}})),
        ]
        .into(),
        tool_choice: ToolChoice::Tool("sh".into()),
        params: params(json!({"tools": [tools::web_search()], "tool_choice": "none"})),
        ..Request::default()
    };
    let body = body(&codec(Host::OpenAi), &request);
    let schema = json!({"type": "object"});
    assert_eq!(
        body["tools"],
        json!([
            {"type": "function", "name": "f", "description": "does", "parameters": schema, "strict": false},
            {"type": "function", "name": "g", "description": "does", "parameters": schema,
                "strict": true, "defer_loading": true},
            {"type": "custom", "name": "sh", "description": "does", "format": {"type": "text"}},
            {"type": "web_search"},
        ])
    );
    assert_eq!(body["tool_choice"], json!({"type": "custom", "name": "sh"}));
}

#[test]
fn the_choice_of_tools_is_the_requests_or_else_the_params() {
    let choice = |tool_choice: ToolChoice| {
        let request = Request {
            tools: [tool("f", &json!({}))].into(),
            tool_choice,
            params: params(json!({"tool_choice": {"type": "web_search"}})),
            ..Request::default()
        };
        body(&codec(Host::OpenAi), &request)["tool_choice"].clone()
    };
    assert_eq!(choice(ToolChoice::Auto), json!({"type": "web_search"}));
    assert_eq!(choice(ToolChoice::None), "none");
    assert_eq!(choice(ToolChoice::Required), "required");
    let one = ToolChoice::Tool("f".into());
    assert_eq!(choice(one), json!({"type": "function", "name": "f"}));
}

#[test]
fn native_tools_have_what_their_provider_requires() {
    assert_eq!(tools::x_search(), json!({"type": "x_search"}));
    assert_eq!(
        tools::file_search(["vs_1"]),
        json!({"type": "file_search", "vector_store_ids": ["vs_1"]})
    );
    assert_eq!(tools::code_interpreter()["container"]["type"], "auto");
    assert_eq!(tools::computer()["type"], "computer");
    assert_eq!(tools::image_generation()["type"], "image_generation");
    let mcp = tools::mcp("docs", "https://x.example/mcp");
    assert_eq!(
        (&mcp["server_label"], &mcp["require_approval"]),
        (&json!("docs"), &json!("never"))
    );
    let only_native = head(
        &codec(Host::OpenAi),
        json!({"tools": [tools::web_search()]}),
    );
    assert_eq!(only_native["tools"], json!([{"type": "web_search"}]));
}

#[test]
fn a_structure_is_strict_where_its_schema_can_be() {
    let text = |schema: Value| {
        let request = Request {
            structure: Some(Arc::new(schema)),
            params: params(json!({"text": {"verbosity": "low", "format": {"type": "text"}}})),
            ..Request::default()
        };
        body(&codec(Host::OpenAi), &request)["text"].clone()
    };
    let open =
        json!({"type": "object", "description": "d", "properties": {"a": {"type": "string"}}});
    assert_eq!(
        text(open.clone()),
        json!({"verbosity": "low", "format": {"type": "json_schema", "name": "json_response",
            "description": "d", "schema": open, "strict": false}})
    );
    let closed =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    assert_eq!(text(closed)["format"]["strict"], true);
}

#[test]
fn the_system_prompt_is_not_part_of_the_conversation_but_at_xai() {
    let mut request = Request {
        system: Some("be kind".into()),
        messages: [Message::from("hi")].into_iter().collect(),
        params: params(json!({"instructions": "ignored"})),
        ..Request::default()
    };
    let openai = body(&codec(Host::OpenAi), &request);
    assert_eq!(openai["instructions"], "be kind");
    assert_eq!(openai["input"].as_array().unwrap().len(), 1);
    request.params = params(json!({}));
    let xai = body(&codec(Host::Xai), &request);
    assert_eq!(xai.get("instructions"), None);
    let system = json!({"type": "message", "role": "system", "content": "be kind"});
    assert_eq!(xai["input"][0], system);
}

fn results(ids: &[&str]) -> Message {
    let results = ids.iter().map(|id| ToolResult {
        tool_call_id: (*id).into(),
        result: json!({"ok": 1}).into(),
        is_error: false,
    });
    ToolResultMessage::new(results.collect(), MessageOptions::default()).into()
}

#[test]
fn a_custom_tools_result_goes_back_as_its_own_kind() {
    let custom = json!({"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_2",
        "name": "sh", "input": "ls"});
    let codec = codec(Host::OpenAi);
    let items = [custom.clone(), call("fc_1", "call_1", "f", "{}")];
    let response = whole(&codec, &wire::response("completed", &items, &Value::Null));
    let answered = results(&["call_2", "call_1"]);
    let (input, _) = sent(&codec, [stored(&response), answered], json!({}));
    assert_eq!(
        input,
        json!([
            items[0], items[1],
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": "{\"ok\":1}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "{\"ok\":1}"},
        ])
    );
}

fn foreign(id: &str) -> Message {
    let call = ToolCall {
        tool_call_id: id.into(),
        tool_name: "f".into(),
        arguments: Arguments::from_text("{ }"),
        after: Vec::new(),
    };
    let text = vec![AssistantContent::Text { text: "so".into() }];
    let options = MessageOptions {
        id: Some("m".into()),
        ..MessageOptions::default()
    };
    AssistantMessage::new(text, vec![call], options).into()
}

#[test]
fn foreign_and_repeated_ids_are_made_to_fit() {
    let odd = "functions.f:0";
    let conversation = [
        foreign("c1"),
        results(&["c1"]),
        foreign("c1"),
        results(&["c1"]),
        foreign(odd),
        results(&[odd]),
    ];
    let (input, omitted) = sent(&codec(Host::OpenAi), conversation, json!({}));
    assert_eq!(omitted, []);
    let ids: Vec<&str> = input
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["call_id"].as_str())
        .collect();
    assert_eq!(&ids[..4], ["c1", "c1", "c1_2", "c1_2"]);
    assert_eq!(ids[4], ids[5]);
    assert!(ids[4].starts_with("call_") && ids[4].len() <= 64);
    assert_eq!(input[1]["arguments"], "{ }");
}

#[test]
fn openrouter_gets_the_fields_that_it_requires() {
    let conversation = [foreign("c1"), results(&["c1"])];
    let (input, _) = sent(&codec(Host::OpenRouter), conversation.clone(), json!({}));
    let id = input[0]["id"].as_str().unwrap();
    assert!(id.starts_with("msg_"));
    assert_eq!(input[0]["status"], "completed");
    let part = json!({"type": "output_text", "text": "so", "annotations": []});
    assert_eq!(input[0]["content"], json!([part]));
    assert_eq!(
        (&input[1]["id"], &input[2]["id"]),
        (&json!("fc_c1"), &json!("fco_c1"))
    );
    // They are the same each time.
    assert_eq!(
        sent(&codec(Host::OpenRouter), conversation, json!({})).0,
        input
    );
}
