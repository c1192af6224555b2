//! Gemini.

use crate::scenarios::{PDF, PNG, structure};
use crate::vendor::{Reply, Scenario, Seen, Vendor};
use loomline_upp::{Gemini, Model, Provider, ProviderConfig};
use serde_json::{Value, json};
use std::sync::Arc;

struct Google;

fn chunk(parts: &Value, finish: Option<&str>, usage: &Value) -> String {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    let chunk = json!({"candidates": [candidate], "usageMetadata": usage,
        "modelVersion": "m-1-preview-08-2026", "responseId": "vYh2aP7xK5"});
    format!("data: {chunk}\r\n\r\n")
}

fn usage() -> Value {
    json!({"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}]})
}

fn text(pieces: &[&str], finish: &str) -> Reply {
    let n = pieces.len();
    let chunks = pieces.iter().enumerate().map(|(at, piece)| {
        chunk(
            &json!([{ "text": piece }]),
            (at + 1 == n).then_some(finish),
            &usage(),
        )
    });
    Reply::events(chunks.collect())
}

fn add() -> Value {
    json!({"functionCall": {"id": "fc_add", "name": "add", "args": {"a": 1, "b": 2}}, "thoughtSignature": "c2ln"})
}

fn calls(parts: &Value) -> Reply {
    Reply::events(vec![
        chunk(parts, None, &usage()),
        chunk(&json!([]), Some("STOP"), &usage()),
    ])
}

fn refusal(code: u16, status: &str, message: &str, details: &Value) -> Reply {
    let error = json!({"code": code, "message": message, "status": status, "details": details});
    Reply::refusal(code, &json!([{ "error": error }]))
}

impl Vendor for Google {
    fn model(&self, url: &str) -> Arc<dyn Model> {
        let config = ProviderConfig::default()
            .with_base_url(format!("{url}/v1beta"))
            .with_api_key("sk-secret".to_owned().into());
        Arc::new(Provider::new(Gemini::new("m-1"), config).unwrap())
    }

    fn reply(&self, scenario: Scenario, n: usize) -> Reply {
        match (scenario, n) {
            (Scenario::Text, _) => text(&["Hello", ", ", "world"], "STOP"),
            (Scenario::Conversation, n) => text(&[["one", "two", "three"][n]], "STOP"),
            (Scenario::ParallelTools, 0) => calls(&json!([
                add(),
                {"functionCall": {"name": "echo", "args": {"text": "x"}}},
            ])),
            (Scenario::ParallelTools, _) => text(&["3 ", "and x"], "STOP"),
            (Scenario::ToolError, 0) => calls(&json!([add()])),
            (Scenario::CutCall, 0) => {
                let cut = json!([{"functionCall": {"id": "fc_add", "name": "add"}}]);
                Reply::events(vec![chunk(&cut, Some("MAX_TOKENS"), &usage())])
            }
            (Scenario::ToolError | Scenario::CutCall, _) => text(&["sorry"], "STOP"),
            (Scenario::Image | Scenario::Document, _) => text(&["a dot"], "STOP"),
            (Scenario::ReasoningRoundTrip, 0) => Reply::events(vec![
                chunk(
                    &json!([{"text": "let me ", "thought": true}]),
                    None,
                    &usage(),
                ),
                chunk(&json!([{"text": "think", "thought": true}]), None, &usage()),
                chunk(&json!([add()]), None, &usage()),
                chunk(
                    &json!([{"text": "", "thoughtSignature": "ZW5k"}]),
                    Some("STOP"),
                    &usage(),
                ),
            ]),
            (Scenario::ReasoningRoundTrip, _) => text(&["3"], "STOP"),
            (Scenario::StructuredOutput, _) => {
                text(&["{\"city\":\"Os", "lo\",\"degrees\":7}"], "STOP")
            }
            (Scenario::StopMaxTokens, _) => text(&["Hel"], "MAX_TOKENS"),
            (Scenario::StopContentFilter, _) => text(&["Hel"], "SAFETY"),
            (Scenario::MidStreamError, _) => {
                let error = json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}});
                Reply::events(vec![
                    chunk(&json!([{"text": "Hel"}]), None, &usage()),
                    format!("data: {error}\r\n\r\n"),
                ])
            }
            (Scenario::Truncated, _) => Reply::events(vec![
                chunk(&json!([{"text": "Hel"}]), None, &usage()),
                "data: {\"candidates\": [{\"cont".to_owned(),
            ]),
            (Scenario::RateLimited, _) => refusal(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota.",
                &json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]),
            ),
            (Scenario::ContextOverflow, _) => refusal(
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                &json!([]),
            ),
            (Scenario::BadKey, _) => refusal(
                400,
                "INVALID_ARGUMENT",
                "API key not valid: sk-secret. Please pass a valid API key.",
                &json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]),
            ),
            (Scenario::Cancellation, _) => {
                Reply::events(vec![chunk(&json!([{"text": "Hel"}]), None, &usage())]).then_silence()
            }
            (Scenario::MalformedBody, _) => Reply::events(vec!["data: <html>\r\n\r\n".to_owned()]),
            (Scenario::CachedTokens, _) => {
                let used = json!({"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25, "cachedContentTokenCount": 12});
                Reply::events(vec![chunk(&json!([{"text": "ok"}]), Some("STOP"), &used)])
            }
        }
    }

    fn check(&self, scenario: Scenario, n: usize, seen: &Seen) {
        let body = &seen.body;
        assert_eq!(
            seen.path,
            "/v1beta/models/m-1:streamGenerateContent?alt=sse"
        );
        assert_eq!(seen.headers["x-goog-api-key"], "sk-secret");
        let contents = body["contents"].as_array().unwrap();
        match (scenario, n) {
            (Scenario::Text, _) => assert_eq!(
                contents,
                &[json!({"role": "user", "parts": [{"text": "hi"}]})]
            ),
            (Scenario::ParallelTools, 1) => {
                assert_eq!(contents[1]["parts"][0], add());
                assert_eq!(
                    contents[1]["parts"][1],
                    json!({"functionCall": {"name": "echo", "args": {"text": "x"}}})
                );
                assert_eq!(
                    contents[2]["parts"],
                    json!([
                        {"functionResponse": {"id": "fc_add", "name": "add", "response": {"result": 3}}},
                        {"functionResponse": {"name": "echo", "response": {"result": "x"}}},
                    ])
                );
                assert_eq!(body["tools"][0]["functionDeclarations"][0]["name"], "add");
            }
            (Scenario::ToolError, 1) => {
                assert_eq!(
                    contents[2]["parts"][0]["functionResponse"]["response"],
                    json!({"error": "out of order"})
                );
            }
            (Scenario::Image, _) => {
                assert_eq!(
                    contents[0]["parts"][1],
                    json!({"inlineData": {"mimeType": "image/png", "data": PNG}})
                );
            }
            (Scenario::Document, _) => {
                assert_eq!(
                    contents[0]["parts"][1],
                    json!({"inlineData": {"mimeType": "application/pdf", "data": PDF}})
                );
            }
            (Scenario::ReasoningRoundTrip, 1) => {
                assert_eq!(
                    contents[1]["parts"],
                    json!([
                        {"text": "let me think", "thought": true}, add(), {"text": "", "thoughtSignature": "ZW5k"},
                    ])
                );
            }
            (Scenario::StructuredOutput, _) => {
                assert_eq!(body["generationConfig"]["responseJsonSchema"], structure());
                assert_eq!(
                    body["generationConfig"]["responseMimeType"],
                    "application/json"
                );
            }
            _ => {}
        }
    }
}

