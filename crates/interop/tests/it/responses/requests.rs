//! What a request may ask for, and what it is told where it may not.

use super::rig::{begun, events};
use super::schemas::Published;
use loomline_interop::ids::{CONVERSATION, response_id};
use loomline_interop::options::{AnswerFormat, RunOptions, RunToolChoice};
use loomline_interop::responses::{Continues, CreateRequest, Echo, RequestError};
use serde_json::{Value, json};

const THREAD: &str = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061";
const EXECUTION: &str = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5062";

pub(super) fn read(body: &Value) -> Result<CreateRequest, RequestError> {
    CreateRequest::read(body).map(|read| read.value)
}

fn everything() -> Value {
    json!({
        "model": "small", "input": "hi", "instructions": "be brief",
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {"type": "function", "name": "look", "description": "looks", "strict": true,
             "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": false}},
            {"type": "function", "name": "bare"},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}]},
        "metadata": {"a": "b"}, "temperature": 0.25, "top_p": 0.5, "presence_penalty": -1,
        "frequency_penalty": 2, "parallel_tool_calls": false, "stream": true,
        "stream_options": {"include_obfuscation": true}, "background": true, "max_output_tokens": 16,
        "max_tool_calls": 3, "reasoning": {"effort": "low", "summary": "auto"},
        "safety_identifier": "s", "prompt_cache_key": "k", "truncation": "auto", "store": false,
        "service_tier": "default", "top_logprobs": 0,
        "text": {"format": {"type": "json_object"}, "verbosity": "low"}, "unknown": [1],
    })
}

#[test]
fn all_that_can_be_asked_is_read() {
    let read = CreateRequest::read(&everything()).unwrap();
    let unmet: Vec<&str> = read.losses.iter().map(|it| it.pointer.as_str()).collect();
    assert_eq!(unmet, ["/text/verbosity"]);
    let request = read.value;
    assert_eq!(request.continues, Continues::Nothing);
    assert_eq!(
        (request.stream, request.background, request.store),
        (true, true, false)
    );
    let options = &request.options;
    assert_eq!(options.model.as_deref(), Some("small"));
    assert_eq!(options.instructions.as_deref(), Some("be brief"));
    assert_eq!(options.tools.len(), 2);
    assert_eq!(options.tools[0].strict, Some(true));
    assert_eq!(options.tools[1].parameters, None);
    let names = vec!["look".to_owned()];
    assert_eq!(
        options.tool_choice,
        Some(RunToolChoice::Allowed {
            names,
            required: true
        })
    );
    assert_eq!(options.parallel_tool_calls, Some(false));
    assert_eq!(
        (options.max_tool_calls, options.max_output_tokens),
        (Some(3), Some(16))
    );
    assert_eq!(options.max_run_output_tokens, Some(16));
    assert!(options.tokens_begin_here);
    assert_eq!(
        (options.temperature, options.top_p),
        (Some(0.25), Some(0.5))
    );
    assert_eq!(
        (options.presence_penalty, options.frequency_penalty),
        (Some(-1.0), Some(2.0))
    );
    assert_eq!(options.reasoning_effort.as_deref(), Some("low"));
    assert_eq!(options.reasoning_summary.as_deref(), Some("auto"));
    assert_eq!(options.format, Some(AnswerFormat::JsonObject));
    let echo: Echo = serde_json::from_value(options.echo["responses"].clone()).unwrap();
    assert!(echo.summary && echo.encrypted_reasoning && !echo.extensions);
}

/// The response that a request is answered with, before anything is said.
fn response_to(body: &Value) -> Value {
    let options: RunOptions = read(body).unwrap().options;
    let log = begun(Some(json!({"params": options}).into()));
    events(&log)[0]["response"].clone()
}

#[test]
fn a_response_says_its_request_again() {
    let body = everything();
    let response = response_to(&body);
    for key in [
        "instructions",
        "tool_choice",
        "metadata",
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "parallel_tool_calls",
        "background",
        "max_output_tokens",
        "max_tool_calls",
        "reasoning",
        "safety_identifier",
        "prompt_cache_key",
        "truncation",
        "store",
        "service_tier",
        "top_logprobs",
        "text",
        "model",
    ] {
        if body[key].is_number() {
            assert_eq!(response[key].as_f64(), body[key].as_f64(), "{key}");
        } else {
            assert_eq!(response[key], body[key], "{key}");
        }
    }
    assert_eq!(response["tools"][0], body["tools"][0]);
    let bare = json!({"type": "function", "name": "bare", "description": null, "parameters": null, "strict": null});
    assert_eq!(response["tools"][1], bare);
    assert_eq!(response["status"], "queued");
    assert_eq!(response.get("conversation"), None);
}

