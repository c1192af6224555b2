//! Strings that the parts of a message have already, referred to.

use std::collections::BTreeMap;
use thread::Json;
use thread::json::{Step, pointer};

/// Strings of more characters than these are not written twice.
const SHORT: usize = 32;

/// The long strings of a message, by what they are and by what a data URL has.
pub(super) struct Known<'a> {
    whole: BTreeMap<&'a str, String>,
    data: BTreeMap<&'a str, String>,
}

impl<'a> Known<'a> {
    pub(super) fn of(message: &'a Json) -> Self {
        let mut known = Self {
            whole: BTreeMap::new(),
            data: BTreeMap::new(),
        };
        if let Some(parts) = message.get("parts") {
            known.note(parts, "/parts");
        }
        known
    }

    /// Records the long strings of a value. The recursion is as deep as the value nests; the parser
    /// limits that.
    fn note(&mut self, json: &'a Json, at: &str) {
        match json {
            Json::String(string) if is_long(string) => {
                if let Some(data) = data_of(string) {
                    self.data.entry(data).or_insert_with(|| at.to_owned());
                }
                self.whole.entry(string).or_insert_with(|| at.to_owned());
            }
            Json::Array(items) => {
                for (place, item) in items
                    .iter()
                    .enumerate()
                    .filter(|(_, item)| may_be_long(item))
                {
                    self.note(item, &format!("{at}/{place}"));
                }
            }
            Json::Object(object) => {
                for (key, value) in object.iter().filter(|(_, value)| may_be_long(value)) {
                    self.note(value, &format!("{at}{}", pointer([Step::Key(key)])));
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }

    pub(super) fn packed(&self, json: Json) -> Json {
        match json {
            Json::String(string) => self.reference(&string).map_or_else(
                || {
                    if string.starts_with('@') {
                        Json::String(format!("@{string}"))
                    } else {
                        Json::String(string.clone())
                    }
                },
                Json::String,
            ),
            Json::Array(items) => items.into_iter().map(|item| self.packed(item)).collect(),
            Json::Object(object) => {
                let members = object.into_iter();
                Json::object(members.map(|(key, value)| (key, self.packed(value))))
            }
            other @ (Json::Null | Json::Bool(_) | Json::Number(_)) => other,
        }
    }

    fn reference(&self, string: &str) -> Option<String> {
        if !is_long(string) {
            return None;
        }
        if let Some(at) = self.whole.get(string) {
            return Some(format!("@{at}"));
        }
        if let Some(at) = self.data.get(string) {
            return Some(format!("@b{at}"));
        }
        if string.contains(['+', '/']) {
            return None;
        }
        let at = self.data.get(standard(string).as_str())?;
        Some(format!("@u{at}"))
    }
}

/// Whether a value is worth looking into.
fn may_be_long(json: &Json) -> bool {
    match json {
        Json::String(string) => is_long(string),
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

fn is_long(string: &str) -> bool {
    string.len() > SHORT && string.chars().nth(SHORT).is_some()
}

/// The text after `base64,` in a data URL.
fn data_of(url: &str) -> Option<&str> {
    let (head, data) = url.split_once(";base64,")?;
    head.starts_with("data:").then_some(data)
}

/// Base64 in the alphabet of data URLs.
pub(in crate::ai_sdk::archive) fn standard(data: &str) -> String {
    data.replace('-', "+").replace('_', "/")
}

/// Replaces references in strings by the strings that they refer to. `None` if a reference has no
/// target, or if the result would exceed the size left.
pub(super) fn unpack(json: &mut Json, message: &Json, left: &mut usize) -> Option<()> {
    match json {
        Json::String(string) => {
            let Some(rest) = string.strip_prefix('@') else {
                return Some(());
            };
            let told = if rest.starts_with('@') {
                rest.to_owned()
            } else if let Some(at) = rest.strip_prefix('b') {
                data_of(message.pointer(at)?.as_str()?)?.to_owned()
            } else if let Some(at) = rest.strip_prefix('u') {
                let data = data_of(message.pointer(at)?.as_str()?)?;
                data.replace('+', "-").replace('/', "_")
            } else {
                message.pointer(rest)?.as_str()?.to_owned()
            };
            *left = left.checked_sub(told.len())?;
            *string = told;
            Some(())
        }
        Json::Array(items) => items
            .iter_mut()
            .try_for_each(|item| unpack(item, message, left)),
        Json::Object(object) => object
            .values_mut()
            .try_for_each(|value| unpack(value, message, left)),
        Json::Null | Json::Bool(_) | Json::Number(_) => Some(()),
    }
}