crate::vendor!(Google);

#[test]
fn any_chunking_gives_the_same_answer() {
    let pieces = [
        chunk(
            &json!([{"text": "hm, Grüße 🌍", "thought": true}]),
            None,
            &usage(),
        ),
        chunk(&json!([{"text": "Grü"}]), None, &usage()),
        chunk(&json!([{"text": "ße 🌍\r\n"}]), None, &usage()),
        chunk(&json!([add()]), None, &usage()),
        chunk(
            &json!([{"text": "", "thoughtSignature": "ZW5k"}]),
            Some("STOP"),
            &usage(),
        ),
    ];
    let stream = pieces.concat().replace("\r\n", "\n");
    crate::chunks::any_cut_is_the_same(&Gemini::new("m-1"), &stream);
    // Arguments in pieces, as Vertex AI sends them.
    let piece = |call: Value, finish| chunk(&json!([{ "functionCall": call }]), finish, &usage());
    let text = |text: &str| json!({"jsonPath": "$.x", "stringValue": text, "willContinue": true});
    let pieces = [
        piece(
            json!({"id": "fc_1", "name": "f", "willContinue": true}),
            None,
        ),
        piece(
            json!({"partialArgs": [text("Grü")], "willContinue": true}),
            None,
        ),
        piece(
            json!({"partialArgs": [text("ße 🌍")], "willContinue": true}),
            None,
        ),
        piece(json!({}), Some("STOP")),
    ];
    let stream = pieces.concat().replace("\r\n", "\n");
    crate::chunks::any_cut_is_the_same(&Gemini::new("m-1"), &stream);
}
