use super::*;
use serde_json::{Map, json};
use std::time::{Duration, Instant};

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).unwrap()
}

#[test]
fn a_value_is_compared_with_all_parts_of_a_schema() {
    let schema = compiled(&json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "integer", "minimum": 2}, "b": {"enum": ["x", "y"]},
        "c": {"type": "array", "uniqueItems": true, "items": {"pattern": "^(?!bad)[a-z]+$"}}},
        "propertyNames": {"maxLength": 1}}));
    assert_eq!(
        schema.mismatches(&json!({"a": 2, "b": "x", "c": ["a", "b"]})),
        None
    );
    let wrong = json!({"a": 1, "b": "z", "c": ["bad", "bad"], "dd": null});
    let text = schema.mismatches(&wrong).unwrap();
    for place in ["\"/a\"", "\"/b\"", "\"/c\"", "\"/c/0\""] {
        assert!(text.contains(place), "{text}");
    }
}

#[test]
fn a_schema_that_refers_to_itself_is_compared_to_the_end() {
    let schema = compiled(&json!({"$defs": {"n": {"anyOf": [
        {"type": "object", "properties": {"l": {"$ref": "#/$defs/n"}, "r": {"$ref": "#/$defs/n"}}, "additionalProperties": false},
        {"type": "object", "required": ["op"], "properties": {"l": {"$ref": "#/$defs/n"}}},
        {"type": "integer"}]}}, "$ref": "#/$defs/n"}));
    let tree = |leaf: Value| (0..90).fold(leaf, |inner, _| json!({ "l": inner }));
    assert_eq!(schema.mismatches(&tree(json!(1))), None);
    assert!(schema.mismatches(&tree(json!("no"))).is_some());
}

#[test]
fn a_comparison_whose_places_are_too_many_says_only_that_it_fails() {
    let variants = |next: &str| -> Vec<Value> {
        let variant = |n| json!({"type": "object", "properties": {"l": {"$ref": next}}, "minProperties": n % 2});
        (0..40).map(variant).collect()
    };
    let schema = compiled(&json!({"$ref": "#/$defs/n", "$defs": {
        "n": {"anyOf": variants("#/$defs/a")}, "a": {"anyOf": variants("#/$defs/n")}}}));
    let value = (0..95).fold(json!("no"), |inner, _| json!({ "l": inner }));
    let start = Instant::now();
    let text = schema.mismatches(&value).unwrap();
    assert!(text.contains("too large or too complex"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_large_value_is_compared_on_a_thread_of_its_own() {
    let schema = compiled(&json!({"items": {"type": "integer"}}));
    let value = |last: Value| {
        let mut items: Vec<Value> = (0..100_000).map(Value::from).collect();
        items.push(last);
        Value::Array(items)
    };
    assert_eq!(schema.mismatches(&value(json!(1))), None);
    let text = schema.mismatches(&value(json!("no"))).unwrap();
    assert!(text.contains("too large"), "{text}");
}

#[test]
fn schemas_that_are_none_are_refused() {
    for schema in [json!({"type": 7}), json!({"properties": []}), json!(3)] {
        assert!(
            matches!(check(&schema), Err(SchemaError::Invalid(_))),
            "{schema}"
        );
        assert!(Schema::compile(&schema).is_err(), "{schema}");
    }
    let refused = check(&json!({"items": {"$ref": "#/none"}})).unwrap_err();
    assert!(refused.to_string().contains("/items/$ref"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_large_schema_compiles_while_the_worker_does_other_work() {
    let properties: Map<String, Value> = (0..3_000)
        .map(|n| (format!("p{n}"), json!({"type": "string", "maxLength": n})))
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    assert_eq!(check(&schema).ok(), Some(()));
    let schema = compiled(&schema);
    assert!(schema.mismatches(&json!({"p1": 1})).is_some());
}
