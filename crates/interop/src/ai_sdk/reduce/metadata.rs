//! Message metadata that arrives in parts.

use super::error::ChunkError;
use thread::{Json, Object};

/// Keys that a client never merges.
const SKIPPED: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// Adds metadata: objects are merged at any depth, everything else is replaced.
///
/// Values other than objects are treated as in JavaScript: an array has its indexes as keys, a string
/// those of its code units.
pub(super) fn merge(known: &mut Json, more: &Json) -> Result<(), ChunkError> {
    if let (Json::Object(known), Json::Object(more)) = (&mut *known, more) {
        merge_objects(known, more);
        return Ok(());
    }
    let more = members(more);
    let (known_type, is_plain) = match &*known {
        Json::Object(_) | Json::Array(_) => (known.type_name(), false),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => (known.type_name(), true),
    };
    if is_plain && more.keys().any(|key| !SKIPPED.contains(&key)) {
        return Err(ChunkError::Unmergeable(known_type));
    }
    let mut merged = match std::mem::take(known) {
        Json::Object(known) => known,
        known @ (Json::Null
        | Json::Bool(_)
        | Json::Number(_)
        | Json::String(_)
        | Json::Array(_)) => members(&known),
    };
    merge_objects(&mut merged, &more);
    *known = Json::Object(merged);
    Ok(())
}

/// Merges objects. The recursion is as deep as both values nest; the parser limits that.
fn merge_objects(known: &mut Object, more: &Object) {
    for (key, value) in more {
        if SKIPPED.contains(&key) {
            continue;
        }
        match (known.get_mut(key), value) {
            (Some(Json::Object(known)), Json::Object(more)) => merge_objects(known, more),
            (Some(known), value) => *known = value.clone(),
            (None, value) => {
                known.insert(key, value.clone());
            }
        }
    }
}

/// The members of a value, as JavaScript sees them.
fn members(value: &Json) -> Object {
    let numbered = |(place, value): (usize, Json)| (place.to_string(), value);
    match value {
        Json::Object(object) => object.clone(),
        Json::Array(items) => items.iter().cloned().enumerate().map(numbered).collect(),
        Json::String(string) => {
            let units = string.chars().flat_map(units);
            units.enumerate().map(numbered).collect()
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => Object::new(),
    }
}

/// The UTF-16 code units of a character as strings; halves of a pair can't be held by one.
fn units(char: char) -> impl Iterator<Item = Json> {
    let n_units = char.len_utf16();
    let unit = if n_units == 1 {
        char
    } else {
        char::REPLACEMENT_CHARACTER
    };
    std::iter::repeat_n(Json::String(unit.into()), n_units)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(known: &str, more: &str) -> Option<String> {
        let mut known = Json::parse(known).unwrap();
        let merged = merge(&mut known, &Json::parse(more).unwrap());
        merged.ok().map(|()| known.to_text())
    }

    #[test]
    fn objects_are_merged_at_any_depth_and_arrays_replaced() {
        let known = r#"{"a":{"b":{"c":1,"d":[1,2]}},"n":1}"#;
        let more = r#"{"a":{"b":{"d":[3],"e":null}},"n":{"x":1},"constructor":1,"prototype":2}"#;
        let expected = r#"{"a":{"b":{"c":1,"d":[3],"e":null}},"n":{"x":1}}"#;
        assert_eq!(merged(known, more).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_no_object_is_taken_apart_as_javascript_does() {
        assert_eq!(
            merged("[1,2]", r#"{"1":3}"#).as_deref(),
            Some(r#"{"0":1,"1":3}"#)
        );
        assert_eq!(
            merged(r#"{"a":1}"#, r#""xy""#).as_deref(),
            Some(r#"{"a":1,"0":"x","1":"y"}"#)
        );
        assert_eq!(merged("1", "2").as_deref(), Some("{}"));
        assert_eq!(merged("1", r#"{"a":1}"#), None);
    }
}
