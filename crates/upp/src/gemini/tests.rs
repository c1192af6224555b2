mod partial;

use super::*;
use crate::codec::Decoder as _;
use crate::content::AssistantContent;
use crate::error::Code;
use crate::message::{Message, MessageOptions, ToolResultMessage};
use crate::model::{Response, StopReason, ToolChoice};
use crate::tool::{Arguments, Tool, ToolCall, ToolOutput, ToolResult};
use proptest::prelude::*;
use std::sync::Arc;

fn decode(chunks: &[Value]) -> Response {
    let mut decoder = Box::new(decode::Decoder::new("m", false));
    for chunk in chunks {
        decoder.push(&chunk.to_string()).unwrap();
    }
    decoder.finish().unwrap().1
}

fn said(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": "m-001", "responseId": "r"})
}

fn end() -> Value {
    json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]})
}

fn asked(message: impl Into<Message>) -> Request {
    Request {
        messages: [Message::from("hi"), message.into()].into_iter().collect(),
        ..Request::default()
    }
}

fn body(codec: &Gemini, request: &Request) -> Value {
    serde_json::from_str(&codec.encode(request).unwrap().body).unwrap()
}

/// What a model may say, one part of each kind.
fn everything() -> Value {
    json!([
        {"text": "first I think", "thought": true},
        {"text": "and sign", "thought": true, "thoughtSignature": "dGhpbms="},
        {"text": "Let me "},
        {"text": "look.", "thoughtSignature": "dGV4dA=="},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "aW1n"},
        {"functionCall": {"name": "f", "args": {"b": 1.5, "a": [null]}}, "thoughtSignature": "Y2FsbA=="},
        {"functionCall": {"id": "fc1", "name": "g", "args": {}, "later": true}},
        {"text": "", "thoughtSignature": "ZW1wdHk="},
        {"somethingNew": {"x": 1}},
    ])
}

#[test]
fn every_part_goes_back_to_its_model_as_it_came() {
    let response = decode(&[said(&everything()), end()]);
    // Through the store.
    let text = serde_json::to_string(&Message::from(response.message)).unwrap();
    let message: Message = serde_json::from_str(&text).unwrap();
    let body = body(&Gemini::new("m"), &asked(message));
    assert_eq!(
        body["contents"][1],
        json!({"role": "model", "parts": everything()})
    );
}

#[test]
fn plain_text_is_joined_and_signed_text_is_not() {
    let piece = |text: &str| said(&json!([{ "text": text }]));
    let signed = said(&json!([{"text": "c", "thoughtSignature": "s"}]));
    let response = decode(&[piece("a"), piece("b"), signed, piece("d"), end()]);
    let text = |text: &str| AssistantContent::Text { text: text.into() };
    let expected = ["ab", "c", "d"].map(text);
    assert_eq!(response.message.content, expected);
}

#[test]
fn another_model_sees_text_and_calls_and_the_rest_is_reported() {
    let response = decode(&[said(&everything()), end()]);
    let encoded = Gemini::new("other")
        .encode(&asked(response.message))
        .unwrap();
    let body: Value = serde_json::from_str(&encoded.body).unwrap();
    let parts = body["contents"][1]["parts"].to_string();
    assert!(parts.contains("Let me ") && parts.contains("functionCall"));
    for hidden in ["thought", "executableCode", "fc1", "somethingNew"] {
        assert!(!parts.contains(hidden), "{hidden} in {parts}");
    }
    let listed = |what: &str| encoded.omitted.iter().filter(|it| it.what == what).count();
    assert_eq!((listed("reasoning"), listed("provider_item")), (2, 4));
    assert_eq!(encoded.omitted.len(), 6);
}

#[test]
fn a_result_has_the_functions_name_and_googles_id_if_there_was_one() {
    let response = decode(&[said(&everything()), end()]);
    let result = |call: &ToolCall, result: Value, is_error| ToolResult {
        tool_call_id: call.tool_call_id.clone(),
        result: result.into(),
        is_error,
    };
    let [f, g] = response.message.tool_calls.as_slice() else {
        panic!("two calls")
    };
    let results =
        |results| Message::from(ToolResultMessage::new(results, MessageOptions::default()));
    let mut request = asked(response.message.clone());
    request
        .messages
        .push_back_mut(results(vec![result(f, json!([1]), false)]));
    request
        .messages
        .push_back_mut(results(vec![result(g, json!("no"), true)]));
    let body = body(&Gemini::new("m"), &request);
    assert_eq!(
        body["contents"][2],
        json!({"role": "user", "parts": [
            {"functionResponse": {"name": "f", "response": {"result": [1]}}},
            {"functionResponse": {"id": "fc1", "name": "g", "response": {"error": "no"}}},
        ]})
    );
    assert_eq!(body["contents"].as_array().unwrap().len(), 3);
}

#[test]
fn params_go_where_google_wants_them() {
    let mut request = asked("go on");
    let params = json!({"temperature": 0.5, "generationConfig": {"seed": 1}, "safetySettings": [],
        "cachedContent": "c", "tools": [native_tool("googleSearch")], "contents": []});
    request.params = Arc::new(params.as_object().unwrap().clone());
    request.system = Some("be kind".into());
    request.tool_choice = ToolChoice::Tool("f".into());
    let run =
        |_: Value, _: crate::ToolContext| -> futures_util::future::BoxFuture<'static, ToolOutput> {
            Box::pin(async { Ok(Value::Null) })
        };
    request.tools = [Tool::new("f", "does", json!({"type": "object"}), run)].into();
    let mut body = body(&Gemini::new("m"), &request);
    body.as_object_mut().unwrap().shift_remove("contents");
    assert_eq!(
        body,
        json!({
            "safetySettings": [], "cachedContent": "c",
            "systemInstruction": {"parts": [{"text": "be kind"}]},
            "tools": [{"functionDeclarations": [{"name": "f", "description": "does", "parametersJsonSchema": {"type": "object"}}]},
                {"googleSearch": {}}],
            "generationConfig": {"temperature": 0.5, "seed": 1},
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        })
    );
}

