//! What stands before the conversation.

use crate::support::{body, codec, request, with_params};
use futures_util::future::BoxFuture;
use loomline_upp::anthropic::{StructureForm, tools};
use loomline_upp::{
    Anthropic, Code, Codec, Request, Settings, Tool, ToolChoice, ToolContext, ToolOutput, merge,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn tool(name: &str, metadata: Value) -> Tool {
    let never = |_: Value, _: ToolContext| -> BoxFuture<'static, ToolOutput> {
        Box::pin(std::future::ready(Ok(Value::Null)))
    };
    let mut tool = Tool::new(name, "Does.", json!({"type": "object"}), never);
    tool.metadata = serde_json::from_value(metadata).unwrap();
    tool
}

fn ask() -> Request {
    request(["hi".into()])
}

fn head_of(codec: &Anthropic, request: &Request) -> Value {
    let mut body = body(&codec.encode(request).unwrap());
    body.as_object_mut().unwrap().shift_remove("messages");
    body
}

fn refused(codec: &Anthropic, request: &Request) -> String {
    let error = codec.encode(request).unwrap_err();
    assert_eq!(error.code, Code::InvalidRequest);
    error.message
}

#[test]
fn a_request_without_max_tokens_is_refused_before_anything_is_sent() {
    let bare = Anthropic::new("m");
    assert!(refused(&bare, &ask()).contains("max_tokens"));
    let given = with_params(ask(), json!({"max_tokens": 5}));
    assert_eq!(head_of(&bare, &given)["max_tokens"], 5);
    assert_eq!(head_of(&codec(), &given)["max_tokens"], 5);
    assert_eq!(head_of(&codec(), &ask())["max_tokens"], 64);
}

#[test]
fn params_go_as_they_are_and_the_protocols_keys_win() {
    let asked = with_params(
        ask(),
        json!({
            "temperature": 0.5, "model": "other", "stream": false, "messages": [],
            "thinking": {"type": "enabled", "budget_tokens": 1024}, "metadata": {"user_id": "u"},
            "stop_sequences": ["x"], "service_tier": "auto", "cache_control": {"type": "ephemeral"},
            "made_up": [1],
        }),
    );
    assert_eq!(
        head_of(&codec(), &asked),
        json!({
            "temperature": 0.5, "model": "claude-opus-4-5", "stream": true,
            "thinking": {"type": "enabled", "budget_tokens": 1024}, "metadata": {"user_id": "u"},
            "stop_sequences": ["x"], "service_tier": "auto", "cache_control": {"type": "ephemeral"},
            "made_up": [1], "max_tokens": 64,
        })
    );
    let encoded = codec().encode(&asked).unwrap();
    assert_eq!(encoded.body.matches("\"messages\":").count(), 1);
}

