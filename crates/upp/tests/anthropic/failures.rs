//! What goes wrong, and what it is called.

use crate::support::{codec, end, read, stream_of};
use loomline_upp::{Code, Codec, Request};
use serde_json::{Value, json};

fn said(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
}

#[test]
fn refusals_give_codes() {
    for (status, kind, message, code) in [
        (
            400,
            "invalid_request_error",
            "messages: Field required",
            Code::InvalidRequest,
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 2 tokens > 1 maximum",
            Code::ContextLengthExceeded,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 3 + 2 > 4",
            Code::ContextLengthExceeded,
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
            Code::QuotaExceeded,
        ),
        (
            400,
            "invalid_request_error",
            "Output blocked by content filtering policy",
            Code::ContentFiltered,
        ),
        (
            401,
            "authentication_error",
            "invalid x-api-key",
            Code::AuthenticationFailed,
        ),
        (
            402,
            "billing_error",
            "There is an issue with your billing.",
            Code::QuotaExceeded,
        ),
        (
            403,
            "permission_error",
            "Your API key may not.",
            Code::AuthenticationFailed,
        ),
        (
            404,
            "not_found_error",
            "model: claude-0",
            Code::ModelNotFound,
        ),
        (
            413,
            "request_too_large",
            "Request exceeds the maximum size",
            Code::ContextLengthExceeded,
        ),
        (
            429,
            "rate_limit_error",
            "Number of requests has exceeded your rate limit",
            Code::RateLimited,
        ),
        (
            500,
            "api_error",
            "Internal server error",
            Code::ProviderError,
        ),
        (504, "timeout_error", "Request timed out", Code::Timeout),
        (529, "overloaded_error", "Overloaded", Code::ProviderError),
    ] {
        let error = codec().refusal(status, &said(kind, message).to_string());
        assert_eq!(
            (error.code, error.status),
            (code, Some(status)),
            "{kind}: {message}"
        );
        assert_eq!(
            (error.message.as_str(), error.provider.as_str()),
            (message, "anthropic")
        );
    }
    assert_eq!(codec().refusal(502, "<html>").code, Code::ProviderError);
    assert_eq!(codec().refusal(403, "").code, Code::AuthenticationFailed);
}

#[test]
fn errors_within_the_stream_give_codes() {
    for (kind, code, retryable) in [
        ("overloaded_error", Code::ProviderError, true),
        ("api_error", Code::ProviderError, true),
        ("rate_limit_error", Code::RateLimited, true),
        ("timeout_error", Code::Timeout, true),
        ("invalid_request_error", Code::InvalidRequest, false),
        ("authentication_error", Code::AuthenticationFailed, false),
        ("something_new", Code::ProviderError, true),
    ] {
        let mut events = stream_of(&[json!({"type": "text", "text": "Hel"})]);
        events.push(said(kind, "No."));
        let error = read(events).unwrap_err();
        assert_eq!(
            (error.code, error.is_retryable()),
            (code, retryable),
            "{kind}"
        );
        assert_eq!(error.message, "No.");
    }
}

#[test]
fn what_is_no_answer_is_an_error() {
    let code = |events: Vec<Value>| read(events).unwrap_err().code;
    assert_eq!(code(vec![]), Code::InvalidResponse);
    assert_eq!(code(vec![json!([1])]), Code::InvalidResponse);
    assert_eq!(code(vec![json!({"no": "type"})]), Code::InvalidResponse);
    assert_eq!(
        code(vec![json!({"type": "message_start"})]),
        Code::InvalidResponse
    );
    assert_eq!(
        code(vec![json!({"type": "content_block_start", "index": 0})]),
        Code::InvalidResponse
    );
    let stray = json!({"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}});
    assert_eq!(code(vec![stray]), Code::InvalidResponse);
    assert_eq!(code(stream_of(&[])), Code::NetworkError);
    let stop = json!({"type": "message_stop"});
    assert_eq!(
        code(stream_of(&[]).into_iter().chain([stop]).collect()),
        Code::InvalidResponse
    );
}

#[test]
fn a_whole_body_that_is_no_message_is_an_error() {
    let code = |body: &str| {
        let mut decoder = codec().decoder(&Request::default());
        match decoder.whole(body) {
            Ok(_) => decoder.finish().unwrap_err().code,
            Err(error) => error.code,
        }
    };
    assert_eq!(code("{}"), Code::InvalidResponse);
    assert_eq!(code("[]"), Code::InvalidResponse);
    assert_eq!(code("oops"), Code::InvalidResponse);
    assert_eq!(
        code(&json!({"type": "model", "id": "x"}).to_string()),
        Code::InvalidResponse
    );
    assert_eq!(
        code(&said("overloaded_error", "Overloaded").to_string()),
        Code::ProviderError
    );
}

#[test]
fn a_stream_that_ends_as_openais_do_is_whole_only_after_its_stop_reason() {
    let read = |events: Vec<Value>| {
        let mut decoder = codec().decoder(&Request::default());
        for event in events {
            decoder.push(&event.to_string()).unwrap();
        }
        decoder.push("[DONE]").unwrap();
        decoder.finish().map(|(_, response)| response)
    };
    let [delta, _] = end("end_turn");
    let begun = stream_of(&[json!({"type": "text", "text": "Hello"})]);
    assert_eq!(read(begun.clone()).unwrap_err().code, Code::InvalidResponse);
    let whole = begun.into_iter().chain([delta]).collect();
    assert_eq!(read(whole).unwrap().message.joined_text(), "Hello");
}
