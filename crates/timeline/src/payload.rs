//! JSON with its original text.

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// A JSON value stored as its text: key order, number spellings and explicit nulls are preserved.
///
/// Cloning shares the text. Equality is equality of the text.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = Value))]
#[serde(transparent)]
pub struct Payload(Arc<RawValue>);

impl Payload {
    /// Stores this text, if it is JSON.
    pub fn from_text(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(|raw| Self(raw.into()))
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// A view of the value; numbers beyond 64 bits lose digits in it.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or(Value::Null)
    }

    /// Reads the value as a type.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// Writes a value of a type.
    pub fn write<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(|raw| Self(raw.into()))
    }

    /// The string under `key`, if this is an object that has one. Other members are skipped.
    pub fn str_field(&self, key: &str) -> Option<String> {
        let mut reader = serde_json::Deserializer::from_str(self.text());
        let found = reader.deserialize_map(Member(key)).ok()??;
        serde_json::from_str(found.get()).ok()
    }
}

/// Borrowed if it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads the member of this name from an object; of two, the last.
struct Member<'k>(&'k str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(Name(name)) = map.next_key()? {
            if name == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        // A `Value` always has a text; null stands in for what cannot happen.
        Self::write(&value).unwrap_or_else(|_| Self(RawValue::NULL.to_owned().into()))
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Payload {}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Payload {
        Payload::from_text(text.to_owned()).unwrap()
    }

    #[test]
    fn a_string_is_found_under_its_name_whatever_stands_beside_it() {
        let one = kept(r#"{"a": [{"b": "no"}], "n\u0061me": "\u00e4\n", "c": 1e400}"#);
        assert_eq!(one.str_field("name").as_deref(), Some("ä\n"));
        assert_eq!(one.str_field("a"), None);
        assert_eq!(one.str_field("b"), None);
        assert_eq!(
            kept(r#"{"a": "first", "a": "last"}"#).str_field("a"),
            Some("last".into())
        );
        assert_eq!(kept(r#"["a"]"#).str_field("a"), None);
        assert_eq!(kept("null").str_field("a"), None);
    }
}
