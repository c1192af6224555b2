//! The canonical form of a document (RFC 8785) and its hash (0.0.4 "Canonicalization Rules").
//!
//! Two documents have the same meaning if their canonical forms are the same bytes. The form sorts
//! keys, spells numbers as doubles and omits explicit nulls of the protocol's optional members,
//! since absent and `null` mean the same there. Nulls in free data (`args`, `content`,
//! `event_data`, the contents of `metadata`, unknown members and kinds) are part of the meaning and
//! stay. The stored document has all of them.

mod nulls;
mod text;
mod write;

pub use crate::validate::numbers::InexactNumbers;

use crate::document::{Thread, Tier, Version};
use crate::json::{Json, UnrepresentableNumber};
use nulls::At;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use write::Writer;

pub use text::{HashedText, hash_text};

/// Options for the canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanonicalOptions {
    /// Whether to include telemetry (`data-sys-*`, before 0.0.4 `meta:*`).
    pub keep_sys: bool,
}

impl Default for CanonicalOptions {
    /// Everything.
    fn default() -> Self {
        Self { keep_sys: true }
    }
}

/// The reason why a document has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// It contains a number that no double can represent.
    #[error("a number has no canonical form")]
    Number(#[source] UnrepresentableNumber),
    /// The canonicalizer refused a number.
    #[error("a number was not serialized")]
    Serialize(#[source] serde_json::Error),
    /// The output refuses more data.
    #[error("the canonical form was not written")]
    Write,
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
    let mut text = String::new();
    write_thread(thread, options, &mut text)?;
    Ok(text)
}

fn write_thread(
    thread: &Thread,
    options: CanonicalOptions,
    out: &mut impl Write,
) -> Result<(), CanonicalError> {
    Writer::new(out, options, thread.version()).object(thread.root(), At::Root)
}

/// The canonical text of any JSON value, without omissions.
pub fn canonical_json(json: &Json) -> Result<String, CanonicalError> {
    let mut text = String::new();
    let options = CanonicalOptions::default();
    Writer::new(&mut text, options, Version::NEWEST).value(json, At::Free)?;
    Ok(text)
}

/// The content hash of a document. It needs no more memory than the document.
pub fn hash(thread: &Thread, options: CanonicalOptions) -> Result<ContentHash, CanonicalError> {
    let mut hasher = Hasher::default();
    write_thread(thread, options, &mut hasher)?;
    Ok(hasher.hash())
}

/// A hash that is written to like a text.
#[derive(Default)]
struct Hasher(Sha256);

impl Hasher {
    fn hash(self) -> ContentHash {
        ContentHash(self.0.finalize().into())
    }
}

impl Write for Hasher {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

/// The numbers that make the hash of a document inexact, if any (ruling 24). Callers that show the
/// hash must report them.
#[must_use]
pub fn inexact_numbers(thread: &Thread) -> Option<InexactNumbers> {
    InexactNumbers::of(thread.root())
}

fn is_telemetry(message: &Json, version: &Version) -> bool {
    let text = |key| message.get(key).and_then(Json::as_str);
    text("message_type") == Some("system")
        && text("event_type").is_some_and(|name| Tier::of(name, version) == Tier::System)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

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
            "the hash is not exact: the canonical form rounds 2 numbers, such as \
             9007199254740993 at \"/a/1\""
        );
    }

    #[test]
    fn a_text_has_the_hash_of_its_document() {
        let turns = r#"[{"turn_type":"agent","total_usage":null,"messages":[{"event_type":"data-sys-x",
            "message_type":"system","source_agent":null},{"message_type":"response","parts":[1e2,"\u20ac"]}]},7]"#;
        for text in [
            format!(
                r#"{{"\ud83d\ude00":1,"\ufb33":2,"title":null,"turns":{turns},"version":"0.0.4"}}"#
            ),
            format!(
                r#"{{"turns":{{"a":{turns}}},"version":"0.0.3","agents":{{"a":{{"model_name":null}}}}}}"#
            ),
            format!(r#"{{"actions":{turns},"version":"1.0.0","turns":[],"n":9007199254740993}}"#),
            "{}".to_owned(),
        ] {
            let thread = Thread::decode(&text).unwrap();
            for keep_sys in [true, false] {
                let options = CanonicalOptions { keep_sys };
                let hashed = hash_text(&text, &Limits::default(), options)
                    .unwrap()
                    .unwrap();
                assert_eq!(hashed.hash, hash(&thread, options).unwrap(), "{text}");
                assert_eq!(hashed.inexact, inexact_numbers(&thread), "{text}");
            }
        }
        let refused = |text| hash_text(text, &Limits::default(), CanonicalOptions::default());
        assert!(refused("[]").is_err() && refused(r#"{"turns":[{"a":1,"a":2}]}"#).is_err());
        assert!(refused(r#"{"turns":[1e999]}"#).unwrap().is_err());
    }

    #[test]
    fn the_canonical_text_is_that_of_the_reference_canonicalizer() {
        let every: String = (0u32..0x2100).filter_map(char::from_u32).collect();
        let numbers = [
            "0",
            "-0",
            "1.50",
            "1e21",
            "1e-7",
            "123456789012345680000",
            "0.1",
            "5e-324",
            "-1.0E+2",
        ];
        let text = format!(
            r#"{{"z":[{}],"\ud83d\ude00":{{"b":null,"a":[]}},"\ufb33":true,"text":{}}}"#,
            numbers.join(","),
            Json::from(every).to_text()
        );
        let json = Json::parse(&text).unwrap();
        let expected = serde_json_canonicalizer::to_string(&json.to_value().unwrap()).unwrap();
        assert_eq!(canonical_json(&json).unwrap(), expected);
    }

    #[test]
    fn a_number_beyond_doubles_has_no_canonical_form() {
        let thread = Thread::decode("{\"a\":1e999}").unwrap();
        let refused = canonical(&thread, CanonicalOptions::default());
        assert!(matches!(refused, Err(CanonicalError::Number(_))));
    }
}
