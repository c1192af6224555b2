//! Checks a value against the part of JSON Schema that the scripted model knows.

use super::strings;
use super::work::WorkBudget;
use serde_json::{Map, Value};

/// Maximum checked nesting; deeper values are accepted.
const DEPTH: usize = 32;

/// Whether `value` is valid against `schema`; `root` resolves `$ref`. Unknown keywords, unknown
/// formats and patterns that are not simple are not looked at, nor is what `work` has no budget for.
pub(super) fn accepts(work: &WorkBudget, root: &Value, schema: &Value, value: &Value) -> bool {
    at(work, root, schema, value, 0)
}

/// The schema a local `$ref` points to.
pub(super) fn target<'a>(root: &'a Value, schema: &Map<String, Value>) -> Option<&'a Value> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(pointer)
}

fn at(work: &WorkBudget, root: &Value, schema: &Value, value: &Value, depth: usize) -> bool {
    let schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(any) => return *any,
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => return true,
    };
    let n_allowed = listed(schema, "enum").map_or(0, Vec::len);
    if depth > DEPTH || !work.spend(1 + n_allowed) {
        return true;
    }
    let inner = |schema: &Value| at(work, root, schema, value, depth + 1);
    target(root, schema).is_none_or(&inner)
        && schema.get("const").is_none_or(|wanted| wanted == value)
        && listed(schema, "enum").is_none_or(|allowed| allowed.contains(value))
        && is_of_type(schema, value)
        && listed(schema, "allOf").is_none_or(|all| all.iter().all(inner))
        && listed(schema, "anyOf").is_none_or(|any| any.iter().any(inner))
        && listed(schema, "oneOf")
            .is_none_or(|one| one.iter().filter(|schema| inner(schema)).count() == 1)
        && match value {
            Value::Number(number) => number_fits(schema, number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => {
                length_fits(schema, "minLength", "maxLength", text.chars().count())
                    && (!has_budget(work, schema, text) || strings::fits(schema, text))
            }
            Value::Array(items) => items_fit(work, root, schema, items, depth),
            Value::Object(fields) => fields_fit(work, root, schema, fields, depth),
            Value::Null | Value::Bool(_) => true,
        }
}

/// Whether a text may be compared with the pattern of its schema, if that has one.
fn has_budget(work: &WorkBudget, schema: &Map<String, Value>, text: &str) -> bool {
    !schema.contains_key("pattern") || work.spend(text.len().saturating_mul(8))
}

fn listed<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Vec<Value>> {
    schema.get(keyword).and_then(Value::as_array)
}

fn is_of_type(schema: &Map<String, Value>, value: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => is_a(name, value),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .any(|name| is_a(name, value)),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => true,
    }
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// A numeric keyword.
pub(super) fn bound(schema: &Map<String, Value>, keyword: &str) -> Option<f64> {
    schema.get(keyword).and_then(Value::as_f64)
}

/// A keyword that counts.
pub(super) fn count(schema: &Map<String, Value>, keyword: &str) -> Option<usize> {
    let count = schema.get(keyword)?.as_u64()?;
    Some(usize::try_from(count).unwrap_or(usize::MAX))
}

fn number_fits(schema: &Map<String, Value>, number: f64) -> bool {
    bound(schema, "minimum").is_none_or(|low| number >= low)
        && bound(schema, "maximum").is_none_or(|high| number <= high)
        && bound(schema, "exclusiveMinimum").is_none_or(|low| number > low)
        && bound(schema, "exclusiveMaximum").is_none_or(|high| number < high)
        && bound(schema, "multipleOf").is_none_or(|step| is_multiple(number, step))
}

fn is_multiple(number: f64, step: f64) -> bool {
    if step <= 0.0 {
        return true;
    }
    if number.fract() == 0.0 && step.fract() == 0.0 {
        return number % step == 0.0;
    }
    let quotient = number / step;
    (quotient - quotient.round()).abs() <= (f64::EPSILON * quotient.abs().max(1.0)).min(1e-9)
}

fn length_fits(schema: &Map<String, Value>, low: &str, high: &str, length: usize) -> bool {
    count(schema, low).is_none_or(|low| length >= low)
        && count(schema, high).is_none_or(|high| length <= high)
}

fn items_fit(
    work: &WorkBudget,
    root: &Value,
    schema: &Map<String, Value>,
    items: &[Value],
    depth: usize,
) -> bool {
    let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
    length_fits(schema, "minItems", "maxItems", items.len())
        && schema.get("items").is_none_or(|schema| {
            items
                .iter()
                .all(|item| at(work, root, schema, item, depth + 1))
        })
        && !(unique
            && work.spend(items.len().saturating_mul(items.len()) / 8)
            && items
                .iter()
                .enumerate()
                .any(|(i, item)| items.iter().take(i).any(|before| before == item)))
}

fn fields_fit(
    work: &WorkBudget,
    root: &Value,
    schema: &Map<String, Value>,
    fields: &Map<String, Value>,
    depth: usize,
) -> bool {
    let known = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    listed(schema, "required").is_none_or(|required| {
        required
            .iter()
            .filter_map(Value::as_str)
            .all(|name| fields.contains_key(name))
    }) && length_fits(schema, "minProperties", "maxProperties", fields.len())
        && fields.iter().all(|(name, value)| {
            known
                .and_then(|known| known.get(name))
                .or(others)
                .is_none_or(|schema| at(work, root, schema, value, depth + 1))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ok(schema: &Value, value: &Value) -> bool {
        accepts(&WorkBudget::new(), schema, schema, value)
    }

    #[test]
    fn each_keyword_refuses_what_it_should() {
        assert!(ok(&json!({"type": "integer", "minimum": 2}), &json!(2)));
        assert!(!ok(&json!({"type": "integer"}), &json!(2.5)));
        assert!(!ok(&json!({"exclusiveMaximum": 3}), &json!(3)));
        assert!(ok(&json!({"multipleOf": 0.1}), &json!(0.3)));
        assert!(!ok(&json!({"enum": ["a"]}), &json!("b")));
        assert!(!ok(&json!({"maxLength": 1}), &json!("äb")));
        assert!(!ok(&json!({"uniqueItems": true}), &json!([1, 1])));
        assert!(!ok(&json!({"required": ["a"]}), &json!({})));
        assert!(!ok(
            &json!({"additionalProperties": false}),
            &json!({"a": 1})
        ));
        assert!(!ok(
            &json!({"oneOf": [{"type": "integer"}, {"minimum": 0}]}),
            &json!(1)
        ));
        assert!(!ok(
            &json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}),
            &json!(1)
        ));
    }
}
