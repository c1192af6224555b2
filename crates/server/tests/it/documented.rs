//! Every answer of the native API that a test receives is of the schema that the OpenAPI document declares.

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&loomline_server::openapi().unwrap()).unwrap());
static VALIDATORS: LazyLock<Mutex<BTreeMap<String, Arc<Validator>>>> =
    LazyLock::new(Mutex::default);

/// Panics if an answer of `/api/v1` is not as the document declares.
pub(crate) fn check(method: &str, path: &str, status: u16, content_type: &str, text: &str) {
    let path = path.split('?').next().unwrap_or_default();
    let is_native = path.starts_with("/api/v1/");
    let Some((template, operation)) = operation(method, path).filter(|_| is_native) else {
        return;
    };
    let at = format!("{method} {template} {status}");
    let responses = &operation["responses"];
    let response = responses
        .get(status.to_string())
        .or_else(|| responses.get("default"));
    let response = response.unwrap_or_else(|| panic!("{at} is not documented"));
    let kind = content_type.split(';').next().unwrap_or_default();
    if kind.is_empty() {
        assert!(text.is_empty(), "{at} has a body without a content type");
        return;
    }
    let schema = &response["content"][kind]["schema"];
    assert!(!schema.is_null(), "{at} is not documented as {kind}");
    match kind {
        "application/json" => valid(&format!("{at} {kind}"), schema, text),
        "text/event-stream" => {
            let schema = &schema["properties"]["data"]["contentSchema"];
            assert!(!schema.is_null(), "{at} has untyped events");
            for frame in text.split("\n\n") {
                let lines = |name: &'static str| {
                    frame
                        .lines()
                        .filter_map(move |line| line.strip_prefix(name))
                };
                // Errors and events of sub-agents have names of their own.
                let name = lines("event: ").next().unwrap_or_default();
                let data = lines("data: ").collect::<Vec<_>>().join("\n");
                if name.contains('.') {
                    valid(&format!("{at} {kind}"), schema, &data);
                }
            }
        }
        _ => {}
    }
}

/// The operation of a path, with its template.
fn operation(method: &str, path: &str) -> Option<(&'static str, &'static Value)> {
    let segments: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let parts: Vec<&str> = template.split('/').collect();
        let pairs = parts.iter().zip(&segments);
        parts.len() == segments.len()
            && pairs
                .clone()
                .all(|(part, segment)| part.starts_with('{') || part == segment)
    };
    let paths: &'static Map<String, Value> = DOCUMENT["paths"].as_object()?;
    let n_names = |template: &str| template.matches('{').count();
    let (template, operations) = paths
        .iter()
        .filter(|(template, _)| fits(template))
        .min_by_key(|(template, _)| n_names(template))?;
    let operation = operations.get(method.to_lowercase())?;
    Some((template, operation))
}

fn valid(at: &str, schema: &Value, text: &str) {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        // The server nests deeper than this reader.
        Err(error) if error.to_string().contains("recursion limit") => return,
        Err(error) => panic!("{at}: {error}: {text}"),
    };
    let mut validators = VALIDATORS.lock().unwrap();
    let validator = validators.entry(at.to_owned()).or_insert_with(|| {
        let mut schema = schema.clone();
        schema["components"] = DOCUMENT["components"].clone();
        Arc::new(jsonschema::validator_for(&schema).unwrap())
    });
    let validator = Arc::clone(validator);
    drop(validators);
    if let Err(error) = validator.validate(&value) {
        panic!("{at}: {error} at {}: {value}", error.instance_path());
    }
}

#[test]
#[should_panic(expected = "is not valid under any of the schemas")]
fn an_answer_that_is_not_of_its_schema_is_found() {
    let page = json!({"events": [{"at": "2026-01-01T00:00:00Z"}], "last": 1, "more": false});
    check(
        "GET",
        "/api/v1/threads/k/events",
        200,
        "application/json",
        &page.to_string(),
    );
}
