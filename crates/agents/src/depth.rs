//! The limit on the nesting of JSON, so that written JSON can be read again.

use serde_json::Value;

/// Maximum nesting depth of a tool's arguments and results, in arrays and objects.
///
/// JSON parsers fail at about 128 levels, and a state adds a few levels to these values. So a
/// deeper value is refused as input; it could be written but not read again.
pub const MAX_DEPTH: usize = 100;

/// Whether a value exceeds the nesting limit. Visits no deeper level.
pub(crate) fn is_too_deep(value: &Value) -> bool {
    exceeds(value, MAX_DEPTH)
}

fn exceeds(value: &Value, left: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => {
            let inner = left.checked_sub(1);
            inner.is_none_or(|left| items.iter().any(|item| exceeds(item, left)))
        }
        Value::Object(fields) => {
            let inner = left.checked_sub(1);
            inner.is_none_or(|left| fields.values().any(|field| exceeds(field, left)))
        }
    }
}

/// The nesting depth of a JSON text that was just written.
pub(crate) fn of_text(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut in_string = false;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => {
                bytes.next();
            }
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(n: usize) -> Value {
        (0..n).fold(json!("]\\\"["), |inner, at| {
            if at % 2 == 0 {
                json!([inner])
            } else {
                json!({ "{": inner })
            }
        })
    }

    #[test]
    fn depth_counts_arrays_and_objects_and_not_what_texts_say() {
        for n in [0, 1, 2, MAX_DEPTH, MAX_DEPTH + 1] {
            assert_eq!(of_text(&nested(n).to_string()), n);
            assert_eq!(is_too_deep(&nested(n)), n > MAX_DEPTH);
        }
    }
}
