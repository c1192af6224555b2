//! Reading members of a request, with what was expected where.

use super::error::RequestError;
use crate::metadata::{EXPECTED, is_aitp, is_own};
use crate::request::token;
use serde_json::{Map, Value};

/// An object of a request, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    pointer: &'a str,
}

pub(super) fn wrong(pointer: impl Into<String>, expected: &str) -> RequestError {
    let pointer = pointer.into();
    let message = format!("{}: expected {expected}.", shown(&pointer));
    RequestError::at(pointer, "invalid_type", message)
}

pub(super) fn invalid(pointer: impl Into<String>, message: &str) -> RequestError {
    let pointer = pointer.into();
    let message = format!("{}: {message}.", shown(&pointer));
    RequestError::at(pointer, "invalid_value", message)
}

pub(super) fn unsupported(pointer: impl Into<String>, message: &str) -> RequestError {
    let pointer = pointer.into();
    let message = format!("{}: {message}.", shown(&pointer));
    RequestError::at(pointer, "unsupported_value", message)
}

fn shown(pointer: &str) -> &str {
    if pointer.is_empty() {
        "the request"
    } else {
        pointer
    }
}

impl<'a> Fields<'a> {
    /// The members of this value, if it is an object.
    pub(super) fn of(value: &'a Value, pointer: &'a str) -> Result<Self, RequestError> {
        let map = value
            .as_object()
            .ok_or_else(|| wrong(pointer, "an object"))?;
        Ok(Self { map, pointer })
    }

    /// Where a member stands.
    pub(super) fn at(&self, key: &str) -> String {
        format!("{}/{key}", self.pointer)
    }

    /// A member that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// The error of a member that must be there.
    pub(super) fn missing(&self, key: &str) -> RequestError {
        let message = format!("Missing required parameter: {}.", self.at(key));
        RequestError::at(self.at(key), "missing_required_parameter", message)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = value.as_str();
        text.map(Some)
            .ok_or_else(|| wrong(self.at(key), "a string"))
    }

    /// A text of at most so many characters.
    pub(super) fn short(&self, key: &str, limit: usize) -> Result<Option<&'a str>, RequestError> {
        let text = self.text(key)?;
        if text.is_some_and(|text| is_longer(text, limit)) {
            return Err(too_long(self.at(key), limit));
        }
        Ok(text)
    }

    /// A text that must be there.
    pub(super) fn needed(&self, key: &str, limit: usize) -> Result<&'a str, RequestError> {
        self.short(key, limit)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let flag = value.as_bool();
        flag.map(Some)
            .ok_or_else(|| wrong(self.at(key), "true or false"))
    }

    /// A number in this range.
    pub(super) fn number(
        &self,
        key: &str,
        low: f64,
        high: f64,
    ) -> Result<Option<f64>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let number = value
            .as_f64()
            .ok_or_else(|| wrong(self.at(key), "a number"))?;
        if (low..=high).contains(&number) {
            return Ok(Some(number));
        }
        Err(invalid(
            self.at(key),
            &format!("expected {low} to {high}, got {number}"),
        ))
    }

    /// A whole number that is not below `low`.
    pub(super) fn count(
        &self,
        key: &str,
        low: u64,
        high: u64,
    ) -> Result<Option<u64>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let count = value
            .as_u64()
            .ok_or_else(|| wrong(self.at(key), "a whole number"))?;
        if (low..=high).contains(&count) {
            return Ok(Some(count));
        }
        let range = if high == u64::MAX {
            format!("expected {low} or more, got {count}")
        } else {
            format!("expected {low} to {high}, got {count}")
        };
        Err(invalid(self.at(key), &range))
    }

    /// One of these words.
    pub(super) fn word(&self, key: &str, words: &[&str]) -> Result<Option<&'a str>, RequestError> {
        let Some(word) = self.text(key)? else {
            return Ok(None);
        };
        if words.contains(&word) {
            return Ok(Some(word));
        }
        let message = format!("{word:?} is none of {}", words.join(", "));
        Err(invalid(self.at(key), &message))
    }

    /// A list of at most so many elements.
    pub(super) fn list(
        &self,
        key: &str,
        limit: usize,
    ) -> Result<Option<&'a [Value]>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let list = value
            .as_array()
            .ok_or_else(|| wrong(self.at(key), "an array"))?;
        if list.len() <= limit {
            return Ok(Some(list));
        }
        let message = format!("{}: at most {limit} elements are allowed.", self.at(key));
        Err(RequestError::at(
            self.at(key),
            "array_above_max_length",
            message,
        ))
    }
}

/// Whether a text has more characters than this; looks no further than it must.
fn is_longer(text: &str, limit: usize) -> bool {
    text.len() > limit && text.chars().nth(limit).is_some()
}

pub(super) fn too_long(pointer: impl Into<String>, limit: usize) -> RequestError {
    let pointer = pointer.into();
    let message = format!("{pointer}: at most {limit} characters are allowed.");
    RequestError::at(pointer, "string_above_max_length", message)
}

/// Metadata of an object: at most 16 pairs, keys of at most 64 and values of at most 512 characters.
pub(super) fn metadata(fields: &Fields<'_>, key: &str) -> Result<Map<String, Value>, RequestError> {
    let Some(value) = fields.get(key) else {
        return Ok(Map::new());
    };
    let at = fields.at(key);
    let pairs = value
        .as_object()
        .ok_or_else(|| wrong(at.as_str(), "an object"))?;
    if pairs.len() > 16 {
        return Err(invalid(at, "at most 16 pairs are allowed"));
    }
    for (name, value) in pairs {
        let at = format!("{at}/{}", token(name));
        if is_longer(name, 64) {
            return Err(too_long(at, 64));
        }
        let text = value
            .as_str()
            .ok_or_else(|| wrong(at.as_str(), "a string"))?;
        if is_longer(text, 512) {
            return Err(too_long(at, 512));
        }
    }
    Ok(pairs.clone())
}

/// The metadata of a conversation, which is its thread's: it has no members that are the server's own
/// there, or AITP's.
pub(super) fn thread_metadata(fields: &Fields<'_>) -> Result<Map<String, Value>, RequestError> {
    let pairs = metadata(fields, "metadata")?;
    match pairs.keys().find(|key| is_own(key) || is_aitp(key)) {
        Some(key) if is_aitp(key) => Err(invalid(
            format!("/metadata/{key}"),
            "expected a key that is not AITP's own, as \"actors\" and \"parent_id\" are",
        )),
        Some(key) => Err(invalid(
            format!("/metadata/{key}"),
            &format!("expected {EXPECTED}"),
        )),
        None => Ok(pairs),
    }
}
