//! JSON that is kept as it came.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// A JSON value kept as its text: key order, number spellings and explicit nulls stay what they were.
///
/// Cloning shares the text. Equality is equality of the text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Payload(Arc<RawValue>);

impl Payload {
    /// Keeps this text, if it is JSON.
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

    /// The text of the string under `key`, if this is an object that has one.
    pub fn str_field(&self, key: &str) -> Option<String> {
        match self.value() {
            Value::Object(mut map) => match map.get_mut(key).map(Value::take) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            },
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => None,
        }
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
