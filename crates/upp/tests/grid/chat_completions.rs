//! Chat Completions and the providers that speak it.

mod bytes;

use crate::scenarios::{PDF, PNG, structure};
use crate::vendor::{Reply, Scenario, Seen, Vendor};
use loomline_upp::{ChatCompletions, Dialect, Model, Provider, ProviderConfig};
use serde_json::{Value, json};
use std::sync::Arc;

/// A provider that speaks the format.
struct Chat(Dialect);

/// The field in which the provider shows its reasoning, and takes it back.
fn reasoning_field(dialect: &Dialect) -> Option<&'static str> {
    match &*dialect.provider {
        "openrouter" => Some("reasoning_details"),
        "groq" | "cerebras" => Some("reasoning"),
        "moonshot" => Some("reasoning_content"),
        _ => None,
    }
}

fn details() -> Value {
    json!([{"type": "reasoning.text", "text": "let me think", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
           {"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "r1", "index": 1}])
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion.chunk", "created": 1_741_569_952,
        "model": "m-1-2026-08-01", "service_tier": "default", "system_fingerprint": "fp_44709d6fcb", "obfuscation": "x7",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]})
}

fn usage(input: u64, output: u64, cached: u64) -> Value {
    json!({"id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion.chunk", "created": 1_741_569_952,
        "model": "m-1-2026-08-01", "choices": [],
        "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "accepted_prediction_tokens": 0}}})
}

fn stream(chunks: &[Value]) -> Reply {
    let mut pieces: Vec<String> = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    pieces.insert(0, ": OPENROUTER PROCESSING\n\n".to_owned());
    pieces.push("data: [DONE]\n\n".to_owned());
    Reply::events(pieces)
}

fn text(pieces: &[&str], finish: &str, used: &Value) -> Reply {
    let mut chunks = vec![chunk(
        &json!({"role": "assistant", "content": "", "refusal": null}),
        None,
    )];
    chunks.extend(
        pieces
            .iter()
            .map(|piece| chunk(&json!({"content": piece}), None)),
    );
    chunks.push(chunk(&json!({}), Some(finish)));
    chunks.push(used.clone());
    stream(&chunks)
}

fn call(index: u32, id: &str, name: &str, arguments: &[&str]) -> Vec<Value> {
    let first = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
    let mut chunks = vec![chunk(
        &json!({"role": "assistant", "content": null, "tool_calls": [first]}),
        None,
    )];
    for piece in arguments {
        let more = json!({"index": index, "function": {"arguments": piece}});
        chunks.push(chunk(&json!({"tool_calls": [more]}), None));
    }
    chunks
}

fn add() -> Vec<Value> {
    call(0, "calladd01", "add", &["{\"a\": 1", ",\"b\":2}"])
}

fn calls(chunks: Vec<Value>) -> Reply {
    let mut chunks = chunks;
    chunks.push(chunk(&json!({}), Some("tool_calls")));
    chunks.push(usage(30, 9, 0));
    stream(&chunks)
}

fn error(message: &str, kind: &str, code: impl Into<Value>) -> Value {
    let code = code.into();
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

impl Vendor for Chat {
    fn model(&self, url: &str) -> Arc<dyn Model> {
        let config = ProviderConfig::default()
            .with_base_url(format!("{url}/v1"))
            .with_api_key("sk-secret".to_owned().into());
        Arc::new(Provider::new(ChatCompletions::new(self.0.clone(), "m-1"), config).unwrap())
    }

    fn skip(&self, scenario: Scenario) -> Option<&'static str> {
        match scenario {
            Scenario::Document if !self.0.capabilities.document_input => {
                Some("the provider takes no documents; the model says so in its capabilities")
            }
            Scenario::Image if !self.0.capabilities.image_input => {
                Some("the provider takes no images; the model says so in its capabilities")
            }
            Scenario::ReasoningRoundTrip if reasoning_field(&self.0).is_none() => {
                Some("the provider takes no reasoning back")
            }
            _ => None,
        }
    }

    fn reply(&self, scenario: Scenario, n: usize) -> Reply {
        let used = usage(11, 7, 0);
        match (scenario, n) {
            (Scenario::Text, _) => text(&["Hello", ", ", "world"], "stop", &used),
            (Scenario::Conversation, n) => text(&[["one", "two", "three"][n]], "stop", &used),
            (Scenario::ParallelTools, 0) => {
                let mut chunks = add();
                chunks.extend(call(1, "callecho1", "echo", &["{\"text\":", "\"x\"}"]));
                calls(chunks)
            }
            (Scenario::ParallelTools, _) => text(&["3 ", "and x"], "stop", &used),
            (Scenario::ToolError, 0) => calls(add()),
            (Scenario::CutCall, 0) => {
                let mut chunks = call(0, "calladd01", "add", &[]);
                chunks.push(chunk(&json!({}), Some("length")));
                chunks.push(used);
                stream(&chunks)
            }
            (Scenario::ToolError | Scenario::CutCall, _) => text(&["sorry"], "stop", &used),
            (Scenario::Image | Scenario::Document, _) => text(&["a dot"], "stop", &used),
            (Scenario::ReasoningRoundTrip, 0) => self.reasoning(),
            (Scenario::ReasoningRoundTrip, _) => text(&["3"], "stop", &used),
            (Scenario::StructuredOutput, _) => {
                text(&["{\"city\":\"Os", "lo\",\"degrees\":7}"], "stop", &used)
            }
            (Scenario::StopMaxTokens, _) => text(&["Hel"], "length", &used),
            (Scenario::StopContentFilter, _) => text(&[], "content_filter", &used),
            (Scenario::MidStreamError, _) => stream(&[
                chunk(&json!({"content": "Hel"}), None),
                error("The server is overloaded", "server_error", Value::Null),
            ]),
            (Scenario::Truncated, _) => Reply::events(vec![format!(
                "data: {}\n\ndata: {{\"id\":\"ch",
                chunk(&json!({"content": "Hel"}), None)
            )]),
            (Scenario::RateLimited, _) => Reply::refusal(
                429,
                &error("Rate limit reached", "requests", "rate_limit_exceeded"),
            )
            .with_header("retry-after", "7"),
            (Scenario::ContextOverflow, _) => Reply::refusal(
                400,
                &error(
                    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens.",
                    "invalid_request_error",
                    "context_length_exceeded",
                ),
            ),
            (Scenario::BadKey, _) => Reply::refusal(
                401,
                &error(
                    "Incorrect API key provided: sk-secret.",
                    "invalid_request_error",
                    "invalid_api_key",
                ),
            ),
            (Scenario::Cancellation, _) => Reply::events(vec![format!(
                "data: {}\n\n",
                chunk(&json!({"content": "Hel"}), None)
            )])
            .then_silence(),
            (Scenario::MalformedBody, _) => Reply::events(vec!["data: <html>\n\n".to_owned()]),
            (Scenario::CachedTokens, _) => text(&["ok"], "stop", &usage(20, 5, 12)),
        }
    }

    fn check(&self, scenario: Scenario, n: usize, seen: &Seen) {
        let body = &seen.body;
        assert_eq!(seen.path, "/v1/chat/completions");
        assert_eq!(seen.headers["authorization"], "Bearer sk-secret");
        assert_eq!(
            (&body["model"], &body["stream"]),
            (&json!("m-1"), &json!(true))
        );
        let options = self.0.asks_usage.then(|| json!({"include_usage": true}));
        assert_eq!(body.get("stream_options"), options.as_ref());
        let messages = body["messages"].as_array().unwrap();
        match (scenario, n) {
            (Scenario::Text, _) => {
                assert_eq!(messages, &[json!({"role": "user", "content": "hi"})]);
            }
            (Scenario::ParallelTools, 1) => {
                let calls = messages[1]["tool_calls"].as_array().unwrap();
                assert_eq!(
                    calls[0],
                    json!({"id": "calladd01", "type": "function",
                    "function": {"name": "add", "arguments": "{\"a\": 1,\"b\":2}"}})
                );
                assert_eq!(messages[1]["content"], Value::Null);
                assert_eq!(
                    messages[2],
                    json!({"role": "tool", "tool_call_id": "calladd01", "content": "3"})
                );
                assert_eq!(
                    messages[3],
                    json!({"role": "tool", "tool_call_id": "callecho1", "content": "x"})
                );
                assert_eq!(body["tools"][0]["function"]["name"], "add");
            }
            (Scenario::CutCall, 1) => {
                let function = &messages[1]["tool_calls"][0]["function"];
                assert_eq!(*function, json!({"name": "add", "arguments": "{}"}));
            }
            (Scenario::ToolError, 1) => {
                assert_eq!(messages[2]["content"], "out of order");
            }
            (Scenario::Image, _) => {
                let url = format!("data:image/png;base64,{PNG}");
                assert_eq!(
                    messages[0]["content"][1],
                    json!({"type": "image_url", "image_url": {"url": url}})
                );
            }
            (Scenario::Document, _) => {
                let data = format!("data:application/pdf;base64,{PDF}");
                assert_eq!(
                    messages[0]["content"][1],
                    json!({"type": "file", "file": {"filename": "notes.pdf", "file_data": data}})
                );
            }
            (Scenario::ReasoningRoundTrip, 1) => match reasoning_field(&self.0) {
                Some(field @ "reasoning_details") => assert_eq!(messages[1][field], details()),
                Some(field) => assert_eq!(messages[1][field], "let me think"),
                None => panic!("skipped"),
            },
            (Scenario::StructuredOutput, _) => {
                let format = &body["response_format"];
                assert_eq!(format["type"], "json_schema");
                assert_eq!(format["json_schema"]["schema"], structure());
            }
            _ => {}
        }
    }
}

impl Chat {
    fn reasoning(&self) -> Reply {
        let mut chunks: Vec<Value> = match reasoning_field(&self.0) {
            Some("reasoning_details") => {
                let text = |text: &str| json!([{"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}]);
                vec![
                    json!({"reasoning": "let me ", "reasoning_details": [
                        {"type": "reasoning.text", "text": "let me ", "signature": null, "format": "anthropic-claude-v1", "index": 0}]}),
                    json!({"reasoning": "think", "reasoning_details": text("think")}),
                    json!({"reasoning_details": [{"type": "reasoning.text", "signature": "c2ln", "index": 0}]}),
                    json!({"reasoning_details": [details()[1]]}),
                ]
            }
            Some(field) => vec![json!({field: "let me "}), json!({field: "think"})],
            None => Vec::new(),
        }
        .iter()
        .map(|delta| chunk(delta, None))
        .collect();
        chunks.extend(add());
        calls(chunks)
    }
}

mod openai {
    use super::{Chat, Dialect};
    crate::vendor!(Chat(Dialect::openai()));
}

mod openrouter {
    use super::{Chat, Dialect};
    crate::vendor!(Chat(Dialect::openrouter()));
}

mod xai {
    use super::{Chat, Dialect};
    crate::vendor!(Chat(Dialect::xai()));
}

mod groq {
    use super::{Chat, Dialect};
    crate::vendor!(Chat(Dialect::groq()));
}

mod cerebras {
    use super::{Chat, Dialect};
    crate::vendor!(Chat(Dialect::cerebras()));
}

mod moonshot {
    use super::{Chat, Dialect};
    crate::vendor!(Chat(Dialect::moonshot()));
}

mod mistral {
    use super::{Chat, Dialect};
    crate::vendor!(Chat(Dialect::mistral()));
}

/// Reasoning in the provider's form, text with more than ASCII and a call.
fn rich(dialect: Dialect) -> String {
    let said = |text: &str| format!("data: {}\n\n", chunk(&json!({"content": text}), None));
    let mut pieces = vec![said("Grü"), said("ße 🌍\r\n")];
    pieces.extend(Chat(dialect).reasoning().pieces);
    pieces.concat()
}

#[test]
fn any_chunking_gives_the_same_answer() {
    for dialect in [Dialect::openai(), Dialect::openrouter()] {
        let codec = ChatCompletions::new(dialect.clone(), "m-1");
        crate::chunks::any_cut_is_the_same(&codec, &rich(dialect));
    }
}
