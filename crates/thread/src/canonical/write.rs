//! Writes canonical text in pieces, without building it whole.

use super::nulls::At;
use super::{CanonicalError, CanonicalOptions, is_telemetry};
use crate::document::Version;
use crate::json::{Json, Object, write_string};
use std::fmt::Write;

/// Writes canonical text to an output.
pub(super) struct Writer<'a, W> {
    out: &'a mut W,
    options: CanonicalOptions,
    version: Version,
}

impl<'a, W: Write> Writer<'a, W> {
    pub(super) fn new(out: &'a mut W, options: CanonicalOptions, version: Version) -> Self {
        Self {
            out,
            options,
            version,
        }
    }

    /// Writes punctuation.
    pub(super) fn put(&mut self, text: &str) -> Result<(), CanonicalError> {
        self.out.write_str(text).map_err(|_| CanonicalError::Write)
    }

    pub(super) fn key(&mut self, key: &str) -> Result<(), CanonicalError> {
        write_string(key, self.out).map_err(|_| CanonicalError::Write)?;
        self.put(":")
    }

    /// Writes a value at a position of the document. Uses one stack frame per level, as every
    /// reader of [`Json`] does.
    pub(super) fn value(&mut self, json: &Json, at: At) -> Result<(), CanonicalError> {
        match json {
            Json::Null => self.put("null"),
            Json::Bool(bool) => self.put(if *bool { "true" } else { "false" }),
            Json::String(text) => write_string(text, self.out).map_err(|_| CanonicalError::Write),
            Json::Number(_) => {
                let number = json.to_value().map_err(CanonicalError::Number)?;
                let text = serde_json_canonicalizer::to_string(&number);
                self.put(&text.map_err(CanonicalError::Serialize)?)
            }
            Json::Array(items) => self.array(items, at),
            Json::Object(object) => self.object(object, at),
        }
    }

    fn array(&mut self, items: &[Json], at: At) -> Result<(), CanonicalError> {
        self.put("[")?;
        let mut is_first = true;
        for item in items {
            if !self.keeps(item, at) {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.put(",")?;
            }
            self.value(item, at.element())?;
        }
        self.put("]")
    }

    /// Whether the canonical form includes this element of a list.
    fn keeps(&self, item: &Json, at: At) -> bool {
        let has_telemetry = matches!(at, At::Messages | At::ForeignMessages);
        self.options.keep_sys || !has_telemetry || !is_telemetry(item, &self.version)
    }

    pub(super) fn object(&mut self, object: &Object, at: At) -> Result<(), CanonicalError> {
        let optional = at.optional(object);
        let mut members: Vec<(&str, &Json)> = object
            .iter()
            .filter(|(key, value)| !(value.is_null() && optional.contains(key)))
            .collect();
        members.sort_unstable_by(|(a, _), (b, _)| by_utf_16(a, b));
        self.put("{")?;
        for (place, (key, value)) in members.into_iter().enumerate() {
            if place > 0 {
                self.put(",")?;
            }
            self.key(key)?;
            self.value(value, at.member(object, key))?;
        }
        self.put("}")
    }
}

/// The order of keys in RFC 8785: by their UTF-16 code units.
pub(super) fn by_utf_16(a: &str, b: &str) -> std::cmp::Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}
