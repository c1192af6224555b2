//! The Messages format in the grid: Anthropic, and a host that speaks it with fewer fields.

mod fixtures;

use crate::scenarios::{PDF, PNG, structure};
use crate::vendor::{Reply, Scenario, Seen, Vendor};
use fixtures::{Stream, call, refusal, text, thinking};
use loomline_upp::{Anthropic, Model, Provider, ProviderConfig};
use serde_json::{Value, json};
use std::sync::Arc;

/// Who speaks the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Anthropic,
    /// Deltas without index, no signatures of caches, structures as a tool, no documents.
    Compatible,
}

const MODEL: &str = "claude-sonnet-4-5";
const SIGNATURE: &str = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=";

impl Host {
    fn codec(self) -> Anthropic {
        match self {
            Self::Anthropic => {
                Anthropic::new(MODEL).with_betas(["interleaved-thinking-2025-05-14"])
            }
            Self::Compatible => Anthropic::compatible("xai", "https://api.x.ai/v1", MODEL),
        }
    }

    fn stream(self) -> Stream {
        match self {
            Self::Anthropic => Stream::new(MODEL),
            Self::Compatible => Stream::new(MODEL).without_index(),
        }
    }

    fn said(self, words: &[&str]) -> Reply {
        Reply::events(self.stream().block(text(words)).end("end_turn"))
    }
}

fn add(id: &str) -> fixtures::Block {
    call(id, "add", &["", "{\"a\": 1,", "\"b\":2}"])
}

impl Vendor for Host {
    fn model(&self, url: &str) -> Arc<dyn Model> {
        let codec = self.codec().with_default_max_tokens(1024);
        let config = ProviderConfig::default()
            .with_api_key("sk-secret".to_owned().into())
            .with_base_url(format!("{url}/v1"));
        Arc::new(Provider::new(codec, config).unwrap())
    }