#[test]
fn instructions_stand_before_the_blocks_of_the_parameter() {
    let mut asked = ask();
    asked.system = Some("Be kind.".into());
    assert_eq!(head_of(&codec(), &asked)["system"], "Be kind.");
    let cached = codec().with_system_cache_control(json!({"type": "ephemeral"}));
    let own = json!({"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}});
    assert_eq!(head_of(&cached, &asked)["system"], json!([own]));
    let more = json!({"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}});
    let asked = with_params(asked, json!({"system": [more]}));
    assert_eq!(
        head_of(&codec(), &asked)["system"],
        json!([{"type": "text", "text": "Be kind."}, more])
    );
    let alone = with_params(ask(), json!({"system": [more]}));
    assert_eq!(head_of(&codec(), &alone)["system"], json!([more]));
    for malformed in [
        json!(1),
        json!(["x"]),
        json!([{"type": "image"}]),
        json!([{"text": "x"}]),
    ] {
        let asked = with_params(ask(), json!({"system": malformed}));
        assert!(refused(&codec(), &asked).contains("system"));
    }
}

#[test]
fn native_tools_come_after_the_requests_tools() {
    let mut asked = with_params(
        ask(),
        json!({"tools": [tools::web_search(), tools::code_execution()]}),
    );
    asked.tools = [
        tool("f", json!({"anthropic": {"cache_control": {"type": "ephemeral"}, "strict": true}, "openai": {"x": 1}})),
        tool("bash", json!({"anthropic": tools::bash()})),
    ]
    .into();
    assert_eq!(
        head_of(&codec(), &asked)["tools"],
        json!([
            {"name": "f", "description": "Does.", "input_schema": {"type": "object"},
                "cache_control": {"type": "ephemeral"}, "strict": true},
            {"name": "bash", "type": "bash_20250124"},
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "code_execution_20250825", "name": "code_execution"},
        ])
    );
    let malformed = with_params(asked, json!({"tools": {}}));
    assert!(refused(&codec(), &malformed).contains("tools"));
}

#[test]
fn every_native_tool_has_a_type_and_a_name() {
    for tool in [
        tools::web_search(),
        tools::web_fetch(),
        tools::code_execution(),
        tools::tool_search_regex(),
        tools::tool_search_bm25(),
        tools::bash(),
        tools::text_editor(),
        tools::computer(1024, 768),
        tools::memory(),
    ] {
        let kind = tool["type"].as_str().unwrap();
        let (_, date) = kind.rsplit_once('_').unwrap();
        assert!(date.starts_with("202") && date.len() == 8, "{kind}");
        assert!(tool["name"].is_string());
    }
    assert_eq!(tools::computer(1024, 768)["display_width_px"], 1024);
}

#[test]
fn the_tool_choice_joins_the_parameters() {
    let choice = |choice: ToolChoice, params: Value| {
        let mut asked = with_params(ask(), params);
        asked.tools = [tool("f", json!({}))].into();
        asked.tool_choice = choice;
        head_of(&codec(), &asked).get("tool_choice").cloned()
    };
    assert_eq!(choice(ToolChoice::Auto, json!({})), None);
    assert_eq!(
        choice(ToolChoice::None, json!({})),
        Some(json!({"type": "none"}))
    );
    assert_eq!(
        choice(ToolChoice::Required, json!({})),
        Some(json!({"type": "any"}))
    );
    let one = json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}});
    assert_eq!(
        choice(ToolChoice::Auto, one.clone()),
        Some(one["tool_choice"].clone())
    );
    assert_eq!(
        choice(ToolChoice::Tool("f".into()), one.clone()),
        Some(json!({"type": "tool", "name": "f", "disable_parallel_tool_use": true}))
    );
    assert_eq!(choice(ToolChoice::None, one), Some(json!({"type": "none"})));
    let mut without = ask();
    without.tool_choice = ToolChoice::None;
    assert_eq!(head_of(&codec(), &without).get("tool_choice"), None);
}

#[test]
fn calls_kept_apart_leave_the_choice_to_whoever_makes_it() {
    let settings = Settings {
        parallel_tool_calls: Some(false),
        ..Settings::default()
    };
    let choice = |codec: &Anthropic, tools: &[Tool], own: Value, structure: Option<Value>| {
        let mut params = own.as_object().unwrap().clone();
        merge(&mut params, &codec.settings(&settings).params);
        let mut asked = with_params(ask(), params.into());
        asked.tools = tools.into();
        asked.structure = structure.map(Arc::new);
        head_of(codec, &asked).get("tool_choice").cloned()
    };
    let tools = [tool("f", json!({}))];
    assert_eq!(
        choice(&codec(), &tools, json!({}), None),
        Some(json!({"type": "auto", "disable_parallel_tool_use": true}))
    );
    assert_eq!(choice(&codec(), &[], json!({}), None), None);
    let own = json!({"tool_choice": {"type": "tool", "name": "f"}});
    assert_eq!(
        choice(&codec(), &tools, own, None),
        Some(json!({"type": "tool", "name": "f", "disable_parallel_tool_use": true}))
    );
    let forced = codec().with_structure_form(StructureForm::ForcedTool);
    assert_eq!(
        choice(&forced, &tools, json!({}), Some(json!({}))),
        Some(json!({"type": "any", "disable_parallel_tool_use": true}))
    );
    assert_eq!(
        choice(&forced, &[], json!({}), Some(json!({}))),
        Some(json!({"type": "tool", "name": "json_response", "disable_parallel_tool_use": true}))
    );
}

