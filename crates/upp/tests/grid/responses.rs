//! The Responses format in the grid: `OpenAI`, xAI, `OpenRouter`, and a host of Open Responses.

mod answers;
mod any_items;
mod media;
mod requests;
mod round_trip;
mod wire;

use crate::scenarios::{PDF, PNG, structure};
use crate::vendor::{Reply, Scenario, Seen, Vendor};
use loomline_upp::{Model, Provider, ProviderConfig, Responses};
use serde_json::{Value, json};
use std::sync::Arc;
use wire::{Host, Wire, call, reasoning, text, usage};

mod openai {
    crate::vendor!(super::Vendored(super::Host::OpenAi));
}

mod open_host {
    crate::vendor!(super::Vendored(super::Host::Open));
}

mod xai {
    crate::vendor!(super::Vendored(super::Host::Xai));
}

mod openrouter {
    crate::vendor!(super::Vendored(super::Host::OpenRouter));
}

struct Vendored(Host);

/// The codec of a host for the model of the fixtures.
fn codec(host: Host) -> Responses {
    match host {
        Host::OpenAi => Responses::openai("gpt-5.1"),
        Host::Xai => Responses::xai("gpt-5.1"),
        Host::OpenRouter => Responses::openrouter("gpt-5.1"),
        Host::Open => Responses::host("acme", "https://acme.example/v1", "gpt-5.1"),
    }
}

const ADD: &str = r#"{"a": 1,"b":2}"#;

