//! Texts as they stand in JSON, for events that are written without a tree of values.

use std::borrow::Cow;

/// A text as a JSON string, in quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A text as the contents of a JSON string. It is copied only if characters must be escaped.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    if !text.bytes().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.pop();
    quoted.remove(0);
    Cow::Owned(quoted)
}
