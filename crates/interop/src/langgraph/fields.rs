//! Reading the members of an object, each with its place. Null is absent; what is not known is refused.

use super::error::RequestError;
use serde_json::{Map, Value};

/// The most bytes of an id or a name.
pub(super) const MAX_ID: usize = 512;
/// The most bytes of what a client notes.
pub(super) const MAX_NOTED: usize = 1 << 16;

/// An object, and where it stands.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    pointer: String,
}

impl<'a> Fields<'a> {
    /// An object with no members but these.
    pub(super) fn of(
        value: &'a Value,
        pointer: impl Into<String>,
        known: &[&str],
    ) -> Result<Self, RequestError> {
        let fields = Self::open(value, pointer)?;
        let unknown = fields.map.keys().find(|key| !known.contains(&key.as_str()));
        match unknown {
            None => Ok(fields),
            Some(key) => {
                let what = format!("is not known here; expected one of {}", known.join(", "));
                Err(RequestError::at(fields.at(key), what))
            }
        }
    }

    /// An object that may have other members.
    pub(super) fn open(value: &'a Value, pointer: impl Into<String>) -> Result<Self, RequestError> {
        let pointer = pointer.into();
        let Some(map) = value.as_object() else {
            return Err(RequestError::at(pointer, "expected an object"));
        };
        Ok(Self { map, pointer })
    }

    /// Where a member stands.
    pub(super) fn at(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, crate::request::token(key))
    }

    /// The place of the whole.
    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Whether a member is there, be it null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// A member that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// A text of at most so many bytes.
    pub(super) fn text(&self, key: &str, max: usize) -> Result<Option<&'a str>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let Some(text) = value.as_str() else {
            return Err(RequestError::at(self.at(key), "expected a string"));
        };
        if text.len() > max {
            let what = format!("expected at most {max} bytes");
            return Err(RequestError::at(self.at(key), what));
        }
        Ok(Some(text))
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let word = value.as_str();
        let found = words.iter().find(|(name, _)| word == Some(name));
        found
            .map(|(_, meant)| Some(*meant))
            .ok_or_else(|| RequestError::at(self.at(key), expected(words.iter().map(|it| it.0))))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, RequestError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(RequestError::at(self.at(key), "expected true or false")),
        }
    }

    /// A whole number within bounds.
    pub(super) fn whole(&self, key: &str, min: u64, max: u64) -> Result<Option<u64>, RequestError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let number = value.as_u64().filter(|it| (min..=max).contains(it));
        let what = || format!("expected a whole number from {min} to {max}");
        let number = number.ok_or_else(|| RequestError::at(self.at(key), what()));
        number.map(Some)
    }

    /// A list of at most so many entries.
    pub(super) fn list(&self, key: &str, max: usize) -> Result<&'a [Value], RequestError> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::Array(list)) if list.len() <= max => Ok(list),
            Some(Value::Array(_)) => {
                let what = format!("expected at most {max} entries");
                Err(RequestError::at(self.at(key), what))
            }
            Some(_) => Err(RequestError::at(self.at(key), "expected an array")),
        }
    }

    /// Words of a list of at most so many.
    pub(super) fn texts(&self, key: &str, max: usize) -> Result<Vec<String>, RequestError> {
        let list = self.list(key, max)?.iter().enumerate();
        let texts = list.map(|(place, entry)| match entry.as_str() {
            Some(text) if text.len() <= MAX_ID => Ok(text.to_owned()),
            Some(_) | None => {
                let what = format!("expected a string of at most {MAX_ID} bytes");
                Err(RequestError::at(format!("{}/{place}", self.at(key)), what))
            }
        });
        texts.collect()
    }

    /// What a client notes: an object of a bounded size.
    pub(super) fn noted(&self, key: &str) -> Result<Option<Map<String, Value>>, RequestError> {
        match self.get(key) {
            None => Ok(None),
            Some(value @ Value::Object(map)) => {
                if value.to_string().len() > MAX_NOTED {
                    let what = format!("expected at most {MAX_NOTED} bytes");
                    return Err(RequestError::at(self.at(key), what));
                }
                Ok(Some(map.clone()))
            }
            Some(_) => Err(RequestError::at(self.at(key), "expected an object")),
        }
    }

    /// Refuses a member that asks for something; what asks for nothing (null, false, none of a list) is taken.
    pub(super) fn refuse(&self, key: &str, why: &str) -> Result<(), RequestError> {
        let asks = match self.get(key) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            Some(Value::Bool(true) | Value::String(_) | Value::Object(_)) => true,
        };
        if asks {
            return Err(RequestError::at(self.at(key), why));
        }
        Ok(())
    }
}

/// What stands in a refusal of a word.
pub(super) fn expected<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
    format!("expected one of {}", words.join(", "))
}
