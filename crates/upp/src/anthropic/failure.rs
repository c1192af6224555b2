//! Maps Anthropic's errors to UPP's codes.

use crate::error::{Code, Error};
use crate::failure;
use serde_json::Value;

/// The error of a response with a status other than 2xx.
pub(super) fn of_status(provider: &str, status: u16, body: &str) -> Error {
    let mut error = failure::of_status(provider, status, body);
    let body: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    if let Some(code) = code(body.get("error").unwrap_or(&Value::Null)) {
        error.code = code;
    }
    error
}

/// The error of an `error` event, or of an answer that is an error.
pub(super) fn in_stream(provider: &str, error: &Value) -> Error {
    let mut found = failure::in_stream(provider, error);
    if let Some(code) = code(error) {
        found.code = code;
    }
    found
}

/// The code of an error. For the types `invalid_request_error` and `api_error` the text decides.
fn code(error: &Value) -> Option<Code> {
    let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let message = word("message").to_lowercase();
    let says = |phrase: &str| message.contains(phrase);
    if says("prompt is too long") || says("exceed context limit") || says("context window") {
        return Some(Code::ContextLengthExceeded);
    }
    if says("credit balance is too low") || says("api usage limits") {
        return Some(Code::QuotaExceeded);
    }
    if says("content filtering policy") {
        return Some(Code::ContentFiltered);
    }
    Some(match word("type") {
        "invalid_request_error" => Code::InvalidRequest,
        "authentication_error" | "permission_error" => Code::AuthenticationFailed,
        "billing_error" => Code::QuotaExceeded,
        "not_found_error" => Code::ModelNotFound,
        "request_too_large" => Code::ContextLengthExceeded,
        "rate_limit_error" => Code::RateLimited,
        "timeout_error" => Code::Timeout,
        "overloaded_error" | "api_error" => Code::ProviderError,
        _ => return None,
    })
}
