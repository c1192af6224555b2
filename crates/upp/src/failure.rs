//! Maps a provider's error response to UPP's codes.

use crate::error::{Code, Error};
use serde_json::Value;
use std::time::Duration;

/// Maximum length of a stored message, in characters.
const MESSAGE: usize = 2_000;
/// Maximum wait that a provider may request (UPP §13).
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// The error of a response with a status other than 2xx. The body decides if it is more specific than
/// the status (UPP §14).
pub(crate) fn of_status(provider: &str, status: u16, body: &str) -> Error {
    let body_json: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let message = message_of(&body_json).map_or_else(
        || {
            let text = body.trim();
            if text.is_empty() || text.chars().count() >= 200 || text.starts_with('<') {
                format!("HTTP {status}")
            } else {
                text.to_owned()
            }
        },
        str::to_owned,
    );
    let inspected = matches!(status, 400..=499);
    let error = body_json.get("error").unwrap_or(&body_json);
    let code = Some(())
        .filter(|()| inspected)
        .and_then(|()| by_body(error, &message))
        .unwrap_or_else(|| by_status(status));
    let mut error = Error::new(code, provider, short(&message));
    error.status = Some(status);
    error
}

fn by_status(status: u16) -> Code {
    match status {
        401 | 403 => Code::AuthenticationFailed,
        402 => Code::QuotaExceeded,
        404 => Code::ModelNotFound,
        408 => Code::Timeout,
        413 => Code::ContextLengthExceeded,
        429 => Code::RateLimited,
        451 => Code::ContentFiltered,
        400 | 409 | 422 => Code::InvalidRequest,
        _ => Code::ProviderError,
    }
}

/// The error that a provider reports inside a stream. Gateways put a status in place of a word.
pub(crate) fn in_stream(provider: &str, error: &Value) -> Error {
    let message = message_of(error).unwrap_or("the provider failed while it answered");
    let status = error.get("code").and_then(Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok());
    let refused = error.get("type").and_then(Value::as_str) == Some("invalid_request_error");
    let code = by_body(error, message)
        .or_else(|| status.map(by_status))
        .or_else(|| refused.then_some(Code::InvalidRequest));
    Error::new(
        code.unwrap_or(Code::ProviderError),
        provider,
        short(message),
    )
}

/// The wait of a `Retry-After` header, counted from `now`: seconds or an HTTP date.
pub(crate) fn retry_after(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    let value = value.trim();
    let wait = if let Ok(seconds) = value.parse::<f64>() {
        Duration::try_from_secs_f64(seconds.max(0.0)).ok()?
    } else {
        let date = jiff::fmt::rfc2822::DateTimeParser::new()
            .parse_timestamp(value)
            .ok()?;
        Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO)
    };
    Some(wait.min(LONGEST_WAIT))
}

fn message_of(body: &Value) -> Option<&str> {
    [
        "/error/message",
        "/message",
        "/error/error/message",
        "/detail",
        "/error",
        "",
    ]
    .iter()
    .find_map(|pointer| body.pointer(pointer)?.as_str())
    .filter(|text| !text.is_empty())
}

fn by_body(error: &Value, message: &str) -> Option<Code> {
    let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    for word in [word("code"), word("type")] {
        let code = match word {
            "context_length_exceeded" | "string_above_max_length" => Code::ContextLengthExceeded,
            "insufficient_quota"
            | "billing_hard_limit_reached"
            | "exceeded_current_quota_error" => Code::QuotaExceeded,
            "rate_limit_exceeded" | "rate_limit_error" => Code::RateLimited,
            "invalid_api_key" | "authentication_error" => Code::AuthenticationFailed,
            "model_not_found" => Code::ModelNotFound,
            "content_filter" | "content_policy_violation" => Code::ContentFiltered,
            _ => continue,
        };
        return Some(code);
    }
    let message = message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    if says(&[
        "maximum context length",
        "maximum prompt length",
        "exceeded model token limit",
        "prompt is too long",
        "context length exceeded",
        "exceeds the context length",
        "context window",
    ]) {
        return Some(Code::ContextLengthExceeded);
    }
    if says(&[
        "insufficient quota",
        "exceeded your current quota",
        "insufficient balance",
    ]) {
        return Some(Code::QuotaExceeded);
    }
    // xAI says so with the status 400.
    if message.starts_with("incorrect api key") {
        return Some(Code::AuthenticationFailed);
    }
    None
}

fn short(message: &str) -> String {
    message.chars().take(MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn statuses_and_bodies_give_codes() {
        let code = |status, body: Value| of_status("p", status, &body.to_string()).code;
        let coded = |code: &str| json!({"error": {"message": "m", "code": code}});
        assert_eq!(code(401, json!({})), Code::AuthenticationFailed);
        assert_eq!(code(400, json!({})), Code::InvalidRequest);
        assert_eq!(
            code(400, coded("context_length_exceeded")),
            Code::ContextLengthExceeded
        );
        assert_eq!(
            code(400, json!({"message": "Prompt is too long"})),
            Code::ContextLengthExceeded
        );
        assert_eq!(code(429, json!({})), Code::RateLimited);
        assert_eq!(code(429, coded("insufficient_quota")), Code::QuotaExceeded);
        assert_eq!(code(403, coded("insufficient_quota")), Code::QuotaExceeded);
        assert_eq!(
            code(503, coded("context_length_exceeded")),
            Code::ProviderError
        );
        assert_eq!(code(529, json!({})), Code::ProviderError);
    }

    #[test]
    fn the_message_comes_from_the_body_where_it_is_short_or_json() {
        let said = |body: &str| of_status("p", 500, body).message;
        assert_eq!(said(r#"{"error":{"message":"no"}}"#), "no");
        assert_eq!(said(r#"{"detail":"no"}"#), "no");
        assert_eq!(said("upstream down"), "upstream down");
        assert_eq!(said("<html>"), "HTTP 500");
        assert_eq!(said(""), "HTTP 500");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: jiff::Timestamp = "1994-11-06T08:49:27Z".parse().unwrap();
        let of = |value| retry_after(value, now);
        assert_eq!(of("7"), Some(Duration::from_secs(7)));
        assert_eq!(of("-7"), Some(Duration::ZERO));
        assert_eq!(of("999999"), Some(LONGEST_WAIT));
        assert_eq!(
            of("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(Duration::from_secs(10))
        );
        assert_eq!(of("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(of("soon"), None);
    }
}
