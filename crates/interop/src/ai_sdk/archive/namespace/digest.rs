//! A canonical text of JSON values: equal if browsers treat the values as equal.

use crate::ai_sdk::archive::NAMESPACE;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use thread::Json;
use uuid::Uuid;

/// The digest of a message with its namespace: a UUID, version 5, of the message, the three numbers
/// and `text`.
pub(super) fn digest(message: &Json, numbers: [u64; 3], text: &str) -> String {
    let mut told = String::new();
    flatten(message, &mut told);
    for number in numbers {
        // Writing into a string can't fail.
        let _ = write!(told, " {number}");
    }
    told.push(' ');
    told.push_str(text);
    Uuid::new_v5(&NAMESPACE, told.as_bytes()).to_string()
}

/// Writes a text that is equal for values that browsers treat as equal: numbers as doubles, keys in
/// order. The recursion is as deep as the value nests.
pub(super) fn flatten(json: &Json, told: &mut String) {
    match json {
        Json::Null => told.push('n'),
        Json::Bool(true) => told.push('t'),
        Json::Bool(false) => told.push('f'),
        Json::Number(number) => match number.as_f64() {
            // One zero, whatever its sign.
            Some(double) => {
                let _ = write!(told, "{:x}", (double + 0.0).to_bits());
            }
            None => told.push('n'),
        },
        Json::String(string) => told.push_str(&Json::from(string.as_str()).to_text()),
        Json::Array(items) => {
            told.push('[');
            for item in items {
                flatten(item, told);
                told.push(',');
            }
            told.push(']');
        }
        Json::Object(object) => {
            let members: BTreeMap<&str, &Json> = object.iter().collect();
            told.push('{');
            for (key, value) in members {
                told.push_str(&Json::from(key).to_text());
                told.push(':');
                flatten(value, told);
                told.push(',');
            }
            told.push('}');
        }
    }
}
