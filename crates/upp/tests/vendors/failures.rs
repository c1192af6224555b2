//! What errors mean.

use crate::support::decode;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use loomline_upp::{
    Anthropic, ChatCompletions, Code, Codec as _, Dialect, Ollama, Request, answer,
};
use serde_json::json;

#[test]
fn a_line_that_is_too_long_is_refused_however_it_is_cut() {
    let line = json!({"message": {"content": "x".repeat(2_000)}, "done": true});
    let text = Bytes::from(format!("{line}\n"));
    for size in [16, text.len()] {
        let pieces: Vec<_> = text
            .chunks(size)
            .map(Bytes::copy_from_slice)
            .map(Ok)
            .collect();
        let codec = Ollama::new("m");
        let decoder = codec.decoder(&Request::default());
        let items = answer(&codec, decoder, stream::iter(pieces), 1_000);
        let items: Vec<_> = items.collect().now_or_never().expect("all is there");
        assert!(matches!(items.as_slice(), [Err(error)] if error.message.contains("1000 bytes")));
    }
}

#[test]
fn an_error_in_a_stream_that_gives_a_status_means_what_the_status_means() {
    let code = |status: u16| {
        let codec = ChatCompletions::new(Dialect::openrouter(), "m");
        let frame = json!({"error": {"code": status, "message": "no"}, "choices": []});
        decode(&codec, &[frame]).expect_err("a refusal").code
    };
    assert_eq!(code(400), Code::InvalidRequest);
    assert_eq!(code(401), Code::AuthenticationFailed);
    assert_eq!(code(402), Code::QuotaExceeded);
    assert_eq!(code(429), Code::RateLimited);
    assert_eq!(code(502), Code::ProviderError);
}

#[test]
fn a_request_that_is_refused_in_a_stream_is_not_sent_again() {
    let frame = json!({"error": {"type": "invalid_request_error", "message": "no"}});
    let error = decode(&ChatCompletions::openai("m"), &[frame]).expect_err("a refusal");
    assert_eq!(error.code, Code::InvalidRequest);
    assert!(!error.is_retryable());
}

#[test]
fn the_words_of_xai_and_moonshot_are_known_to_chat_completions() {
    let codec = ChatCompletions::new(Dialect::xai(), "m");
    let xai = |text: &str| {
        let body = json!({"code": "Client specified an invalid argument", "error": text});
        codec.refusal(400, &body.to_string()).code
    };
    assert_eq!(
        xai("This model's maximum prompt length is 131072 but the request contains 200000"),
        Code::ContextLengthExceeded
    );
    assert_eq!(
        xai("Incorrect API key provided: xa***1"),
        Code::AuthenticationFailed
    );
    let codec = ChatCompletions::new(Dialect::moonshot(), "m");
    let moonshot = |status, kind: &str, text: &str| {
        let body = json!({"error": {"type": kind, "message": text}});
        codec.refusal(status, &body.to_string()).code
    };
    let text = "Invalid request: Your request exceeded model token limit: 131072";
    assert_eq!(
        moonshot(400, "invalid_request_error", text),
        Code::ContextLengthExceeded
    );
    assert_eq!(
        moonshot(429, "exceeded_current_quota_error", "no balance"),
        Code::QuotaExceeded
    );
}

#[test]
fn a_spent_budget_at_anthropic_is_a_quota() {
    let text = "You have reached your specified API usage limits. You will regain access later.";
    let body = json!({"type": "error",
        "error": {"type": "invalid_request_error", "message": text}});
    let error = Anthropic::new("m").refusal(400, &body.to_string());
    assert_eq!(error.code, Code::QuotaExceeded);
}
