//! The canonical form of a document (RFC 8785) and its hash (0.0.4 "Canonicalization Rules").
//!
//! Two documents mean the same when their canonical forms are the same bytes. The form sorts keys,
//! spells numbers as doubles and leaves out explicit nulls where the protocol defines an optional
//! member, since absent and `null` mean the same there. Nulls in free data (`args`, `content`,
//! `event_data`, what `metadata` holds, unknown members and kinds) are part of the meaning and
//! stay. The stored document keeps all of them.

mod nulls;

pub use crate::validate::numbers::InexactNumbers;

use crate::document::{Thread, Tier, Version};
use crate::json::{Json, UnrepresentableNumber};
use crate::validate::numbers;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What the canonical form takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanonicalOptions {
    /// Whether telemetry (`data-sys-*`, before 0.0.4 `meta:*`) is taken in.
    pub keep_sys: bool,
}

impl Default for CanonicalOptions {
    /// Everything.
    fn default() -> Self {
        Self { keep_sys: true }
    }
}

/// Why a document has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// It holds a number that no double can stand for.
    #[error("a number has no canonical form")]
    Number(#[source] UnrepresentableNumber),
    /// The canonicalizer refused it.
    #[error("the document was not serialized")]
    Serialize(#[source] serde_json::Error),
}

/// The content hash of a document: the SHA-256 of its canonical form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The 32 bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("sha256:")?;
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl std::fmt::Debug for ContentHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ContentHash({self})")
    }
}

/// The canonical text of a document.
pub fn canonical(thread: &Thread, options: CanonicalOptions) -> Result<String, CanonicalError> {
    let mut root = serde_json::Map::new();
    for (key, member) in thread.root() {
        let member = member.to_value().map_err(CanonicalError::Number)?;
        root.insert(key.to_owned(), member);
    }
    let mut value = Value::Object(root);
    if !options.keep_sys {
        drop_telemetry(&mut value, &thread.version());
    }
    nulls::omit(&mut value);
    serde_json_canonicalizer::to_string(&value).map_err(CanonicalError::Serialize)
}

/// The canonical text of any JSON value, nothing left out.
pub fn canonical_json(json: &Json) -> Result<String, CanonicalError> {
    let value = json.to_value().map_err(CanonicalError::Number)?;
    serde_json_canonicalizer::to_string(&value).map_err(CanonicalError::Serialize)
}

/// The content hash of a document.
pub fn hash(thread: &Thread, options: CanonicalOptions) -> Result<ContentHash, CanonicalError> {
    let text = canonical(thread, options)?;
    Ok(ContentHash(Sha256::digest(text).into()))
}

/// What makes the hash of a document inexact, if anything does (ruling 24): whoever shows the hash
/// says it.
#[must_use]
pub fn inexact_numbers(thread: &Thread) -> Option<InexactNumbers> {
    numbers::inexact(thread.root())
}

fn drop_telemetry(root: &mut Value, version: &Version) {
    let turns = root.get_mut("turns").and_then(Value::as_array_mut);
    for turn in turns.into_iter().flatten() {
        if let Some(messages) = turn.get_mut("messages").and_then(Value::as_array_mut) {
            messages.retain(|message| !is_telemetry(message, version));
        }
    }
}

fn is_telemetry(message: &Value, version: &Version) -> bool {
    let text = |key| message.get(key).and_then(Value::as_str);
    text("message_type") == Some("system")
        && text("event_type").is_some_and(|name| Tier::of(name, version) == Tier::System)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_of(text: &str, keep_sys: bool) -> String {
        let thread = Thread::decode(text).unwrap();
        canonical(&thread, CanonicalOptions { keep_sys }).unwrap()
    }

    #[test]
    fn keys_are_sorted_and_numbers_are_doubles() {
        let text = r#"{"b":1.0,"a":[1e2,-0,9007199254740993,0.1],"\u20ac":1}"#;
        let expected = "{\"a\":[100,0,9007199254740992,0.1],\"b\":1,\"€\":1}";
        assert_eq!(canonical_of(text, true), expected);
    }

    #[test]
    fn nulls_are_omitted_where_a_member_is_optional_and_nowhere_else() {
        let text = r#"{"title":null,"x":null,"turns":[{"turn_type":"agent","total_usage":null,
            "messages":[{"message_type":"response","usage":null,"parts":[
            {"part_kind":"tool-call","args":{"a":null}},{"part_kind":"text","id":null,"content":null},
            {"part_kind":"custom:x","id":null}]},
            {"message_type":"system","event_data":null,"source_agent":null}]}]}"#;
        let expected = concat!(
            r#"{"turns":[{"messages":[{"message_type":"response","parts":["#,
            r#"{"args":{"a":null},"part_kind":"tool-call"},{"content":null,"part_kind":"text"},"#,
            r#"{"id":null,"part_kind":"custom:x"}]},{"event_data":null,"message_type":"system"}],"#,
            r#""turn_type":"agent"}],"x":null}"#
        );
        assert_eq!(canonical_of(text, true), expected);
    }

    #[test]
    fn telemetry_can_be_left_out() {
        let with = r#"{"turns":[{"messages":[{"event_type":"data-sys-x","message_type":"system"},{"event_type":"data-app-x","message_type":"system"}]}],"version":"0.0.4"}"#;
        let without = with.replace(
            r#"{"event_type":"data-sys-x","message_type":"system"},"#,
            "",
        );
        assert_eq!(canonical_of(with, false), without);
        assert_eq!(canonical_of(with, true), with);
    }

    #[test]
    fn a_hash_is_shown_with_its_algorithm() {
        let thread = Thread::decode("{ }").unwrap();
        let hash = hash(&thread, CanonicalOptions::default())
            .unwrap()
            .to_string();
        let of_braces = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(hash, of_braces);
    }

    #[test]
    fn numbers_that_the_canonical_form_rounds_are_counted_and_the_first_is_named() {
        let inexact = |text| inexact_numbers(&Thread::decode(text).unwrap());
        assert_eq!(inexact(r#"{"a":9007199254740991}"#), None);
        let found = inexact(r#"{"a":[1,9007199254740993],"b":-9007199254740993}"#).unwrap();
        assert_eq!(
            found.to_string(),
            "the hash is not exact: the canonical form rounds 2 numbers, the first is \
             9007199254740993 at \"/a/1\""
        );
    }

    #[test]
    fn a_number_beyond_doubles_has_no_canonical_form() {
        let thread = Thread::decode("{\"a\":1e999}").unwrap();
        let refused = canonical(&thread, CanonicalOptions::default());
        assert!(matches!(refused, Err(CanonicalError::Number(_))));
    }
}
