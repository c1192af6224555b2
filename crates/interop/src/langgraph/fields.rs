//! Reading the members of an object. Null is absent. An unknown member is refused.

use super::error::RequestError;
use crate::fields::{Refusal, Wrong};
use serde_json::{Map, Value};

/// The most bytes of an id or a name.
pub(super) const MAX_ID: usize = 512;
/// Maximum size of a client's own data, in bytes.
pub(super) const MAX_NOTED: usize = 1 << 16;

/// An object, and its JSON pointer.
pub(super) type Fields<'a> = crate::fields::Fields<'a, RequestError>;

impl Refusal for RequestError {
    fn refuse(pointer: String, wrong: Wrong<'_>) -> Self {
        Self::at(pointer, wrong)
    }
}

impl<'a> Fields<'a> {
    /// An object with no members but these.
    pub(super) fn closed(
        value: &'a Value,
        pointer: impl Into<std::borrow::Cow<'a, str>>,
        known: &[&str],
    ) -> Result<Self, RequestError> {
        let fields = Self::of(value, pointer)?;
        let mut keys = fields.map().keys();
        match keys.find(|key| !known.contains(&key.as_str())) {
            None => Ok(fields),
            Some(key) => {
                let what = format!("is not known here; expected one of {}", known.join(", "));
                Err(fields.wrong(key, what))
            }
        }
    }

    /// The error of a member.
    pub(super) fn wrong(&self, key: &str, what: impl std::fmt::Display) -> RequestError {
        RequestError::at(self.at(key), what)
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, RequestError> {
        let word = self.get(key).map(Value::as_str);
        word.map(|word| choose(word, words, || self.at(key)))
            .transpose()
    }

    /// A whole number within bounds.
    pub(super) fn whole(&self, key: &str, min: u64, max: u64) -> Result<Option<u64>, RequestError> {
        let number = self.get(key).map(Value::as_u64);
        number
            .map(|number| within(number, (min, max), || self.at(key)))
            .transpose()
    }

    /// Reads a list of at most `max` strings, each at most [`MAX_ID`] bytes long.
    pub(super) fn texts(&self, key: &str, max: usize) -> Result<Vec<String>, RequestError> {
        let list = self.placed(key, max)?.unwrap_or_default().into_iter();
        let texts = list.map(|(pointer, entry)| match entry.as_str() {
            Some(text) if text.len() <= MAX_ID => Ok(text.to_owned()),
            Some(_) | None => {
                let what = format!("expected a string of at most {MAX_ID} bytes");
                Err(RequestError::at(pointer, what))
            }
        });
        texts.collect()
    }

    /// Reads an object of the client's own data, at most `MAX_NOTED` bytes long.
    pub(super) fn noted(&self, key: &str) -> Result<Option<Map<String, Value>>, RequestError> {
        let noted = self.read(key, "an object", |it| it.as_object().map(|map| (it, map)))?;
        if noted.is_some_and(|(whole, _)| whole.to_string().len() > MAX_NOTED) {
            return Err(self.wrong(key, format!("expected at most {MAX_NOTED} bytes")));
        }
        Ok(noted.map(|(_, map)| map.clone()))
    }

    /// Refuses a member that this server does not support. Values that request nothing are accepted:
    /// null, false, 0 or an empty list.
    pub(super) fn refuse(&self, key: &str, why: &str) -> Result<(), RequestError> {
        let asks = match self.get(key) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            Some(Value::Bool(true) | Value::String(_) | Value::Object(_)) => true,
        };
        if asks {
            return Err(self.wrong(key, why));
        }
        Ok(())
    }
}

/// Maps one of the allowed words to its value.
pub(super) fn choose<T: Copy>(
    word: Option<&str>,
    words: &[(&str, T)],
    at: impl FnOnce() -> String,
) -> Result<T, RequestError> {
    let found = words.iter().find(|(name, _)| word == Some(name));
    let wrong = || RequestError::at(at(), expected(words.iter().map(|it| it.0)));
    found.map(|(_, meant)| *meant).ok_or_else(wrong)
}

/// A whole number within bounds.
pub(super) fn within(
    number: Option<u64>,
    (min, max): (u64, u64),
    at: impl FnOnce() -> String,
) -> Result<u64, RequestError> {
    let number = number.filter(|it| (min..=max).contains(it));
    let what = || format!("expected a whole number from {min} to {max}");
    number.ok_or_else(|| RequestError::at(at(), what()))
}

/// The text of an error that lists the allowed words.
pub(super) fn expected<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
    format!("expected one of {}", words.join(", "))
}