#[test]
fn a_blocked_prompt_is_a_stop_by_policy() {
    let response = decode(&[json!({"promptFeedback": {"blockReason": "OTHER"}})]);
    assert_eq!(response.stop_reason, StopReason::ContentFilter);
    assert_eq!(
        response.message.metadata["google"]["promptFeedback"]["blockReason"],
        "OTHER"
    );
}

#[test]
fn tokens_of_thoughts_and_of_tools_are_counted() {
    let usage = json!({"usageMetadata": {"promptTokenCount": 10, "toolUsePromptTokenCount": 3,
        "candidatesTokenCount": 4, "thoughtsTokenCount": 6, "cachedContentTokenCount": 5}});
    let usage = decode(&[usage, end()]).usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (13, 10));
    assert_eq!((usage.cache_read_tokens, usage.reasoning_tokens), (5, 6));
}

#[test]
fn refusals_are_told_apart() {
    let refusal = |code: u16, status: &str, message: &str, details: Value| {
        let body = json!([{"error": {"code": code, "status": status, "message": message, "details": details}}]);
        failure::of_status(code, &body.to_string())
    };
    let info = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}]);
    let limited = refusal(
        429,
        "RESOURCE_EXHAUSTED",
        "You exceeded your current quota",
        info,
    );
    assert_eq!(limited.code, Code::RateLimited);
    assert_eq!(
        limited.retry_after,
        Some(std::time::Duration::from_millis(1500))
    );
    let code = |code, status, message| refusal(code, status, message, json!([])).code;
    assert_eq!(
        code(400, "INVALID_ARGUMENT", "API key not valid."),
        Code::AuthenticationFailed
    );
    assert_eq!(
        code(
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (8)."
        ),
        Code::ContextLengthExceeded
    );
    assert_eq!(
        code(403, "PERMISSION_DENIED", "no"),
        Code::AuthenticationFailed
    );
    assert_eq!(code(404, "NOT_FOUND", "no"), Code::ModelNotFound);
    assert_eq!(code(503, "UNAVAILABLE", "overloaded"), Code::ProviderError);
    assert_eq!(code(504, "DEADLINE_EXCEEDED", "late"), Code::Timeout);
}

fn part() -> impl Strategy<Value = Value> {
    let signed = |mut part: Value, signature: Option<String>| {
        if let Some(signature) = signature {
            part["thoughtSignature"] = json!(signature);
        }
        part
    };
    let signature = prop::option::of("[a-z]{1,4}");
    prop_oneof![
        ("[a-z ]{1,8}", signature.clone())
            .prop_map(move |(text, s)| signed(json!({ "text": text }), s)),
        ("[a-z ]{1,8}", signature.clone())
            .prop_map(move |(text, s)| signed(json!({"text": text, "thought": true}), s)),
        (
            "[a-z]{1,3}",
            signature.clone(),
            prop::option::of("[a-z]{4}")
        )
            .prop_map(move |(name, s, id)| {
                let mut call = json!({"name": name, "args": {"x": 1}});
                if let Some(id) = id {
                    call["id"] = json!(id);
                }
                signed(json!({ "functionCall": call }), s)
            }),
        signature.prop_map(move |s| signed(json!({"executableCode": {"code": "1"}}), s)),
    ]
}

/// Neighbouring plain texts are one.
fn joined(parts: &[Value]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for part in parts {
        let plain =
            |part: &Value| part.get("text").is_some() && part.get("thoughtSignature").is_none();
        if let Some(last) = all
            .last_mut()
            .filter(|last| plain(last) && plain(part) && last.get("thought") == part.get("thought"))
        {
            last["text"] = json!(format!(
                "{}{}",
                last["text"].as_str().unwrap(),
                part["text"].as_str().unwrap()
            ));
        } else {
            all.push(part.clone());
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_parts_however_they_are_cut_into_chunks_go_back_as_they_came(
        parts in prop::collection::vec(part(), 1..8),
        cuts in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut chunks: Vec<Vec<Value>> = vec![Vec::new()];
        for (part, cut) in parts.iter().zip(&cuts) {
            chunks.last_mut().unwrap().push(part.clone());
            if *cut {
                chunks.push(Vec::new());
            }
        }
        let mut said: Vec<Value> = chunks.iter().map(|parts| said(&json!(parts))).collect();
        said.push(end());
        let request = asked(decode(&said).message);
        let body = body(&Gemini::new("m"), &request);
        prop_assert_eq!(&body["contents"][1]["parts"], &json!(joined(&parts)));
    }
}

#[test]
fn arguments_that_are_no_object_are_sent_as_an_empty_one() {
    let call = ToolCall {
        tool_call_id: "c".into(),
        tool_name: "f".into(),
        arguments: Arguments::from_text("{oops"),
        after: Vec::new(),
    };
    let message = crate::AssistantMessage::new(Vec::new(), vec![call], MessageOptions::default());
    let body = body(&Gemini::new("m"), &asked(message));
    assert_eq!(
        body["contents"][1]["parts"][0]["functionCall"],
        json!({"name": "f", "args": {}})
    );
}
