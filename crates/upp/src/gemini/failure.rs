//! Maps Google's errors to UPP's codes.

use super::PROVIDER;
use crate::error::{Code, Error};
use crate::failure;
use serde_json::Value;
use std::time::Duration;

/// The error of a response with a status other than 2xx.
pub(crate) fn of_status(status: u16, body: &str) -> Error {
    let json: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    // A streaming endpoint wraps its refusal in a list.
    let object = json.get(0).unwrap_or(&json);
    let mut error = failure::of_status(PROVIDER, status, &text(object, body));
    refine(&mut error, object);
    error
}

/// The error that is reported inside a stream.
pub(super) fn in_stream(chunk: &Value) -> Error {
    let mut error = failure::in_stream(PROVIDER, chunk.get("error").unwrap_or(chunk));
    error.status = chunk
        .pointer("/error/code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok());
    refine(&mut error, chunk);
    error
}

fn text(object: &Value, body: &str) -> String {
    if object.is_object() {
        object.to_string()
    } else {
        body.to_owned()
    }
}

fn refine(error: &mut Error, object: &Value) {
    let details = object.pointer("/error/details").and_then(Value::as_array);
    for detail in details.into_iter().flatten() {
        let field = |key: &str| detail.get(key).and_then(Value::as_str);
        if field("reason") == Some("API_KEY_INVALID") {
            error.code = Code::AuthenticationFailed;
            return;
        }
        if let Some(wait) = field("retryDelay").and_then(delay) {
            error.retry_after = Some(wait);
        }
    }
    let message = error.message.to_lowercase();
    match object.pointer("/error/status").and_then(Value::as_str) {
        // A limit by the minute is called a quota, too; it is one only where waiting does not help.
        Some("RESOURCE_EXHAUSTED") if error.retry_after.is_some() => error.code = Code::RateLimited,
        Some("RESOURCE_EXHAUSTED") if error.code != Code::QuotaExceeded => {
            error.code = Code::RateLimited;
        }
        Some("UNAUTHENTICATED" | "PERMISSION_DENIED") => error.code = Code::AuthenticationFailed,
        Some("INVALID_ARGUMENT") if message.contains("api key") => {
            error.code = Code::AuthenticationFailed;
        }
        Some("INVALID_ARGUMENT")
            if message.contains("token count") || message.contains("number of tokens") =>
        {
            error.code = Code::ContextLengthExceeded;
        }
        Some("DEADLINE_EXCEEDED") => error.code = Code::Timeout,
        _ => {}
    }
}

/// A duration as Google writes it: `7s`, `0.5s`.
fn delay(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
