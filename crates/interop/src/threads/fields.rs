//! Reading a request's members, each with its place.

use super::error::RequestError;
use crate::request::token;
use serde_json::{Map, Value};

/// An object of a request, and where it stands.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    pointer: String,
}

/// What a value is, in the words of refusals.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

pub(super) fn wrong(pointer: String, expected: &'static str, value: &Value) -> RequestError {
    RequestError::Type {
        pointer,
        expected,
        got: kind(value),
    }
}

/// Refuses a text of more characters than it may have.
pub(super) fn check_length(pointer: &str, text: &str, max: usize) -> Result<(), RequestError> {
    // As many characters as bytes at most: most texts are not counted.
    if text.len() <= max {
        return Ok(());
    }
    let len = text.chars().count();
    if len <= max {
        return Ok(());
    }
    let pointer = pointer.to_owned();
    Err(RequestError::TooLong { pointer, max, len })
}

/// A word of a list, or why it is none of them.
pub(super) fn check_word(
    pointer: String,
    word: &str,
    allowed: &'static [&'static str],
) -> Result<&'static str, RequestError> {
    let found = allowed.iter().find(|known| **known == word);
    found.copied().ok_or_else(|| RequestError::Value {
        pointer,
        value: word.chars().take(64).collect(),
        allowed,
    })
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, pointer: impl Into<String>) -> Result<Self, RequestError> {
        let pointer = pointer.into();
        let Value::Object(map) = value else {
            return Err(wrong(pointer, "an object", value));
        };
        Ok(Self { map, pointer })
    }

    /// The pointer of a member.
    pub(super) fn at(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, token(key))
    }

    pub(super) fn entries(&self) -> impl ExactSizeIterator<Item = (&'a String, &'a Value)> {
        self.map.iter()
    }

    pub(super) fn missing(&self, key: &str) -> RequestError {
        let pointer = self.at(key);
        RequestError::Missing { pointer }
    }

    /// A member that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Whether a member is there, be it null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// A text of at most so many characters.
    pub(super) fn text(&self, key: &str, max: usize) -> Result<Option<&'a str>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = value.as_str();
        let text = text.ok_or_else(|| wrong(self.at(key), "a string", value))?;
        check_length(&self.at(key), text, max)?;
        Ok(Some(text))
    }

    pub(super) fn required(&self, key: &str, max: usize) -> Result<&'a str, RequestError> {
        self.text(key, max)?.ok_or_else(|| self.missing(key))
    }

    /// A word of a list.
    pub(super) fn word(
        &self,
        key: &str,
        allowed: &'static [&'static str],
    ) -> Result<Option<&'static str>, RequestError> {
        let word = self.text(key, usize::MAX)?;
        word.map(|word| check_word(self.at(key), word, allowed))
            .transpose()
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let flag = value.as_bool();
        flag.map(Some)
            .ok_or_else(|| wrong(self.at(key), "a boolean", value))
    }

    /// A number from 0 to `max`; `expected` says so.
    pub(super) fn number(
        &self,
        key: &str,
        max: f64,
        expected: &'static str,
    ) -> Result<Option<f64>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let number = value.as_f64();
        let number = number.ok_or_else(|| wrong(self.at(key), "a number", value))?;
        if (0.0..=max).contains(&number) {
            return Ok(Some(number));
        }
        let pointer = self.at(key);
        Err(RequestError::Outside { pointer, expected })
    }

    /// A whole number of at least `min`; `expected` says so.
    pub(super) fn whole(
        &self,
        key: &str,
        min: u64,
        expected: &'static str,
    ) -> Result<Option<u64>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        if !value.is_number() {
            return Err(wrong(self.at(key), "an integer", value));
        }
        let pointer = || self.at(key);
        let number = value.as_u64().filter(|number| *number >= min);
        number.map(Some).ok_or_else(|| RequestError::Outside {
            pointer: pointer(),
            expected,
        })
    }

    /// A list of at most so many entries, each with its place.
    pub(super) fn list(
        &self,
        key: &str,
        max: usize,
    ) -> Result<Option<Vec<(String, &'a Value)>>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let pointer = self.at(key);
        let Value::Array(list) = value else {
            return Err(wrong(pointer, "an array", value));
        };
        let len = list.len();
        if len > max {
            return Err(RequestError::TooMany { pointer, max, len });
        }
        let placed = list.iter().enumerate();
        let placed = placed.map(|(place, value)| (format!("{pointer}/{place}"), value));
        Ok(Some(placed.collect()))
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<Fields<'a>>, RequestError> {
        let value = self.get(key);
        value
            .map(|value| Fields::of(value, self.at(key)))
            .transpose()
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &str, max: usize) -> Result<Vec<String>, RequestError> {
        let list = self.list(key, max)?.unwrap_or_default().into_iter();
        let texts = list.map(|(pointer, value)| {
            let Value::String(text) = value else {
                return Err(wrong(pointer, "a string", value));
            };
            check_length(&pointer, text, MAX_ID)?;
            Ok(text.clone())
        });
        texts.collect()
    }
}

/// The most characters of an id.
pub(super) const MAX_ID: usize = 256;