/// What the n-th answer has.
fn output(scenario: Scenario, n: usize) -> Vec<Value> {
    let add = || call("fc_0a1", "call_a1", "add", ADD);
    match (scenario, n) {
        (Scenario::Conversation, n) => {
            vec![text(&format!("msg_{n}"), ["one", "two", "three"][n])]
        }
        (Scenario::ParallelTools, 0) => {
            vec![add(), call("fc_0a2", "call_a2", "echo", r#"{"text":"x"}"#)]
        }
        (Scenario::ParallelTools, _) => vec![text("msg_1", "3 and x")],
        (Scenario::ToolError, 0) => vec![add()],
        (Scenario::CutCall, 0) => {
            let mut cut = call("fc_0a1", "call_a1", "add", "");
            cut["status"] = json!("incomplete");
            vec![cut]
        }
        (Scenario::ToolError | Scenario::CutCall, _) => vec![text("msg_1", "sorry")],
        (Scenario::ReasoningRoundTrip, 0) => vec![
            reasoning("rs_0a0", &["let me think"], Some("gAAAAABpF3-zbM_w==")),
            add(),
        ],
        (Scenario::ReasoningRoundTrip, _) => vec![text("msg_1", "3")],
        (Scenario::StructuredOutput, _) => {
            vec![text("msg_1", r#"{"city":"Oslo","degrees":7}"#)]
        }
        (
            Scenario::Text
            | Scenario::Image
            | Scenario::Document
            | Scenario::StopMaxTokens
            | Scenario::StopContentFilter
            | Scenario::MidStreamError
            | Scenario::Truncated
            | Scenario::RateLimited
            | Scenario::ContextOverflow
            | Scenario::BadKey
            | Scenario::Cancellation
            | Scenario::MalformedBody
            | Scenario::CachedTokens,
            _,
        ) => vec![text("msg_0", "Hello, world")],
    }
}

fn refused(status: u16, kind: &str, code: &str, message: &str) -> Reply {
    let error = json!({"message": message, "type": kind, "param": null, "code": code});
    Reply::refusal(status, &json!({"error": error}))
}

impl Vendored {
    /// A stream that stops in the middle of a text.
    fn begun(&self) -> Wire {
        let mut wire = Wire::new(self.0);
        wire.begun(0, &text("msg_0", "Hel"));
        wire
    }

    fn overloaded(&self) -> Vec<String> {
        let message = "Our servers are currently overloaded. Please try again later.";
        let mut wire = self.begun();
        let error = json!({"code": "server_is_overloaded", "message": message, "param": null});
        if self.0 == Host::OpenAi {
            wire.event("error", error);
        } else {
            let mut nested = error;
            nested["type"] = json!("server_error");
            wire.event("error", json!({"error": nested}));
        }
        let mut failed = wire::response("failed", &[], &Value::Null);
        failed["error"] = json!({"code": "server_error", "message": message});
        wire.event("response.failed", json!({"response": failed}));
        wire.pieces
    }

    fn unfinished(&self, reason: &str) -> Vec<String> {
        let mut item = text("msg_0", "Hel");
        item["status"] = json!("incomplete");
        self.incomplete(item, reason)
    }

    /// A stream that ends in this item.
    fn incomplete(&self, item: Value, reason: &str) -> Vec<String> {
        let mut wire = Wire::new(self.0);
        wire.item(0, &item);
        let mut response = wire::response("incomplete", &[item], &usage(11, 0, 3, 0));
        response["incomplete_details"] = json!({"reason": reason});
        wire.event("response.incomplete", json!({"response": response}));
        wire.pieces
    }
}

impl Vendor for Vendored {
    fn model(&self, url: &str) -> Arc<dyn Model> {
        let key = "sk-secret".to_owned().into();
        let config = ProviderConfig::default()
            .with_base_url(url)
            .with_api_key(key);
        Arc::new(Provider::new(codec(self.0), config).unwrap())
    }

    fn skip(&self, scenario: Scenario) -> Option<&'static str> {
        (self.0 == Host::Xai && scenario == Scenario::Document)
            .then_some("xAI takes documents by the id of an uploaded file only")
    }

    fn reply(&self, scenario: Scenario, n: usize) -> Reply {
        let mut items = output(scenario, n);
        match scenario {
            Scenario::CutCall if n == 0 => {
                Reply::events(self.incomplete(items.remove(0), "max_output_tokens"))
            }
            Scenario::Text
            | Scenario::Conversation
            | Scenario::ParallelTools
            | Scenario::ToolError
            | Scenario::CutCall
            | Scenario::Image
            | Scenario::Document
            | Scenario::ReasoningRoundTrip
            | Scenario::StructuredOutput => Reply::events(wire::stream(self.0, &items)),
            Scenario::StopMaxTokens => Reply::events(self.unfinished("max_output_tokens")),
            Scenario::StopContentFilter if self.0 == Host::OpenAi => {
                let mut item = text("msg_0", "");
                item["content"] =
                    json!([{"type": "refusal", "refusal": "I can't help with that."}]);
                Reply::events(wire::stream(self.0, &[item]))
            }
            Scenario::StopContentFilter => Reply::events(self.unfinished("content_filter")),
            Scenario::MidStreamError => Reply::events(self.overloaded()),
            Scenario::Truncated => {
                let mut pieces = self.begun().pieces;
                pieces.push("event: response.output_text.delta\ndata: {\"ty".to_owned());
                Reply::events(pieces)
            }
            Scenario::RateLimited => refused(
                429,
                "too_many_requests",
                "rate_limit_exceeded",
                "Rate limit reached for gpt-5.1. Please try again in 6.5s.",
            )
            .with_header("retry-after", "7"),
            Scenario::ContextOverflow => refused(
                400,
                "invalid_request_error",
                "context_length_exceeded",
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            Scenario::BadKey => refused(
                401,
                "invalid_request_error",
                "invalid_api_key",
                "Incorrect API key provided: sk-secret. You can find your API key at https://platform.openai.com.",
            ),
            Scenario::Cancellation => Reply::events(self.begun().pieces).then_silence(),
            Scenario::MalformedBody => Reply::ok("text/html", vec!["<html></html>".to_owned()]),
            Scenario::CachedTokens => {
                let mut wire = Wire::new(self.0);
                wire.item(0, &items[0]);
                Reply::events(wire.end("completed", &items, &usage(20, 12, 5, 0)))
            }
        }
    }

    fn check(&self, scenario: Scenario, n: usize, seen: &Seen) {
        let body = &seen.body;
        assert_eq!(seen.path, "/responses");
        assert_eq!(seen.headers["authorization"], "Bearer sk-secret");
        assert_eq!(seen.headers["content-type"], "application/json");
        assert_eq!(
            (&body["model"], &body["stream"]),
            (&json!("gpt-5.1"), &json!(true))
        );
        assert_eq!(body["store"], false);
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(
            body.as_object().unwrap().keys().next_back().unwrap(),
            "input"
        );
        let input = body["input"].as_array().unwrap();
        let user = |said: &str| json!({"type": "message", "role": "user", "content": said});
        let result = |id: &str, text: &str| {
            let mut item = json!({"type": "function_call_output", "call_id": id, "output": text});
            if self.0 == Host::OpenRouter {
                item["id"] = json!(format!("fco_{id}"));
            }
            item
        };
        match scenario {
            Scenario::Conversation => self.check_conversation(n, body),
            Scenario::ParallelTools
            | Scenario::ToolError
            | Scenario::CutCall
            | Scenario::ReasoningRoundTrip => {
                self.check_tools(body);
                let mut expected = output(scenario, 0);
                expected.extend(match scenario {
                    Scenario::ParallelTools => vec![result("call_a1", "3"), result("call_a2", "x")],
                    Scenario::ToolError => vec![result("call_a1", "out of order")],
                    Scenario::CutCall => vec![result("call_a1", "cut off")],
                    _ => vec![result("call_a1", "3")],
                });
                // The provider's items go back exactly, and the results follow them.
                let sent = if n == 0 { &[] } else { &expected[..] };
                assert_eq!(&input[1..], sent);
            }
            Scenario::Image => {
                let url = format!("data:image/png;base64,{PNG}");
                let image = json!({"type": "input_image", "image_url": url, "detail": "auto"});
                assert_eq!(input[0]["content"][1], image);
            }
            Scenario::Document => {
                let data = format!("data:application/pdf;base64,{PDF}");
                let file =
                    json!({"type": "input_file", "filename": "notes.pdf", "file_data": data});
                assert_eq!(input[0]["content"][1], file);
            }
            Scenario::StructuredOutput => {
                let format = json!({"type": "json_schema", "name": "json_response",
                    "schema": structure(), "strict": true});
                assert_eq!(body["text"], json!({"format": format}));
            }
            _ => assert_eq!(input[..], [user("hi")]),
        }
    }
}

impl Vendored {
    fn check_tools(&self, body: &Value) {
        let mut tool = json!({
            "type": "function", "name": "echo", "description": "Says it again.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}},
                "required": ["text"], "additionalProperties": false},
            "strict": false,
        });
        if self.0 == Host::Xai {
            tool.as_object_mut().unwrap().remove("strict");
        }
        assert_eq!(body["tools"][1], tool);
        assert!(body.get("tool_choice").is_none());
    }

    fn check_conversation(&self, n: usize, body: &Value) {
        self.check_tools(body);
        let mut expected = Vec::new();
        if self.0 == Host::Xai {
            expected.push(json!({"type": "message", "role": "system", "content": "Count."}));
            assert!(body.get("instructions").is_none());
        } else {
            assert_eq!(body["instructions"], "Count.");
        }
        let user = |said: &str| json!({"type": "message", "role": "user", "content": said});
        expected.push(user("count"));
        for earlier in 0..n {
            expected.extend(output(Scenario::Conversation, earlier));
            expected.push(user("go on"));
        }
        assert_eq!(body["input"], Value::from(expected));
    }
}