fn structured(schema: Value) -> Request {
    Request {
        structure: Some(Arc::new(schema)),
        ..ask()
    }
}

#[test]
fn a_structure_is_an_output_format_beside_tools_and_effort() {
    let mut asked = with_params(
        structured(json!({
            "type": "object", "$defs": {"d": {"type": ["object", "null"], "properties": {}}},
            "properties": {
                "a": {"type": "array", "items": {"type": "object", "properties": {}}},
                "b": {"anyOf": [{"type": "object", "additionalProperties": true}, {"$ref": "#/$defs/d"}]},
            },
        })),
        json!({"output_config": {"effort": "low"}}),
    );
    asked.tools = [tool("f", json!({}))].into();
    let head = head_of(&codec(), &asked);
    assert_eq!(
        head["output_config"],
        json!({"effort": "low", "format": {"type": "json_schema", "schema": {
            "type": "object", "additionalProperties": false,
            "$defs": {"d": {"type": ["object", "null"], "properties": {}, "additionalProperties": false}},
            "properties": {
                "a": {"type": "array", "items": {"type": "object", "properties": {}, "additionalProperties": false}},
                "b": {"anyOf": [{"type": "object", "additionalProperties": true}, {"$ref": "#/$defs/d"}]},
            },
        }}})
    );
    assert_eq!(head["tools"].as_array().unwrap().len(), 1);
    assert_eq!(head.get("tool_choice"), None);
    let malformed = with_params(asked, json!({"output_config": 1}));
    assert!(refused(&codec(), &malformed).contains("output_config"));
}

#[test]
fn a_structure_can_be_a_tool_that_must_be_called() {
    let forced = codec().with_structure_form(StructureForm::ForcedTool);
    let schema = json!({"type": "object", "properties": {}});
    let mut asked = structured(schema.clone());
    let head = head_of(&forced, &asked);
    assert_eq!(head["tools"][0]["input_schema"], schema);
    assert_eq!(
        head["tool_choice"],
        json!({"type": "tool", "name": "json_response"})
    );
    asked.tools = [tool("f", json!({}))].into();
    let head = head_of(&forced, &asked);
    assert_eq!(head["tools"][1]["name"], "json_response");
    assert_eq!(head["tool_choice"], json!({"type": "any"}));
    // Thinking allows no force; the caller says so.
    let asked = with_params(asked, json!({"tool_choice": {"type": "auto"}}));
    assert_eq!(
        head_of(&forced, &asked)["tool_choice"],
        json!({"type": "auto"})
    );
    let mut named = structured(schema);
    named.tools = [tool("json_response", json!({}))].into();
    assert!(refused(&forced, &named).contains("json_response"));
}

#[test]
fn version_and_betas_are_headers() {
    let codec = Anthropic::new("m").with_betas(["a-2025-01-01", "b-2025-01-01"]);
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        codec.headers(),
        [
            header("anthropic-version", "2023-06-01"),
            header("anthropic-beta", "a-2025-01-01,b-2025-01-01"),
        ]
    );
}

#[test]
fn the_version_that_was_configured_is_sent_in_place_of_the_usual_one() {
    let codec = Anthropic {
        version: "2027-01-01".to_owned(),
        ..Anthropic::new("m")
    };
    let header = ("anthropic-version".to_owned(), "2027-01-01".to_owned());
    assert_eq!(codec.headers(), [header]);
}
