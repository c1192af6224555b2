use super::*;
use serde_json::{Map, json};

fn fault(schema: &Value) -> Option<SchemaFault> {
    check(schema).err().map(|it| it.fault)
}

fn place(schema: &Value) -> String {
    check(schema).unwrap_err().pointer
}

fn chain(n: usize, link: impl Fn(String) -> Value) -> Value {
    let mut defs: Map<String, Value> = (0..n)
        .map(|i| (format!("a{i}"), link(format!("#/$defs/a{}", i + 1))))
        .collect();
    defs.insert(format!("a{n}"), json!({"type": "null"}));
    json!({"type": "object", "$defs": defs, "properties": {"x": {"$ref": "#/$defs/a0"}}})
}

#[test]
fn usual_schemas_are_accepted() {
    let tree = json!({"$defs": {"node": {"type": "object", "properties": {
        "name": {"type": "string", "pattern": "^[a-z]{1,64}$"},
        "kind": {"enum": ["a", "b"]},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}},
        "$ref": "#/$defs/node"});
    let cost = check(&tree).unwrap();
    assert_eq!(
        cost,
        Cost {
            values: 17,
            depth: 4
        }
    );
    for schema in [
        json!(true),
        json!({}),
        json!({"properties": {"$ref": {"type": "string"}, "enum": {"const": {"$ref": "nowhere"}}}}),
        json!({"$id": "https://a.example/s", "properties": {"x": {"$ref": "https://a.example/s#/$defs/y"}}, "$defs": {"y": {}}}),
        json!({"properties": {"x": {"$ref": "#name"}}, "$defs": {"y": {"$anchor": "name"}}}),
        json!({"properties": {"x": {"$ref": "#/$defs/a%20b~1c"}}, "$defs": {"a b/c": {}}}),
        json!({"properties": {"x": {"$ref": "http://json-schema.org/draft-07/schema#"}}}),
        json!({"items": {"$ref": "#"}}),
    ] {
        assert_eq!(fault(&schema), None, "{schema}");
    }
}

#[test]
fn a_reference_chain_is_refused_at_the_subschema_that_is_too_far() {
    let deep = chain(
        10_000,
        |next| json!({"allOf": [{"anyOf": [{"allOf": [{"$ref": next}, {"minLength": 0}]}, {"const": 0}]}]}),
    );
    assert_eq!(fault(&deep), Some(SchemaFault::Values));
    let deep = chain(60, |next| json!({"allOf": [{"anyOf": [{"$ref": next}]}]}));
    assert_eq!(fault(&deep), Some(SchemaFault::Chain));
    assert!(place(&deep).starts_with("/$defs/a"));
    let deep = chain(
        MAX_PATH,
        |next| json!({"properties": {"x": {"$ref": next}}}),
    );
    assert_eq!(fault(&deep), Some(SchemaFault::Path));
}

#[test]
fn exponential_schemas_are_refused_whatever_multiplies_them() {
    let r = |next: &str| json!({ "$ref": next });
    for link in [
        (|next| json!({"anyOf": [{"allOf": [{"$ref": next}]}, {"$ref": next}]}))
            as fn(String) -> Value,
        |next| json!({"oneOf": [{"$ref": next}, {"not": {"$ref": next}}]}),
        |next| json!({"if": {"$ref": next}, "then": {"$ref": next}, "else": {"$ref": next}}),
        |next| json!({"dependentSchemas": {"a": {"$ref": next}, "b": {"$ref": next}}}),
        |next| json!({"patternProperties": {"a": {"$ref": next}, "b": {"$ref": next}}}),
        |next| json!({"items": {"$ref": next}, "contains": {"$ref": next}}),
        |next| json!({"unevaluatedProperties": false, "allOf": [{"$ref": next}]}),
    ] {
        let schema = chain(20, link);
        assert!(
            matches!(
                fault(&schema),
                Some(SchemaFault::Paths | SchemaFault::Chain)
            ),
            "{schema}"
        );
    }
    let narrow = chain(
        15,
        |next| json!({"properties": {"a": r(&next), "b": r(&next)}}),
    );
    assert_eq!(fault(&narrow), None);
}

#[test]
fn references_that_never_end_are_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
        json!({"anyOf": [{"not": {"$recursiveRef": "#"}}]}),
    ] {
        assert_eq!(fault(&schema), Some(SchemaFault::Endless), "{schema}");
    }
}