#[test]
fn a_response_has_all_of_its_members_whatever_was_asked() {
    let Some(mut open) = Published::open_responses() else {
        return;
    };
    let schema = json!({"type": "object", "properties": {}});
    let format = json!({"type": "json_schema", "name": "n", "schema": schema});
    let bodies = [
        json!({"input": "hi"}),
        everything(),
        json!({"input": "hi", "tool_choice": {"type": "function", "name": "look"}}),
        json!({"input": "hi", "model": null, "reasoning": null, "tools": null, "metadata": null, "store": null}),
        json!({"conversation": {"id": "c"}, "input": "hi"}),
    ];
    for body in &bodies {
        open.check("ResponseResource", &response_to(body));
    }
    // The published schema has no place for a schema here; official clients expect it.
    let response = response_to(&json!({"input": "hi", "text": {"format": format}}));
    assert_eq!(response["text"]["format"]["schema"], schema);
    assert_eq!(response["text"]["format"]["strict"], false);
    let mut openai = Published::openai().unwrap();
    openai.check_openai_response(&response_to(&bodies[1]));
}

#[test]
fn what_a_request_goes_on_with_stands_in_its_ids() {
    let id = response_id(THREAD, EXECUTION).unwrap();
    let request = read(&json!({"previous_response_id": id, "input": "hi"})).unwrap();
    let (thread, execution) = (THREAD.to_owned(), EXECUTION.to_owned());
    assert_eq!(
        request.continues,
        Continues::Response {
            id: id.clone(),
            thread,
            execution
        }
    );
    assert_eq!(
        response_to(&json!({"previous_response_id": id}))["previous_response_id"],
        id.as_str()
    );
    for conversation in [
        json!(CONVERSATION.write(THREAD)),
        json!({"id": CONVERSATION.write(THREAD)}),
    ] {
        let request = read(&json!({"conversation": conversation})).unwrap();
        assert!(
            matches!(request.continues, Continues::Conversation { thread, .. } if thread == THREAD)
        );
    }
    assert!(matches!(
        read(&json!({"conversation": "a key"})).unwrap().continues,
        Continues::Conversation { thread, .. } if thread == "a key"
    ));
    let unknown = read(&json!({"previous_response_id": "resp_1", "input": "hi"})).unwrap_err();
    assert_eq!(unknown.code, "previous_response_not_found");
    let both = read(&json!({"previous_response_id": id, "conversation": "c"})).unwrap_err();
    assert_eq!(both.param().as_deref(), Some("conversation"));
}

#[test]
fn wishes_that_can_not_be_met_are_told() {
    let body = json!({"input": "hi", "include": ["message.output_text.logprobs"], "service_tier": "flex", "top_logprobs": 3,
        "text": {"verbosity": "high"}});
    let pointers: Vec<String> = CreateRequest::read(&body)
        .unwrap()
        .losses
        .into_iter()
        .map(|loss| loss.pointer)
        .collect();
    let expected = [
        "/include/0",
        "/text/verbosity",
        "/service_tier",
        "/top_logprobs",
    ];
    assert_eq!(pointers, expected);
}

#[test]
fn a_socket_does_not_say_how_the_answer_comes() {
    let message = json!({"type": "response.create", "input": "hi"});
    assert!(CreateRequest::read_socket(&message).unwrap().value.stream);
    for (key, value) in [
        ("stream", json!(true)),
        ("background", json!(false)),
        ("stream_options", json!({})),
        ("type", json!("response.steer")),
    ] {
        let mut message = message.clone();
        message[key] = value;
        assert_eq!(
            CreateRequest::read_socket(&message)
                .unwrap_err()
                .param()
                .as_deref(),
            Some(key)
        );
    }
}

#[test]
fn allowed_tools_are_said_again_as_they_were_chosen() {
    for mode in ["none", "auto", "required"] {
        let choice = json!({"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": "look"}]});
        let body = json!({"input": "x", "tool_choice": choice});
        let read = CreateRequest::read(&body).unwrap().value;
        assert_eq!(
            read.options.echo["responses"]["said"]["tool_choice"],
            choice
        );
    }
}
