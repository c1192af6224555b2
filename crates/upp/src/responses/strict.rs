//! Which schemas the provider can enforce.

use serde_json::{Map, Value};

/// Maximum nesting of a schema that is sent with `strict`, in levels.
const DEEPEST: usize = 32;

/// Keywords that strict schemas may not have.
const REFUSED: [&str; 14] = [
    "allOf",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxProperties",
    "minProperties",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedProperties",
];

/// Whether the provider accepts the schema with `strict: true`: the root is an object, and all
/// properties of every object are required.
pub(crate) fn qualifies(schema: &Value) -> bool {
    is_object(schema) && !has(schema, "anyOf") && strict(schema, DEEPEST)
}

fn has(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some()
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| match kind {
        Value::String(kind) => kind == "object",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    })
}

fn strict(schema: &Value, depth: usize) -> bool {
    let (Some(depth), Some(fields)) = (depth.checked_sub(1), schema.as_object()) else {
        return false;
    };
    if fields.keys().any(|key| REFUSED.contains(&key.as_str())) {
        return false;
    }
    let object = is_object(schema) || fields.contains_key("properties");
    if object && !is_closed(fields) {
        return false;
    }
    let named = ["properties", "$defs", "definitions"]
        .iter()
        .filter_map(|key| fields.get(*key)?.as_object())
        .flat_map(Map::values);
    let listed = ["anyOf", "prefixItems"]
        .iter()
        .filter_map(|key| fields.get(*key)?.as_array())
        .flatten();
    named
        .chain(listed)
        .chain(fields.get("items"))
        .all(|inner| strict(inner, depth))
}

/// Whether an object requires all of its properties and allows no others.
fn is_closed(fields: &Map<String, Value>) -> bool {
    let Some(properties) = fields.get("properties").and_then(Value::as_object) else {
        return false;
    };
    let required = fields.get("required").and_then(Value::as_array);
    let required: std::collections::BTreeSet<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    fields.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.keys().all(|key| required.contains(key.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn closed(properties: &Value, required: &Value) -> Value {
        json!({"type": "object", "properties": properties, "required": required,
            "additionalProperties": false})
    }

    #[test]
    fn closed_objects_qualify_all_the_way_down() {
        let inner = closed(&json!({"x": {"type": ["number", "null"]}}), &json!(["x"]));
        let list = json!({"type": "array", "items": inner});
        assert!(qualifies(&closed(&json!({"list": list}), &json!(["list"]))));
        let reference = json!({"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]});
        let mut schema = closed(&json!({"a": reference}), &json!(["a"]));
        schema["$defs"] = json!({"a": inner});
        assert!(qualifies(&schema));
    }

    #[test]
    fn open_objects_and_refused_keywords_do_not() {
        let text = json!({"type": "string"});
        let optional = closed(&json!({"a": text, "b": text}), &json!(["a"]));
        let mut open = closed(&json!({"a": text}), &json!(["a"]));
        open["additionalProperties"] = json!(true);
        let nested = closed(&json!({"a": optional}), &json!(["a"]));
        let one_of = closed(&json!({"a": {"oneOf": [text]}}), &json!(["a"]));
        let map = closed(&json!({"a": {"type": "object"}}), &json!(["a"]));
        for schema in [
            optional,
            open,
            nested,
            one_of,
            map,
            text,
            json!(true),
            json!({}),
        ] {
            assert!(!qualifies(&schema), "{schema}");
        }
        let mut deep = closed(&json!({}), &json!([]));
        for _ in 0..DEEPEST {
            deep = closed(&json!({"a": deep}), &json!(["a"]));
        }
        assert!(!qualifies(&deep));
    }
}
