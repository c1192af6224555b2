//! Reading the members of an object in the JSON of protocol buffers.
//!
//! There, a member has two names (`contextId`, `context_id`), null is absent, and a number may be a
//! text. That last one lets a query be read as the same object.

use super::error::RequestError;
use crate::fields::{Refusal, Wrong};
use serde_json::{Map, Value};

/// The most bytes of an id.
pub(super) const MAX_ID: usize = 512;

/// An object, and its JSON pointer.
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
    /// Reads a string of at most `max` bytes. An empty string counts as absent.
    pub(super) fn bounded_text(
        &self,
        key: &str,
        max: usize,
    ) -> Result<Option<&'a str>, RequestError> {
        Ok(self.text(key, max)?.filter(|text| !text.is_empty()))
    }

    /// A whole number, which may be written as a fraction of nothing (`2.0`).
    pub(super) fn whole(&self, key: &str) -> Result<Option<usize>, RequestError> {
        let whole = |value: &Value| {
            let number = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
            };
            let whole = number
                .split_once('.')
                .map_or(number.as_str(), |(whole, rest)| {
                    let is_zero = !rest.is_empty() && rest.bytes().all(|digit| digit == b'0');
                    if is_zero { whole } else { "" }
                });
            whole.parse().ok()
        };
        self.read(key, "a whole number from 0 on", whole)
    }
}

/// The `snake_case` name of a field, as in `a2a.proto`.
fn snake(key: &str) -> String {
    key.chars().fold(String::new(), |mut name, letter| {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_whole_number_is_read_however_the_json_of_protocol_buffers_writes_it() {
        for (written, read) in [
            (json!(2), Some(2)),
            (json!(2.0), Some(2)),
            (json!("2"), Some(2)),
            (json!("2.00"), Some(2)),
            (json!(2.5), None),
            (json!("2."), None),
            (json!(-1), None),
            (json!(true), None),
            (json!(""), None),
        ] {
            let object = json!({"historyLength": written});
            let fields = Fields::of(&object, "").unwrap();
            assert_eq!(
                fields.whole("historyLength").ok().flatten(),
                read,
                "{written}"
            );
        }
    }
}