#[test]
fn references_out_of_the_schema_are_refused() {
    for reference in [
        "#/$defs/none",
        "#none",
        "https://example.com/s.json",
        "other.json",
        "#/%zz",
    ] {
        let schema = json!({"properties": {"a/b": {"$ref": reference}}});
        assert_eq!(fault(&schema), Some(SchemaFault::Unresolved), "{reference}");
        assert_eq!(place(&schema), "/properties/a~1b/$ref");
    }
    let moved =
        json!({"properties": {"x": {"$id": "https://a.example/s", "$ref": "#/x"}}, "x": {}});
    assert_eq!(fault(&moved), Some(SchemaFault::EmbeddedId));
    let twice = json!({"$defs": {"x": {"$anchor": "a"}, "y": {"$anchor": "a"}}});
    assert_eq!(fault(&twice), Some(SchemaFault::RepeatedAnchor));
}

#[test]
fn sizes_are_limited() {
    let many = |n: usize| (0..n).map(Value::from).collect::<Vec<_>>();
    assert_eq!(
        fault(&json!({"description": "x".repeat(MAX_BYTES)})),
        Some(SchemaFault::Bytes)
    );
    assert_eq!(
        fault(&json!({"examples": many(MAX_VALUES)})),
        Some(SchemaFault::Values)
    );
    let nested = (0..MAX_NESTING).fold(json!({}), |inner, _| json!([inner]));
    assert_eq!(fault(&json!({"const": nested})), Some(SchemaFault::Nesting));
    let long = "n".repeat(8_000);
    let wide: Map<String, Value> = (0..300).map(|i| (format!("{i}"), json!({}))).collect();
    assert_eq!(
        fault(&json!({"properties": {long: {"properties": wide}}})),
        Some(SchemaFault::Pointers)
    );
    let schema = json!({"properties": {"x": {"enum": many(MAX_ENUM + 1)}}});
    assert_eq!(fault(&schema), Some(SchemaFault::Enum));
    assert_eq!(place(&schema), "/properties/x/enum");
    let refs = vec![json!({"$ref": "#/$defs/a"}); MAX_REFERENCES + 1];
    assert_eq!(
        fault(&json!({"$defs": {"a": {}}, "anyOf": refs})),
        Some(SchemaFault::References)
    );
}

#[test]
fn patterns_are_limited() {
    assert_eq!(
        fault(&json!({"pattern": "(a{100}){100}"})),
        Some(SchemaFault::Pattern)
    );
    let long = "a".repeat(MAX_PATTERN_BYTES + 1);
    let schema = json!({"patternProperties": {long.clone(): {}}});
    assert_eq!(fault(&schema), Some(SchemaFault::Pattern));
    assert_eq!(place(&schema), format!("/patternProperties/{long}"));
    let many = vec![json!({"pattern": "a"}); MAX_PATTERNS + 1];
    assert_eq!(fault(&json!({"anyOf": many})), Some(SchemaFault::Patterns));
    let large = vec![json!({"pattern": "a{3000}"}); 20];
    assert_eq!(fault(&json!({"anyOf": large})), Some(SchemaFault::Patterns));
}

#[test]
fn what_is_expected_names_the_limits() {
    for (fault, limit) in [
        (SchemaFault::Bytes, MAX_BYTES >> 10),
        (SchemaFault::Values, MAX_VALUES),
        (SchemaFault::Nesting, MAX_NESTING),
        (SchemaFault::References, MAX_REFERENCES),
        (SchemaFault::Chain, MAX_CHAIN),
        (SchemaFault::Path, MAX_PATH),
        (SchemaFault::Paths, usize::try_from(MAX_PATHS).unwrap()),
        (SchemaFault::Enum, MAX_ENUM),
        (SchemaFault::Pattern, MAX_PATTERN_BYTES),
    ] {
        let expected = fault.expected();
        assert!(expected.contains(&format!("{limit} ")), "{expected}");
    }
}
