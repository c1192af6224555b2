//! JSON that is shared.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A JSON value that costs one pointer to copy. A tool's result is in its record, in the conversation
/// and in an event. It reads and serializes like a [`Value`].
///
/// A value made from text is parsed on first access. A provider's additional fields are stored for
/// readers that want them, and mostly nobody reads them.
#[derive(Clone)]
pub struct SharedJson(Kept);

#[derive(Clone)]
enum Kept {
    Null,
    Value(Arc<Value>),
    Text(Arc<Text>),
}

struct Text {
    text: Box<str>,
    value: OnceLock<Value>,
}

impl SharedJson {
    /// Stores the text of a value.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(Kept::Text(Arc::new(Text {
            text: raw.get().into(),
            value: OnceLock::new(),
        })))
    }

    /// The value. A text that can't be parsed, such as one nested a thousand levels deep, becomes a
    /// string.
    pub fn value(&self) -> &Value {
        match &self.0 {
            Kept::Null => &Value::Null,
            Kept::Value(value) => value,
            Kept::Text(kept) => kept.value.get_or_init(|| {
                serde_json::from_str(&kept.text).unwrap_or_else(|_| Value::from(&*kept.text))
            }),
        }
    }
}

impl Deref for SharedJson {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value()
    }
}

impl From<Value> for SharedJson {
    fn from(value: Value) -> Self {
        Self(match value {
            Value::Null => Kept::Null,
            value @ (Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_)) => Kept::Value(Arc::new(value)),
        })
    }
}

impl From<&str> for SharedJson {
    fn from(text: &str) -> Self {
        Value::from(text).into()
    }
}

impl From<String> for SharedJson {
    fn from(text: String) -> Self {
        Value::from(text).into()
    }
}

impl From<SharedJson> for Value {
    /// Copies only what others have, too.
    fn from(json: SharedJson) -> Self {
        match json.0 {
            Kept::Value(value) => Arc::unwrap_or_clone(value),
            Kept::Null => Value::Null,
            Kept::Text(_) => json.value().clone(),
        }
    }
}

impl Default for SharedJson {
    /// Null.
    fn default() -> Self {
        Self(Kept::Null)
    }
}

impl PartialEq for SharedJson {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.value(), other.value()) || self.value() == other.value()
    }
}

impl Eq for SharedJson {}

impl PartialEq<Value> for SharedJson {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}

impl<'a> PartialEq<&'a str> for SharedJson {
    fn eq(&self, other: &&'a str) -> bool {
        self.value() == other
    }
}

impl PartialEq<f64> for SharedJson {
    fn eq(&self, other: &f64) -> bool {
        self.value() == other
    }
}

impl PartialEq<str> for SharedJson {
    fn eq(&self, other: &str) -> bool {
        self.value() == other
    }
}

impl std::fmt::Display for SharedJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value().fmt(f)
    }
}

impl std::fmt::Debug for SharedJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value().fmt(f)
    }
}

impl Serialize for SharedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raw(text: &str) -> SharedJson {
        SharedJson::from_raw(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn a_text_reads_and_is_written_as_the_value_it_is() {
        let kept = raw("{\n \"a\": [1, 2.50],\n \"a\": null, \"b\": \"\\u0061\"}");
        assert_eq!(kept, json!({"a": null, "b": "a"}));
        assert_eq!(kept.get("b"), Some(&json!("a")));
        let written = serde_json::to_string(&kept).unwrap();
        assert_eq!(written, r#"{"a":null,"b":"a"}"#);
        assert_eq!(serde_json::from_str::<SharedJson>(&written).unwrap(), kept);
        assert_eq!(format!("{kept:?}"), format!("{:?}", kept.value()));
    }

    #[test]
    fn what_no_reader_of_values_takes_is_a_string() {
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        assert_eq!(raw(&deep), json!(deep));
        assert_eq!(raw(r#""\ud800""#), json!("\"\\ud800\""));
    }
}