    fn skip(&self, scenario: Scenario) -> Option<&'static str> {
        let compatible = *self == Self::Compatible;
        (compatible && scenario == Scenario::Document).then_some("the host takes no documents")
    }

    fn reply(&self, scenario: Scenario, n: usize) -> Reply {
        match (scenario, n) {
            (Scenario::Text | Scenario::Image | Scenario::Document, _) => {
                self.said(&["Hel", "lo, ", "world"])
            }
            (Scenario::Conversation, n) => self.said(&[["one", "two", "three"][n]]),
            (Scenario::ParallelTools, 0) => Reply::events(
                self.stream()
                    .block(text(&["Both ", "at once."]))
                    .block(add("toolu_01A09q90qw90lq917835lq9"))
                    .block(call("toolu_01B", "echo", &["", "{\"text\":", " \"x\"}"]))
                    .end("tool_use"),
            ),
            (Scenario::ParallelTools, _) => self.said(&["3 and x"]),
            (Scenario::ToolError, 0) => {
                Reply::events(self.stream().block(add("toolu_01A")).end("tool_use"))
            }
            (Scenario::CutCall, 0) => Reply::events(
                self.stream()
                    .block(call("toolu_01A", "add", &[""]))
                    .end("max_tokens"),
            ),
            (Scenario::ToolError | Scenario::CutCall, _) => self.said(&["sorry"]),
            (Scenario::ReasoningRoundTrip, 0) => Reply::events(
                self.stream()
                    .block(thinking(&["let me ", "think"], SIGNATURE))
                    .block(add("toolu_01A"))
                    .end("tool_use"),
            ),
            (Scenario::ReasoningRoundTrip, _) => self.said(&["3"]),
            (Scenario::StructuredOutput, _) => {
                let pieces = ["{\"city\":", "\"Oslo\",\"degrees", "\":7}"];
                match self {
                    Self::Anthropic => self.said(&pieces),
                    Self::Compatible => Reply::events(
                        self.stream()
                            .block(call("toolu_01A", "json_response", &pieces))
                            .end("tool_use"),
                    ),
                }
            }
            (Scenario::StopMaxTokens, _) => {
                Reply::events(self.stream().block(text(&["Hel"])).end("max_tokens"))
            }
            (Scenario::StopContentFilter, _) => {
                Reply::events(self.stream().block(text(&["Hel"])).end("refusal"))
            }
            (Scenario::MidStreamError, _) => {
                let mut pieces = self.stream().unfinished(text(&["Hel"]));
                pieces.push(fixtures::error("overloaded_error", "Overloaded"));
                Reply::events(pieces)
            }
            (Scenario::Truncated, _) => Reply::events(self.stream().unfinished(text(&["Hel"]))),
            (Scenario::Cancellation, _) => {
                Reply::events(self.stream().unfinished(text(&["Hel"]))).then_silence()
            }
            (Scenario::RateLimited, _) => {
                let text = "This request would exceed your organization's rate limit of 50 requests per minute";
                Reply::refusal(429, &refusal("rate_limit_error", text))
                    .with_header("retry-after", "7")
                    .with_header("anthropic-ratelimit-requests-remaining", "0")
            }
            (Scenario::ContextOverflow, _) => {
                let text = "prompt is too long: 205488 tokens > 200000 maximum";
                Reply::refusal(400, &refusal("invalid_request_error", text))
            }
            (Scenario::BadKey, _) => {
                let text = "invalid x-api-key: sk-secret";
                Reply::refusal(401, &refusal("authentication_error", text))
            }
            (Scenario::MalformedBody, _) => Reply::ok(
                "text/html",
                vec!["<html><body>It works!</body></html>".into()],
            ),
            (Scenario::CachedTokens, _) => {
                let stream = self.stream().usage(&json!({
                    "input_tokens": 5, "cache_read_input_tokens": 12,
                    "cache_creation_input_tokens": 3,
                    "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0},
                }));
                Reply::events(
                    stream
                        .output_tokens(5)
                        .block(text(&["Hello"]))
                        .end("end_turn"),
                )
            }
        }
    }

    fn check(&self, scenario: Scenario, n: usize, seen: &Seen) {
        assert_eq!(seen.path, "/v1/messages");
        assert_eq!(seen.headers["x-api-key"], "sk-secret");
        assert!(!seen.headers.contains_key("authorization"));
        assert_eq!(seen.headers["anthropic-version"], "2023-06-01");
        let betas = seen.headers.get("anthropic-beta");
        match self {
            Self::Anthropic => assert_eq!(betas.unwrap(), "interleaved-thinking-2025-05-14"),
            Self::Compatible => assert!(betas.is_none()),
        }
        let body = &seen.body;
        assert_eq!(body["model"], MODEL);
        assert_eq!(
            (&body["max_tokens"], &body["stream"]),
            (&json!(1024), &json!(true))
        );
        let messages = body["messages"].as_array().unwrap();
        match (scenario, n) {
            (Scenario::Conversation, n) => {
                assert_eq!(body["system"], "Count.");
                let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
                let expected = ["user", "assistant", "user", "assistant", "user"];
                assert_eq!(roles, expected[..=2 * n]);
            }
            (Scenario::ParallelTools, 0) => {
                assert_eq!(body["tools"][0]["name"], "add");
                assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
                assert_eq!(
                    messages[0],
                    json!({"role": "user", "content": [{"type": "text", "text": "do both"}]})
                );
            }
            (Scenario::ParallelTools, _) => assert_eq!(
                messages[1..],
                [
                    json!({"role": "assistant", "content": [
                        {"type": "text", "text": "Both at once."},
                        {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "add", "input": {"a": 1, "b": 2}},
                        {"type": "tool_use", "id": "toolu_01B", "name": "echo", "input": {"text": "x"}},
                    ]}),
                    json!({"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "toolu_01A09q90qw90lq917835lq9", "content": "3"},
                        {"type": "tool_result", "tool_use_id": "toolu_01B", "content": "x"},
                    ]}),
                ]
            ),
            (Scenario::ToolError, 1) => assert_eq!(
                messages[2]["content"],
                json!([
                    {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "out of order", "is_error": true},
                ])
            ),
            (Scenario::Image, _) => assert_eq!(
                messages[0]["content"][1],
                json!(
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
                )
            ),
            (Scenario::Document, _) => assert_eq!(
                messages[0]["content"][1],
                json!({
                    "type": "document", "title": "notes.pdf",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                })
            ),
            (Scenario::ReasoningRoundTrip, 1) => assert_eq!(
                messages[1]["content"],
                json!([
                    {"type": "thinking", "thinking": "let me think", "signature": SIGNATURE},
                    {"type": "tool_use", "id": "toolu_01A", "name": "add", "input": {"a": 1, "b": 2}},
                ])
            ),
            (Scenario::StructuredOutput, _) if *self == Self::Anthropic => {
                let format = json!({"type": "json_schema", "schema": structure()});
                assert_eq!(body["output_config"], json!({"format": format}));
                assert!(body.get("tools").is_none());
            }
            (Scenario::StructuredOutput, _) => {
                assert_eq!(body["tools"][0]["input_schema"], structure());
                assert_eq!(
                    body["tool_choice"],
                    json!({"type": "tool", "name": "json_response"})
                );
            }
            _ => assert_eq!(messages[0]["role"], "user"),
        }
    }
}

crate::vendor!(Host::Anthropic);

mod compatible {
    use super::Host;

    crate::vendor!(Host::Compatible);
}

#[test]
fn any_chunking_gives_the_same_answer() {
    let pieces = Host::Anthropic
        .stream()
        .block(thinking(&["hm, ", "Grüße 🌍"], SIGNATURE))
        .block(fixtures::whole(
            json!({"type": "redacted_thinking", "data": "EmwKAhgB"}),
        ))
        .block(text(&["Grü", "ße 🌍\r\n"]))
        .block(call("toolu_01A", "add", &["", "{\"a\": \"日", "\"}"]))
        .end("tool_use");
    let codec = Host::Anthropic.codec();
    crate::chunks::any_cut_is_the_same(&codec, &pieces.concat());
}
