//! JSON texts as a JavaScript client decodes them.

use super::surrogates::{ESCAPE, lone_surrogates};
use std::borrow::Cow;
use thread::json::JsonFault;
use thread::{DecodeError, Json, Object};

/// Why a client refuses a JSON text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartialJsonError {
    /// It is not JSON.
    #[error("the text is not JSON")]
    NotJson(#[source] DecodeError),
    /// It has a key that could change the prototype of objects.
    #[error("the key {key:?} is forbidden, expected any other")]
    ForbiddenKey {
        /// The key.
        key: &'static str,
    },
}

/// Reads a JSON text. Unlike [`Json::parse`], it takes the last of repeated keys. Half a surrogate
/// pair becomes U+FFFD, because a Rust string can't hold it. If keys repeat, the spelling of numbers
/// is lost.
pub(in crate::ai_sdk) fn read(text: &str) -> Result<Json, PartialJsonError> {
    let value = Json::parse(text).or_else(|error| {
        let lax = match &error.fault {
            JsonFault::DuplicateKey { .. } | JsonFault::LoneSurrogate => read_laxly(text),
            JsonFault::TooLarge { .. }
            | JsonFault::TooDeep { .. }
            | JsonFault::TooManyNodes { .. }
            | JsonFault::NotFinite
            | JsonFault::NumberTooLong
            | JsonFault::TrailingData
            | JsonFault::Truncated
            | JsonFault::Syntax { .. }
            | JsonFault::NotAnObject { .. } => None,
        };
        lax.ok_or(PartialJsonError::NotJson(error))
    })?;
    // A forbidden key is spelled out, or has an escape.
    if text.contains("proto") || text.contains("\\u") {
        check_keys(&value)?;
    }
    Ok(value)
}

fn read_laxly(text: &str) -> Option<Json> {
    let paired = without_lone_surrogates(text);
    if let Ok(value) = Json::parse(&paired) {
        return Some(value);
    }
    let value: serde_json::Value = serde_json::from_str(&paired).ok()?;
    Some(Json::from(value))
}

/// The text with `\ufffd` for each escaped half of a surrogate pair that has no other half.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut fixed = String::new();
    let mut copied = 0;
    for (at, _) in lone_surrogates(text) {
        fixed.push_str(text.get(copied..at).unwrap_or_default());
        fixed.push_str("\\ufffd");
        copied = at + ESCAPE;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    fixed.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(fixed)
}

fn check_keys(value: &Json) -> Result<(), PartialJsonError> {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Json::Object(object) => {
                check_object(object)?;
                open.extend(object.iter().map(|(_, value)| value));
            }
            Json::Array(items) => open.extend(items),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }
    Ok(())
}

fn check_object(object: &Object) -> Result<(), PartialJsonError> {
    let forbidden = |key| Err(PartialJsonError::ForbiddenKey { key });
    if object.contains_key("__proto__") {
        return forbidden("__proto__");
    }
    let constructor = object.get("constructor");
    if constructor.is_some_and(|value| value.get("prototype").is_some()) {
        return forbidden("constructor.prototype");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(text: &str) -> Option<String> {
        read(text).ok().map(|value| value.to_text())
    }

    #[test]
    fn the_last_of_repeated_keys_is_taken() {
        let read = text_of(r#"{"a":1,"b":2,"a":{"a":3}}"#);
        assert_eq!(read.as_deref(), Some(r#"{"a":{"a":3},"b":2}"#));
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_a_whole_one_is_not() {
        let read = text_of(r#"["\ud83d","\ude00x","\ud83d\ud83d\ude00","\\ud83d",1.0]"#);
        let expected = "[\"\u{fffd}\",\"\u{fffd}x\",\"\u{fffd}😀\",\"\\\\ud83d\",1.0]";
        assert_eq!(read.as_deref(), Some(expected));
    }

    #[test]
    fn keys_that_reach_for_the_prototype_are_refused() {
        for text in [
            r#"{"a":[{"__proto__":1}]}"#,
            r#"{"\u005f_proto__":1}"#,
            r#"{"constructor":{"prototype":{}}}"#,
        ] {
            assert!(
                matches!(read(text), Err(PartialJsonError::ForbiddenKey { .. })),
                "{text}"
            );
        }
        assert!(read(r#"{"constructor":1,"prototype":"__proto__"}"#).is_ok());
    }
}
