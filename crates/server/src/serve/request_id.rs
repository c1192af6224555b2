//! The checks of clients' request ids.

use axum::extract::Request;
use http::HeaderValue;

/// The header with the request id.
const HEADER: &str = "x-request-id";
/// Maximum length of a client's request id, in bytes.
const MAX_BYTES: usize = 128;

/// Removes a client's `x-request-id` if it is empty, too long, repeated or has illegal characters. The
/// next layer then makes a new one. Remaining ids are safe in logs, headers and error bodies.
pub(super) fn bounded(mut request: Request) -> Request {
    let headers = request.headers_mut();
    let mut values = headers.get_all(HEADER).iter();
    let is_fit = values.next().is_some_and(is_id) && values.next().is_none();
    if !is_fit {
        headers.remove(HEADER);
    }
    request
}

fn is_id(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte);
    (1..=MAX_BYTES).contains(&bytes.len()) && bytes.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_plain_request_ids_are_used() {
        let longest = "x".repeat(MAX_BYTES);
        for id in ["7", "Root=1-67891233-abcdef01", "a/b+c==", &longest] {
            assert!(is_id(&HeaderValue::from_str(id).unwrap()), "{id}");
        }
        let longer = "x".repeat(MAX_BYTES + 1);
        for id in ["", "a b", "{\"a\":1}", "\u{fc}", "a\t", &longer] {
            assert!(!is_id(&HeaderValue::from_str(id).unwrap()), "{id}");
        }
    }
}
