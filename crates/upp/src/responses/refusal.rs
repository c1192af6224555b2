//! Maps the provider's errors to UPP's codes.

use crate::error::{Code, Error};
use crate::failure;
use serde_json::Value;
use std::time::Duration;

/// The error of a response with a status other than 2xx.
pub(super) fn of_status(provider: &str, status: u16, body: &str) -> Error {
    let mut error = failure::of_status(provider, status, body);
    let body: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let details = details(&body);
    if matches!(status, 400..=499) {
        let about = details.get("param").and_then(Value::as_str);
        if let Some(code) = by_word(details) {
            error.code = code;
        } else if error.message.starts_with("Incorrect API key") {
            // xAI says so with the status 400.
            error.code = Code::AuthenticationFailed;
        } else if error.message.contains("maximum prompt length") {
            error.code = Code::ContextLengthExceeded;
        } else if status == 404 && about.is_some_and(|about| about != "model") {
            // An item or a response is not found.
            error.code = Code::InvalidRequest;
        }
    }
    error.retry_after = wait(details, &error.message);
    error
}

/// The error that an event or a failed response reports: its fields are flat or under `error`.
pub(super) fn in_answer(provider: &str, said: &Value) -> Error {
    let details = details(said);
    let status = details.get("code").and_then(Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok());
    let mut error = match status {
        // Gateways give a status in the place of a word.
        Some(status) => {
            let mut error = of_status(provider, status, &said.to_string());
            error.status = None;
            error
        }
        None => failure::in_stream(provider, details),
    };
    if let Some(code) = by_word(details) {
        error.code = code;
    }
    error.retry_after = wait(details, &error.message);
    error
}

fn details(said: &Value) -> &Value {
    said.get("error")
        .filter(|error| error.is_object())
        .unwrap_or(said)
}

fn by_word(details: &Value) -> Option<Code> {
    let word = |key: &str| details.get(key).and_then(Value::as_str).unwrap_or_default();
    [word("code"), word("type")].into_iter().find_map(code_of)
}

fn code_of(word: &str) -> Option<Code> {
    Some(match word {
        "context_length_exceeded" | "string_above_max_length" => Code::ContextLengthExceeded,
        "insufficient_quota" | "billing_hard_limit_reached" | "usage_limit_reached" => {
            Code::QuotaExceeded
        }
        "rate_limit_exceeded" | "rate_limit_error" | "too_many_requests" => Code::RateLimited,
        "invalid_api_key" | "authentication_error" => Code::AuthenticationFailed,
        "model_not_found" => Code::ModelNotFound,
        "content_filter"
        | "content_policy_violation"
        | "image_content_policy_violation"
        | "invalid_prompt"
        | "bio_policy"
        | "cyber_policy" => Code::ContentFiltered,
        "server_error"
        | "server_is_overloaded"
        | "overloaded_error"
        | "slow_down"
        | "model_error"
        | "vector_store_timeout" => Code::ProviderError,
        "data_residency_mismatch"
        | "previous_response_not_found"
        | "invalid_image"
        | "invalid_image_format"
        | "invalid_base64_image"
        | "invalid_image_url"
        | "invalid_image_mode"
        | "image_too_large"
        | "image_too_small"
        | "image_parse_error"
        | "image_file_too_large"
        | "image_file_not_found"
        | "unsupported_image_media_type"
        | "empty_image_file"
        | "failed_to_download_image" => Code::InvalidRequest,
        _ => return None,
    })
}

/// The wait before a retry: from a header that the error quotes, or from its message.
fn wait(details: &Value, message: &str) -> Option<Duration> {
    let headers = details.get("headers").and_then(Value::as_object);
    let header = headers
        .into_iter()
        .flatten()
        .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))
        .and_then(|(_, value)| failure::retry_after(value.as_str()?, crate::clock::now()));
    header.or_else(|| {
        let (_, after) = message.split_once("try again in ")?;
        let said = after
            .split_whitespace()
            .next()?
            .trim_end_matches(['.', ',']);
        let wait: jiff::SignedDuration = said.parse().ok()?;
        Duration::try_from(wait).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn statuses_and_words_give_codes() {
        let code = |status, error: Value| of_status("p", status, &error.to_string()).code;
        let coded = |code: &str| json!({"error": {"message": "m", "type": "t", "code": code}});
        for (status, word, expected) in [
            (400, "context_length_exceeded", Code::ContextLengthExceeded),
            (400, "invalid_prompt", Code::ContentFiltered),
            (400, "previous_response_not_found", Code::InvalidRequest),
            (401, "invalid_api_key", Code::AuthenticationFailed),
            (404, "model_not_found", Code::ModelNotFound),
            (429, "insufficient_quota", Code::QuotaExceeded),
            (429, "rate_limit_exceeded", Code::RateLimited),
            (500, "server_error", Code::ProviderError),
            (503, "server_is_overloaded", Code::ProviderError),
        ] {
            assert_eq!(code(status, coded(word)), expected, "{status} {word}");
        }
        let missing = json!({"error": {"message": "Item 'rs_1' not found.", "param": "input"}});
        assert_eq!(code(404, missing), Code::InvalidRequest);
        let nested = json!({"error": {"message": "slow", "type": "too_many_requests"}});
        assert_eq!(code(429, nested), Code::RateLimited);
    }

    #[test]
    fn errors_of_xai_are_told_by_their_text() {
        let code = |text: &str| {
            let body = json!({"code": "Client specified an invalid argument", "error": text});
            of_status("xai", 400, &body.to_string()).code
        };
        assert_eq!(
            code("Incorrect API key provided: sk***1"),
            Code::AuthenticationFailed
        );
        assert_eq!(
            code("This model's maximum prompt length is 131072 but the request contains 200000"),
            Code::ContextLengthExceeded
        );
        assert_eq!(code("Model x does not support y"), Code::InvalidRequest);
    }

    #[test]
    fn how_long_to_wait_is_in_the_message_or_in_quoted_headers() {
        let said = |message: &str| {
            let event = json!({"type": "error", "code": "rate_limit_exceeded", "message": message});
            in_answer("p", &event).retry_after
        };
        assert_eq!(
            said("Rate limit reached. Please try again in 1.5s. Visit …"),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(said("try again in 6ms."), Some(Duration::from_millis(6)));
        assert_eq!(said("try again in 1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(said("try again in a while"), None);
        let quoted =
            json!({"error": {"code": null, "message": "m", "headers": {"Retry-After": "7"}}});
        assert_eq!(
            in_answer("p", &quoted).retry_after,
            Some(Duration::from_secs(7))
        );
    }

    #[test]
    fn a_gateways_status_counts_as_one() {
        let code = |code: u16| {
            let error = in_answer("p", &json!({"error": {"code": code, "message": "m"}}));
            assert_eq!(error.status, None);
            error.code
        };
        assert_eq!(code(429), Code::RateLimited);
        assert_eq!(code(502), Code::ProviderError);
        assert_eq!(code(403), Code::AuthenticationFailed);
    }
}
