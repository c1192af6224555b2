//! Reads the members of a request, with error messages in the protocol's form.

use super::error::RequestError;
use crate::fields::{Refusal, Wrong, check_length, has_more_characters};
use crate::metadata::{EXPECTED, is_aitp, is_own};
use serde_json::{Map, Value};

/// An object of a request, with its JSON Pointer.
pub(crate) type Fields<'a> = crate::fields::Fields<'a, RequestError>;

impl Refusal for RequestError {
    fn refuse(pointer: String, wrong: Wrong<'_>) -> Self {
        let (code, message) = match wrong {
            Wrong::Missing(_) => (
                "missing_required_parameter",
                format!("Missing required parameter: {pointer}."),
            ),
            Wrong::Kind(expected, _) => return self::wrong(pointer, expected),
            Wrong::Long(_, max) => return too_long(pointer, max),
            Wrong::Many(_, max) => (
                "array_above_max_length",
                format!("{pointer}: at most {max} elements are allowed."),
            ),
        };
        Self::at(pointer, code, message)
    }

    fn is_longer(text: &str, max: usize) -> bool {
        has_more_characters(text, max)
    }
}

fn error(pointer: impl Into<String>, code: &'static str, message: &str) -> RequestError {
    let pointer = pointer.into();
    let shown = if pointer.is_empty() {
        "the request"
    } else {
        &pointer
    };
    let message = format!("{shown}: {message}.");
    RequestError::at(pointer, code, message)
}

pub(crate) fn wrong(pointer: impl Into<String>, expected: &str) -> RequestError {
    error(pointer, "invalid_type", &format!("expected {expected}"))
}

pub(crate) fn invalid(pointer: impl Into<String>, message: &str) -> RequestError {
    error(pointer, "invalid_value", message)
}

pub(crate) fn unsupported(pointer: impl Into<String>, message: &str) -> RequestError {
    error(pointer, "unsupported_value", message)
}

impl<'a> Fields<'a> {
    /// A number in this range.
    pub(crate) fn number(
        &self,
        key: &str,
        low: f64,
        high: f64,
    ) -> Result<Option<f64>, RequestError> {
        match self.read(key, "a number", Value::as_f64)? {
            Some(number) if !(low..=high).contains(&number) => {
                let message = format!("expected {low} to {high}, got {number}");
                Err(invalid(self.at(key), &message))
            }
            number => Ok(number),
        }
    }

    /// An integer of at least `low`.
    pub(crate) fn count(
        &self,
        key: &str,
        low: u64,
        high: u64,
    ) -> Result<Option<u64>, RequestError> {
        let range = match self.read(key, "a whole number", Value::as_u64)? {
            Some(count) if count < low && high == u64::MAX => {
                format!("expected {low} or more, got {count}")
            }
            Some(count) if !(low..=high).contains(&count) => {
                format!("expected {low} to {high}, got {count}")
            }
            count => return Ok(count),
        };
        Err(invalid(self.at(key), &range))
    }

    /// A string that is one of `words`.
    pub(crate) fn word(&self, key: &str, words: &[&str]) -> Result<Option<&'a str>, RequestError> {
        match self.text(key, usize::MAX)? {
            Some(word) if !words.contains(&word) => {
                let message = format!("{word:?} is none of {}", words.join(", "));
                Err(invalid(self.at(key), &message))
            }
            word => Ok(word),
        }
    }
}

fn too_long(pointer: impl Into<String>, limit: usize) -> RequestError {
    let pointer = pointer.into();
    let message = format!("{pointer}: at most {limit} characters are allowed.");
    RequestError::at(pointer, "string_above_max_length", message)
}

/// Metadata of an object: at most 16 pairs, keys of at most 64 and values of at most 512 characters.
pub(crate) fn metadata(fields: &Fields<'_>, key: &str) -> Result<Map<String, Value>, RequestError> {
    let Some(pairs) = fields.object(key)? else {
        return Ok(Map::new());
    };
    if pairs.map().len() > 16 {
        return Err(invalid(fields.at(key), "at most 16 pairs are allowed"));
    }
    for (name, value) in pairs.map() {
        let at = pairs.at(name);
        check_length(&at, name, 64)?;
        let text = value.as_str();
        let text = text.ok_or_else(|| wrong(at.as_str(), "a string"))?;
        check_length(&at, text, 512)?;
    }
    Ok(pairs.map().clone())
}

/// The metadata of a conversation, which becomes its thread's. It must not contain keys that are
/// reserved for the server or AITP.
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
