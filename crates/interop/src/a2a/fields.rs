//! Reading the members of an object in the JSON of protocol buffers.
//!
//! There, a member has two names (`contextId`, `context_id`), null is absent, and a number may be a text.
//! That last one lets a query be read as the same object.

use super::error::RequestError;
use crate::fields::{Refusal, Wrong};
use serde_json::{Map, Value};

/// The most bytes of an id.
pub(super) const MAX_ID: usize = 512;

/// An object, and where it stands.
pub(super) type Fields<'a> = crate::fields::Fields<'a, RequestError>;

impl Refusal for RequestError {
    fn refuse(pointer: String, wrong: Wrong<'_>) -> Self {
        match wrong {
            Wrong::Missing(_) => Self::param(pointer, "expected a value, found none"),
            Wrong::Kind(..) | Wrong::Long(..) | Wrong::Many(..) => Self::param(pointer, wrong),
        }
    }

    fn find<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
        map.get(key).or_else(|| map.get(&snake(key)))
    }

    fn flag(value: &Value) -> Option<bool> {
        let named = || value.as_str()?.parse().ok();
        value.as_bool().or_else(named)
    }
}

impl<'a> Fields<'a> {
    /// A text of at most so many bytes; an empty one is absent.
    pub(super) fn said(&self, key: &str, max: usize) -> Result<Option<&'a str>, RequestError> {
        Ok(self.text(key, max)?.filter(|text| !text.is_empty()))
    }

    /// A whole number.
    pub(super) fn whole(&self, key: &str) -> Result<Option<usize>, RequestError> {
        let whole = |value: &Value| match value.as_str() {
            Some(text) => text.parse().ok(),
            None => usize::try_from(value.as_u64()?).ok(),
        };
        self.read(key, "a whole number from 0 on", whole)
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
