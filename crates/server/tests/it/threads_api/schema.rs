//! The published schemas.

use crate::reference::reference;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

static DOCUMENT: LazyLock<Option<Value>> = LazyLock::new(|| {
    let shared = reference("the published schemas of threads")?;
    let path = shared.join("schemas/openai/threads.openapi.json");
    let text = std::fs::read_to_string(path).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    nullable(&mut document);
    Some(document["components"].take())
});

static VALIDATORS: Mutex<BTreeMap<String, jsonschema::Validator>> = Mutex::new(BTreeMap::new());

/// The document is of `OpenAPI` 3.1 and says `nullable` as 3.0 did.
fn nullable(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(nullable);
            if fields.remove("nullable") == Some(Value::Bool(true)) {
                let inner = Value::Object(std::mem::take(fields));
                *value = json!({"anyOf": [inner, {"type": "null"}]});
            }
        }
        Value::Array(list) => list.iter_mut().for_each(nullable),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Checks a value against a schema of the document.
pub(crate) fn check(name: &str, value: &Value) {
    let Some(components) = &*DOCUMENT else { return };
    let mut validators = VALIDATORS.lock().unwrap();
    let validator = validators.entry(name.to_owned()).or_insert_with(|| {
        let reference = format!("#/components/schemas/{name}");
        jsonschema::validator_for(&json!({"$ref": reference, "components": components})).unwrap()
    });
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{value:#}");
}

/// Checks an event of a stream.
pub(crate) fn check_event(name: &str, data: &Value) {
    let object = match name {
        "thread.created" => "ThreadObject",
        "thread.message.delta" => "MessageDeltaObject",
        "thread.run.step.delta" => "RunStepDeltaObject",
        "error" => "Error",
        "done" => return,
        _ if name.starts_with("thread.run.step.") => "RunStepObject",
        _ if name.starts_with("thread.message.") => "MessageObject",
        _ if name.starts_with("thread.run.") => "RunObject",
        other => panic!("no such event: {other}"),
    };
    check(object, data);
    check(
        "AssistantStreamEvent",
        &json!({"event": name, "data": data}),
    );
}
