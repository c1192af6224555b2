//! Ollama.

use crate::scenarios::{PNG, structure};
use crate::vendor::{Reply, Scenario, Seen, Vendor};
use loomline_upp::{Model, Ollama, Provider, ProviderConfig};
use serde_json::{Value, json};
use std::sync::Arc;

struct OllamaServer;

fn line(message: &Value) -> String {
    let line = json!({"model": "m-1", "created_at": "2026-08-04T19:22:45.499127Z", "message": message, "done": false});
    format!("{line}\n")
}

fn last(reason: &str) -> String {
    let line = json!({"model": "m-1", "created_at": "2026-08-04T19:22:46.1Z", "message": {"role": "assistant", "content": ""},
        "done": true, "done_reason": reason, "total_duration": 8_113_331_500_u64, "load_duration": 6_396_458,
        "prompt_eval_count": 11, "prompt_eval_duration": 61_987_000, "eval_count": 7, "eval_duration": 468_299_000});
    format!("{line}\n")
}

fn lines(pieces: Vec<String>) -> Reply {
    Reply::ok("application/x-ndjson", pieces)
}

fn text(pieces: &[&str], reason: &str) -> Reply {
    let said = |piece: &&str| line(&json!({"role": "assistant", "content": piece}));
    lines(pieces.iter().map(said).chain([last(reason)]).collect())
}

fn call(name: &str, arguments: &Value) -> String {
    let call = json!({"id": format!("call_{name}"), "function": {"index": 0, "name": name, "arguments": arguments}});
    line(&json!({"role": "assistant", "content": "", "tool_calls": [call]}))
}

fn add() -> String {
    call("add", &json!({"a": 1, "b": 2}))
}

impl Vendor for OllamaServer {
    fn model(&self, url: &str) -> Arc<dyn Model> {
        let config = ProviderConfig::default()
            .with_base_url(url)
            .with_api_key("sk-secret".to_owned().into());
        Arc::new(Provider::new(Ollama::new("m-1"), config).unwrap())
    }

    fn skip(&self, scenario: Scenario) -> Option<&'static str> {
        match scenario {
            Scenario::Document => Some("Ollama takes no documents"),
            Scenario::StopContentFilter => Some("Ollama has no content policy"),
            Scenario::CachedTokens => Some("Ollama does not count cached tokens"),
            _ => None,
        }
    }

    fn reply(&self, scenario: Scenario, n: usize) -> Reply {
        match (scenario, n) {
            (Scenario::Text, _) => text(&["Hello", ", ", "world"], "stop"),
            (Scenario::Conversation, n) => text(&[["one", "two", "three"][n]], "stop"),
            (Scenario::ParallelTools, 0) => lines(vec![
                add(),
                call("echo", &json!({"text": "x"})),
                last("stop"),
            ]),
            (Scenario::ParallelTools, _) => text(&["3 ", "and x"], "stop"),
            (Scenario::ToolError, 0) => lines(vec![add(), last("stop")]),
            (Scenario::CutCall, 0) => lines(vec![call("add", &json!({})), last("length")]),
            (Scenario::ToolError | Scenario::CutCall, _) => text(&["sorry"], "stop"),
            (Scenario::Image, _) => text(&["a dot"], "stop"),
            (Scenario::ReasoningRoundTrip, 0) => lines(vec![
                line(&json!({"role": "assistant", "content": "", "thinking": "let me "})),
                line(&json!({"role": "assistant", "content": "", "thinking": "think"})),
                add(),
                last("stop"),
            ]),
            (Scenario::ReasoningRoundTrip, _) => text(&["3"], "stop"),
            (Scenario::StructuredOutput, _) => {
                text(&["{\"city\":\"Os", "lo\",\"degrees\":7}"], "stop")
            }
            (Scenario::StopMaxTokens, _) => text(&["Hel"], "length"),
            (Scenario::MidStreamError, _) => lines(vec![
                line(&json!({"role": "assistant", "content": "Hel"})),
                "{\"error\":\"an error was encountered while running the model\"}\n".to_owned(),
            ]),
            (Scenario::Truncated, _) => lines(vec![
                line(&json!({"role": "assistant", "content": "Hel"})),
                "{\"model\":\"m-1\",\"mess".to_owned(),
            ]),
            (Scenario::RateLimited, _) => {
                Reply::refusal(429, &json!({"error": "too many requests"}))
                    .with_header("retry-after", "7")
            }
            (Scenario::ContextOverflow, _) => Reply::refusal(
                400,
                &json!({"error": "the input length exceeds the context length"}),
            ),
            (Scenario::BadKey, _) => Reply::refusal(
                401,
                &json!({"error": "unauthorized: the key sk-secret is unknown"}),
            ),
            (Scenario::Cancellation, _) => {
                lines(vec![line(&json!({"role": "assistant", "content": "Hel"}))]).then_silence()
            }
            (Scenario::MalformedBody, _) => lines(vec!["<html>\n".to_owned()]),
            (Scenario::Document | Scenario::StopContentFilter | Scenario::CachedTokens, _) => {
                panic!("skipped")
            }
        }
    }

    fn check(&self, scenario: Scenario, n: usize, seen: &Seen) {
        let body = &seen.body;
        assert_eq!(seen.path, "/api/chat");
        assert_eq!(seen.headers["authorization"], "Bearer sk-secret");
        assert_eq!(
            (&body["model"], &body["stream"]),
            (&json!("m-1"), &json!(true))
        );
        let messages = body["messages"].as_array().unwrap();
        match (scenario, n) {
            (Scenario::ParallelTools, 1) => {
                let call = &messages[1]["tool_calls"][0]["function"];
                assert_eq!(*call, json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
                assert_eq!(
                    (&messages[2]["tool_name"], &messages[2]["content"]),
                    (&json!("add"), &json!("3"))
                );
                assert_eq!(
                    (&messages[3]["tool_name"], &messages[3]["content"]),
                    (&json!("echo"), &json!("x"))
                );
            }
            (Scenario::ToolError, 1) => assert_eq!(messages[2]["content"], "out of order"),
            (Scenario::Image, _) => {
                assert_eq!(
                    messages[0],
                    json!({"role": "user", "content": "What is this?", "images": [PNG]})
                );
            }
            (Scenario::ReasoningRoundTrip, 1) => {
                assert_eq!(messages[1]["thinking"], "let me think");
            }
            (Scenario::StructuredOutput, _) => assert_eq!(body["format"], structure()),
            _ => {}
        }
    }
}

crate::vendor!(OllamaServer);

#[test]
fn any_chunking_gives_the_same_answer() {
    let pieces = [
        line(&json!({"role": "assistant", "content": "", "thinking": "hm, Grüße 🌍"})),
        line(&json!({"role": "assistant", "content": "Grü"})),
        line(&json!({"role": "assistant", "content": "ße 🌍\r\n"})),
        add(),
        last("stop"),
    ];
    crate::chunks::any_cut_is_the_same(&Ollama::new("m-1"), &pieces.concat());
}
