//! Reading a request's members.

use super::error::RequestError;
use crate::fields::{Refusal, Wrong, check_length, has_more_characters};
use serde_json::Value;

/// The most characters of an id.
pub(super) const MAX_ID: usize = 256;

/// An object of a request, and its JSON pointer.
pub(super) type Fields<'a> = crate::fields::Fields<'a, RequestError>;

/// The type of a value, as errors name it.
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

impl Refusal for RequestError {
    const FLAG: &'static str = "a boolean";

    fn refuse(pointer: String, wrong: Wrong<'_>) -> Self {
        match wrong {
            Wrong::Missing(_) => Self::Missing { pointer },
            Wrong::Kind(expected, value) => Self::Type {
                pointer,
                expected,
                got: kind(value),
            },
            Wrong::Long(text, max) => Self::TooLong {
                pointer,
                max,
                len: text.chars().count(),
            },
            Wrong::Many(len, max) => Self::TooMany { pointer, max, len },
        }
    }

    fn is_longer(text: &str, max: usize) -> bool {
        has_more_characters(text, max)
    }
}

pub(super) fn wrong(pointer: String, expected: &'static str, value: &Value) -> RequestError {
    RequestError::refuse(pointer, Wrong::Kind(expected, value))
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

impl Fields<'_> {
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

    /// Reads an object's type, which must be one of a list.
    pub(super) fn kind(
        &self,
        allowed: &'static [&'static str],
    ) -> Result<&'static str, RequestError> {
        self.word("type", allowed)?
            .ok_or_else(|| self.missing("type"))
    }

    fn outside(&self, key: &str, expected: &'static str) -> RequestError {
        let pointer = self.at(key);
        RequestError::Outside { pointer, expected }
    }

    /// Reads a number from 0 to `max`; `expected` is the text of the error.
    pub(super) fn number(
        &self,
        key: &str,
        max: f64,
        expected: &'static str,
    ) -> Result<Option<f64>, RequestError> {
        match self.read(key, "a number", Value::as_f64)? {
            Some(number) if !(0.0..=max).contains(&number) => Err(self.outside(key, expected)),
            number => Ok(number),
        }
    }

    /// Reads a whole number of at least `min`; `expected` is the text of the error.
    pub(super) fn whole(
        &self,
        key: &str,
        min: u64,
        expected: &'static str,
    ) -> Result<Option<u64>, RequestError> {
        let number = self.read(key, "an integer", Value::as_number)?;
        let whole = number.map(|number| number.as_u64().filter(|number| *number >= min));
        whole
            .map(|whole| whole.ok_or_else(|| self.outside(key, expected)))
            .transpose()
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &str, max: usize) -> Result<Vec<String>, RequestError> {
        let list = self.placed(key, max)?.unwrap_or_default().into_iter();
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
