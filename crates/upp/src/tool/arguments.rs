//! The arguments of a call, as the provider wrote them.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// Why a call's arguments can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// The text ends before its JSON does: the model was stopped while it wrote the call.
    #[error("the arguments are cut off before the end of their JSON")]
    CutOff(#[source] serde_json::Error),
    /// The text is not JSON.
    #[error("the arguments are not JSON")]
    NotJson(#[source] serde_json::Error),
    /// The text is JSON, but not an object.
    #[error("the arguments are not a JSON object")]
    NotAnObject,
}

/// The arguments of a call: the provider's own text, byte for byte, which may be malformed.
///
/// As JSON they are the object itself, in the provider's spelling. A line break between tokens becomes a
/// space, so that a document stays one line. Text that is not an object becomes a string.
///
/// A call that was cut off never reads as complete. If its text would (it is empty, or the provider
/// closed it), an open brace is appended to the text. Reading returns the same text if `serde_json`
/// reads directly. Inside a type that buffers (flattened, untagged, internally tagged), the object is
/// written in a new spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments(Arc<str>);

impl Arguments {
    /// Appended to the text of a call that was cut off if the text would read as complete.
    pub(crate) const CUT: &str = "{";

    /// Stores the provider's text. An empty text counts as `{}`.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Writes a value.
    pub fn from_value(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    /// The provider's text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether the text reads as an object without fields.
    pub(crate) fn is_empty(&self) -> bool {
        let value = self.parse().ok();
        value.is_some_and(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
    }

    /// The text to send back to a provider. It is normalized as a store would return it, so that
    /// requests before and after a restart are equal. The mark of a call that was cut off is removed.
    pub(crate) fn sent(&self) -> Cow<'_, str> {
        match self.unmarked() {
            Some(text) => Cow::Owned(text.kept().into_owned()),
            None => self.kept(),
        }
    }

    /// Whether the text ends like that of a call that was cut off and marked so.
    pub(crate) fn is_marked(&self) -> bool {
        self.unmarked().is_some()
    }

    /// The text before the mark of a call that was cut off.
    fn unmarked(&self) -> Option<Self> {
        let text = self.0.strip_suffix(Self::CUT).map(Self::from_text)?;
        text.parse().is_ok().then_some(text)
    }

    fn kept(&self) -> Cow<'_, str> {
        if !self.0.contains(['\n', '\r']) && self.0.trim().len() == self.0.len() {
            return Cow::Borrowed(&self.0);
        }
        match serde_json::to_string(self) {
            Ok(json) if json.starts_with('{') => Cow::Owned(json),
            Ok(_) | Err(_) => Cow::Borrowed(&self.0),
        }
    }

    /// Reads the text as an object.
    pub fn parse(&self) -> Result<Value, ArgumentsError> {
        if self.0.trim().is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let value: Value = serde_json::from_str(&self.0).map_err(|cause| {
            if cause.is_eof() || self.0.ends_with(Self::CUT) {
                ArgumentsError::CutOff(cause)
            } else {
                ArgumentsError::NotJson(cause)
            }
        })?;
        if value.is_object() {
            Ok(value)
        } else {
            Err(ArgumentsError::NotAnObject)
        }
    }
}

// On the wire (UPP §14) arguments are an object; text that is none travels as a string.
impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(raw) if raw.get().starts_with('{') => {
                // JSON has line breaks between tokens only.
                if !raw.get().contains(['\n', '\r']) {
                    return raw.serialize(serializer);
                }
                let line = raw.get().replace(['\n', '\r'], " ");
                match serde_json::from_str::<&RawValue>(&line) {
                    Ok(raw) => raw.serialize(serializer),
                    Err(_) => serializer.serialize_str(&self.0),
                }
            }
            Ok(_) | Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

/// The name under which `serde_json` returns the text of a value. Its own `RawValue` uses this name too,
/// but fails behind another deserializer.
const RAW: &str = "$serde_json::private::RawValue";

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW, Text)
    }
}

struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Arguments;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Arguments, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Arguments;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the arguments of a tool call")
    }

    /// Reads the text that `serde_json` supplies.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments, A::Error> {
        if map.next_key::<IgnoredAny>()?.is_none() {
            return Err(A::Error::custom("no arguments"));
        }
        map.next_value_seed(Self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Arguments, E> {
        if text.starts_with('"') {
            let text: String = serde_json::from_str(text).map_err(E::custom)?;
            return Ok(Arguments(text.into()));
        }
        Ok(Arguments(text.into()))
    }

    /// Reads the value that a buffer supplies.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Arguments, D::Error> {
        Ok(match Value::deserialize(inner)? {
            Value::String(text) => Arguments(text.into()),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)) => Arguments::from_value(&other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Call { arguments: Arguments },
    }

    fn back(text: &str) -> String {
        let json = serde_json::to_string(&Arguments::from_text(text)).unwrap();
        let read: Arguments = serde_json::from_str(&json).unwrap();
        read.text().to_owned()
    }

    #[test]
    fn the_text_comes_back_byte_for_byte() {
        for text in [
            r#"{ "x" : 1.0, "x": 1e2, "big": 12345678901234567890123 }"#,
            "{oops",
            "",
            "[1]",
            "\"{}\"",
            "line\nbreak",
        ] {
            assert_eq!(back(text), text);
        }
    }

    #[test]
    fn a_document_stays_one_line() {
        assert_eq!(back("{\n\"x\": \"a\\nb\"\r\n}"), r#"{ "x": "a\nb"  }"#);
    }

    #[test]
    fn a_buffer_spells_the_object_anew() {
        let call = Tagged::Call {
            arguments: Arguments::from_text(r#"{ "b" : 1, "a" : 2 }"#),
        };
        let json = serde_json::to_string(&call).unwrap();
        assert_eq!(json, r#"{"type":"Call","arguments":{ "b" : 1, "a" : 2 }}"#);
        let read: Tagged = serde_json::from_str(&json).unwrap();
        let Tagged::Call { arguments } = read;
        assert_eq!(arguments.text(), r#"{"b":1,"a":2}"#);
    }

    #[test]
    fn arguments_that_were_cut_off_never_read_as_whole_and_go_back_as_they_came() {
        for text in ["", "{}", "{ }", r#"{"a": 1}"#] {
            let cut = Arguments::from_text(&format!("{text}{}", Arguments::CUT));
            for cut in [&cut, &Arguments::from_text(&back(cut.text()))] {
                assert!(
                    matches!(cut.parse(), Err(ArgumentsError::CutOff(_))),
                    "{text}"
                );
                assert_eq!(cut.sent(), text);
            }
        }
        for text in ["{", r#"{"a": "#, r#"{"a": {"#] {
            let cut = Arguments::from_text(text);
            assert!(
                matches!(cut.parse(), Err(ArgumentsError::CutOff(_))),
                "{text}"
            );
        }
        assert_eq!(Arguments::from_text(r#"{"a": {"#).sent(), r#"{"a": {"#);
        let nonsense = Arguments::from_text("{oops}");
        assert!(matches!(nonsense.parse(), Err(ArgumentsError::NotJson(_))));
    }

    #[test]
    fn values_are_read_too() {
        let value = serde_json::json!({"b": 1});
        let read: Arguments = serde_json::from_value(value).unwrap();
        assert_eq!(read.text(), r#"{"b":1}"#);
    }
}
