//! Reading the members of an object in the JSON of protocol buffers, each with its place.
//!
//! There, a member has two names (`contextId`, `context_id`), null is absent, and a number may be a text.
//! That last one lets a query be read as the same object.

use super::error::RequestError;
use serde_json::{Map, Value};

/// The most bytes of an id.
pub(super) const MAX_ID: usize = 512;

/// An object, and where it stands.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    pointer: String,
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, pointer: impl Into<String>) -> Result<Self, RequestError> {
        let pointer = pointer.into();
        let Some(map) = value.as_object() else {
            return Err(RequestError::param(pointer, "expected an object"));
        };
        Ok(Self { map, pointer })
    }

    /// Where a member stands.
    pub(super) fn at(&self, key: &str) -> String {
        format!("{}/{key}", self.pointer)
    }

    /// A member that is there, be it null.
    pub(super) fn given(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).or_else(|| self.map.get(&snake(key)))
    }

    /// A member that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.given(key).filter(|value| !value.is_null())
    }

    pub(super) fn missing(&self, key: &str) -> RequestError {
        RequestError::param(self.at(key), "expected a value, found none")
    }

    /// A text of at most so many bytes; an empty one is absent.
    pub(super) fn text(&self, key: &str, max: usize) -> Result<Option<&'a str>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let Some(text) = value.as_str() else {
            return Err(RequestError::param(self.at(key), "expected a string"));
        };
        if text.len() > max {
            let what = format!("expected at most {max} bytes");
            return Err(RequestError::param(self.at(key), what));
        }
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, RequestError> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(RequestError::param(self.at(key), "expected true or false")),
        }
    }

    /// A whole number from `min` on.
    pub(super) fn whole(&self, key: &str, min: usize) -> Result<Option<usize>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let number = match value {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.as_u64(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let number = number.and_then(|it| usize::try_from(it).ok());
        let number = number.filter(|number| *number >= min);
        let error = || {
            RequestError::param(
                self.at(key),
                format!("expected a whole number from {min} on"),
            )
        };
        number.map(Some).ok_or_else(error)
    }

    /// A list of at most so many entries.
    pub(super) fn list(&self, key: &str, max: usize) -> Result<&'a [Value], RequestError> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::Array(list)) if list.len() <= max => Ok(list),
            Some(Value::Array(_)) => Err(RequestError::param(
                self.at(key),
                format!("expected at most {max} entries"),
            )),
            Some(_) => Err(RequestError::param(self.at(key), "expected an array")),
        }
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<Fields<'a>>, RequestError> {
        let value = self.get(key);
        value
            .map(|value| Fields::of(value, self.at(key)))
            .transpose()
    }
}

/// A name as `a2a.proto` has it.
fn snake(key: &str) -> String {
    key.chars().fold(String::new(), |mut name, letter| {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
        name
    })
}
