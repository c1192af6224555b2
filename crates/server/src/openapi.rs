//! The `OpenAPI` document (3.1) of all routes.
//!
//! Routes declare themselves. This module adds their common parts. A path's policy determines the form
//! of its errors, and stream events have one form everywhere. Bodies that a converter parses are in
//! `bodies.json` of the protocol's folder.

use crate::protocol::RouteTable;
use crate::routes::PROTOCOLS;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

const SCHEMA: &str = "#/components/schemas/";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Loomline",
        description = "The record and the runtime of agent threads. Every error is {\"error\": {\"code\", \"message\", …}}; the codes are stable.",
    ),
    modifiers(&BearerKey),
)]
pub(crate) struct Document;

struct BearerKey;

impl utoipa::Modify for BearerKey {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        components.add_security_scheme(
            "key",
            SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
        );
    }
}

/// The server's self-description: its document and its entry points.
pub(crate) struct Description {
    pub(crate) openapi: utoipa::openapi::OpenApi,
    pub(crate) table: Arc<RouteTable>,
    pub(crate) links: Vec<(&'static str, &'static str)>,
}

impl Description {
    /// The `OpenAPI` document (3.1) of all routes.
    pub(crate) fn document(&self) -> Result<Value, serde_json::Error> {
        let mut document = serde_json::to_value(&self.openapi)?;
        let requests = requests()?;
        for (path, operations) in members(document.get_mut("paths")) {
            let errors = reference(self.table.errors(Some(path), path).schema());
            for (_, operation) in members(Some(operations)) {
                describe_body(operation, &requests["bodies"]);
                describe_answers(operation, &errors);
            }
        }
        if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
            schemas.values_mut().for_each(merge_null_into_any);
            name_events(schemas);
            schemas.extend(shared());
            if let Value::Object(more) = &requests["schemas"] {
                schemas.extend(more.clone());
            }
        }
        Ok(document)
    }
}

/// The bodies of all protocols that converters parse: `bodies` by operation, `schemas` by name.
fn requests() -> Result<Value, serde_json::Error> {
    let mut all = json!({"bodies": {}, "schemas": {}});
    let written = PROTOCOLS.iter().map(|protocol| protocol.bodies);
    for text in written.filter(|text| !text.is_empty()) {
        let mut one: Value = serde_json::from_str(text)?;
        for kind in ["bodies", "schemas"] {
            if let (Some(all), Value::Object(one)) = (all[kind].as_object_mut(), one[kind].take()) {
                all.extend(one);
            }
        }
    }
    Ok(all)
}

/// Adds the body from `bodies.json` to an operation.
fn describe_body(operation: &mut Value, bodies: &Value) {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let Some(schema) = bodies[id].as_str().map(reference) else {
        return;
    };
    let Some(body) = operation.get_mut("requestBody") else {
        return;
    };
    let may_be_null = body["required"] != true;
    for (_, content) in members(body.get_mut("content")) {
        content["schema"] = if may_be_null {
            json!({"oneOf": [schema, {"type": "null"}]})
        } else {
            schema.clone()
        };
    }
}

/// Gives an operation the errors of its policy, and its streams their events. Each answer gets a description,
/// which `OpenAPI` 3.1 requires.
fn describe_answers(operation: &mut Value, errors: &Value) {
    for (status, answer) in members(operation.get_mut("responses")) {
        if answer["description"]
            .as_str()
            .unwrap_or_default()
            .is_empty()
        {
            let status = status.parse().ok();
            let reason = status.and_then(|status: StatusCode| status.canonical_reason());
            answer["description"] = reason.unwrap_or("Error").into();
        }
        for (kind, content) in members(answer.get_mut("content")) {
            if kind == "text/event-stream" {
                content["schema"] = stream_of(&content["schema"]);
            } else if status == "default" {
                content["schema"] = errors.clone();
            }
        }
    }
}

/// Merges `null` into schemas of any type: as a second alternative, `null` would match each null twice.
fn merge_null_into_any(schema: &mut Value) {
    let any = reference("Payload");
    if let Some([one, null]) = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        && one["$ref"] == any["$ref"]
        && null["type"] == "null"
    {
        *schema = one.clone();
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(merge_null_into_any),
        Value::Array(elements) => elements.iter_mut().for_each(merge_null_into_any),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Gives each type of event a schema of its own, with the members of a record, so that a generated client has
/// one type for each value of `type`. serde's flattened members come as `allOf`, which generators read badly.
fn name_events(schemas: &mut Map<String, Value>) {
    let (Some(Value::Object(mut event)), Some(record)) =
        (schemas.remove("Event"), schemas.remove("EventRecord"))
    else {
        return;
    };
    let (mut variants, mut mapping) = (Vec::new(), Map::new());
    for variant in event
        .get_mut("oneOf")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let mut merged = json!({"type": "object"});
        merge(variant, schemas, &mut merged);
        merge(&record["allOf"][1], schemas, &mut merged);
        merged["description"] = variant["description"].take();
        let tag = merged["properties"]["type"]["enum"][0]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let words = tag.split('.').map(|word| {
            word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default()
        });
        let name = format!("{}Event", words.collect::<String>());
        mapping.insert(tag, format!("{SCHEMA}{name}").into());
        variants.push(reference(&name));
        schemas.insert(name, merged);
    }
    schemas.insert(
        "EventRecord".to_owned(),
        json!({
            "description": record["description"],
            "oneOf": variants,
            "discriminator": {"propertyName": "type", "mapping": mapping},
        }),
    );
}

/// Adds the members of an object to another, through references and `allOf`.
fn merge(schema: &Value, schemas: &Map<String, Value>, into: &mut Value) {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|it| it.strip_prefix(SCHEMA))
    {
        merge(&schemas[name], schemas, into);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        merge(part, schemas, into);
    }
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return;
    };
    for (name, property) in properties {
        into["properties"][name] = property.clone();
    }
    let mut required = into["required"].as_array().cloned().unwrap_or_default();
    required.extend(schema["required"].as_array().cloned().unwrap_or_default());
    into["required"] = required.into();
}

/// The events of a stream. Where the operation names a type, the data of each event is its JSON.
fn stream_of(data: &Value) -> Value {
    if data.get("$ref").is_none() {
        return reference("ServerSentEvent");
    }
    let data =
        json!({"type": "string", "contentMediaType": "application/json", "contentSchema": data});
    json!({"allOf": [reference("ServerSentEvent")], "properties": {"data": data}})
}

/// The members of an object; none for other values.
fn members(value: Option<&mut Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    value.and_then(Value::as_object_mut).into_iter().flatten()
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{SCHEMA}{name}")})
}

/// The schemas of other protocols' errors and of stream events.
fn shared() -> Map<String, Value> {
    let text = json!({"type": "string"});
    let text_or_null = json!({"type": ["string", "null"]});
    let schemas = json!({
        "Metadata16": {
      "type": "object",
      "description": "At most 16 texts of at most 512 characters, by names of at most 64.",
      "maxProperties": 16,
      "propertyNames": {"type": "string", "minLength": 1, "maxLength": 64},
      "additionalProperties": {"type": "string", "maxLength": 512}
    },
        "FunctionParameters": {
      "type": "object",
      "description": "A JSON Schema of an object.",
      "examples": [{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}]
    },
        "Nothing": {"type": "object", "description": "Nothing is asked for.", "additionalProperties": false},
        "ServerSentEvent": {
            "type": "object",
            "description": "One event of a stream.",
            "properties": {"id": text, "event": text, "data": text, "retry": {"type": "integer"}},
        },
        "OpenAiErrorBody": {
            "type": "object",
            "description": "What every refusal and failure looks like under `/v1`.",
            "required": ["error"],
            "properties": {"error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": {"message": text, "type": text, "param": text_or_null, "code": text_or_null},
            }},
        },
        "A2aErrorBody": {
            "type": "object",
            "description": "What every refusal and failure looks like under `/a2a`: `google.rpc.Status`, or JSON-RPC's error \
                            object where that is spoken.",
            "required": ["error"],
            "properties": {
                "jsonrpc": {"const": "2.0"},
                "error": {
                    "type": "object",
                    "required": ["code", "message"],
                    "properties": {
                        "code": {"type": "integer"}, "status": text, "message": text,
                        "details": {"type": "array", "items": {"type": "object"}},
                        "data": {"type": "array", "items": {"type": "object"}},
                    },
                },
            },
        },
        "LangGraphErrorBody": {
            "type": "object",
            "description": "What every refusal and failure looks like in LangGraph's API and the Agent Protocol.",
            "required": ["detail", "code", "message", "metadata"],
            "properties": {"detail": text, "code": text, "message": text, "metadata": {"type": "object"}},
        },
        "McpErrorBody": {
            "type": "object",
            "description": "What every refusal and failure looks like at `/mcp`: JSON-RPC's error object.",
            "required": ["jsonrpc", "error"],
            "properties": {
                "jsonrpc": {"const": "2.0"},
                "error": {
                    "type": "object",
                    "required": ["code", "message"],
                    "properties": {"code": {"type": "integer"}, "message": text, "data": {"type": "object"}},
                },
            },
        },
    });
    match schemas {
        Value::Object(schemas) => schemas,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::description;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_body_that_is_written_down_has_its_operation_and_its_schema() {
        let document = description().document().unwrap();
        let requests = requests().unwrap();
        let operations: BTreeSet<&str> = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|path| path.as_object().unwrap().values())
            .filter(|operation| operation.get("requestBody").is_some())
            .map(|operation| operation["operationId"].as_str().unwrap())
            .collect();
        for (operation, schema) in requests["bodies"].as_object().unwrap() {
            assert!(operations.contains(operation.as_str()), "{operation}");
            let schema = schema.as_str().unwrap();
            assert!(
                document["components"]["schemas"].get(schema).is_some(),
                "{schema}"
            );
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = description().document().unwrap();
        let text = document.to_string();
        for (at, _) in text.match_indices(SCHEMA) {
            let name: String = text[at + SCHEMA.len()..]
                .chars()
                .take_while(|c| *c != '"')
                .collect();
            assert!(
                document["components"]["schemas"].get(&name).is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn every_body_says_more_than_that_it_is_an_object() {
        let document = description().document().unwrap();
        for path in document["paths"].as_object().unwrap().values() {
            for operation in path.as_object().unwrap().values() {
                let Some(content) = operation["requestBody"]["content"].as_object() else {
                    continue;
                };
                for content in content.values() {
                    let schema = &content["schema"];
                    assert!(
                        schema.get("$ref").is_some() || schema.get("oneOf").is_some(),
                        "{}: {schema}",
                        operation["operationId"]
                    );
                }
            }
        }
    }

    /// The reader of a body, and the members that it knows.
    type Reader = (&'static [&'static str], fn(&Value) -> bool);

    /// The readers of the store's bodies.
    fn item_readers() -> [(&'static str, Reader); 4] {
        use interop::langgraph as lang;
        [
            (
                "LangGraphItem",
                (lang::StorePut::KNOWN, |it| lang::StorePut::read(it).is_ok()),
            ),
            (
                "LangGraphItemDelete",
                (lang::StoreDelete::KNOWN, |it| {
                    lang::StoreDelete::read(it).is_ok()
                }),
            ),
            (
                "LangGraphItemSearch",
                (lang::StoreSearch::KNOWN, |it| {
                    lang::StoreSearch::read(it).is_ok()
                }),
            ),
            (
                "LangGraphNamespaces",
                (lang::StoreNamespaces::KNOWN, |it| {
                    lang::StoreNamespaces::read(it).is_ok()
                }),
            ),
        ]
    }

    #[test]
    fn what_a_body_of_langgraphs_may_say_is_what_its_reader_knows() {
        use interop::langgraph as lang;
        let runs: Reader = (lang::RunCreate::KNOWN, |it| {
            lang::RunCreate::read(it).is_ok()
        });
        let readers: [(&str, Reader); 9] = [
            ("LangGraphRun", runs),
            ("AgentProtocolRun", runs),
            (
                "LangGraphThread",
                (lang::ThreadCreate::KNOWN, |it| {
                    lang::ThreadCreate::read(it).is_ok()
                }),
            ),
            (
                "LangGraphThreadChange",
                (lang::ThreadPatch::KNOWN, |it| {
                    lang::ThreadPatch::read(it).is_ok()
                }),
            ),
            (
                "LangGraphThreadSearch",
                (lang::ThreadSearch::KNOWN, |it| {
                    lang::ThreadSearch::read(it).is_ok()
                }),
            ),
            (
                "LangGraphAgentSearch",
                (lang::AgentSearch::KNOWN, |it| {
                    lang::AgentSearch::read(it).is_ok()
                }),
            ),
            (
                "AgentProtocolRunSearch",
                (lang::RunsSearch::KNOWN, |it| {
                    lang::RunsSearch::read(it).is_ok()
                }),
            ),
            (
                "LangGraphHistory",
                (lang::HistoryQuery::KNOWN, |it| {
                    lang::HistoryQuery::read_body(it).is_ok()
                }),
            ),
            (
                "LangGraphState",
                (lang::StateUpdate::KNOWN, |it| {
                    lang::StateUpdate::read(it).is_ok()
                }),
            ),
        ];
        let state_of: Reader = (lang::StateQuery::KNOWN, |it| {
            lang::StateQuery::read_body(it).is_ok()
        });
        let command: Reader = (lang::ProtocolCommand::KNOWN, |it| {
            lang::ProtocolCommand::read(it).is_ok()
        });
        let events: Reader = (lang::EventRequest::KNOWN, |it| {
            lang::EventRequest::read(it).is_ok()
        });
        let readers = readers.into_iter().chain(item_readers()).chain([
            ("LangGraphStateOf", state_of),
            ("LangGraphCommand", command),
            ("LangGraphEvents", events),
        ]);
        let readers: BTreeMap<_, _> = readers.collect();
        let requests = requests().unwrap();
        for (operation, schema) in requests["bodies"].as_object().unwrap() {
            let name = schema.as_str().unwrap();
            let is_theirs =
                operation.starts_with("langgraph") || operation.starts_with("agentProtocol");
            if !is_theirs || name == "Nothing" {
                continue;
            }
            let (known, reads) = readers
                .get(name)
                .unwrap_or_else(|| panic!("{operation} has {name}"));
            let schema = &requests["schemas"][name];
            let required = schema["required"].as_array().into_iter().flatten();
            let least = &schema["examples"][0];
            for key in schema["properties"].as_object().unwrap().keys() {
                assert!(known.contains(&key.as_str()), "{name} has {key}");
                // A word that is offered is taken.
                let words = schema["properties"][key]["enum"].as_array();
                for word in words.into_iter().flatten() {
                    let mut body = least.clone();
                    body[key] = word.clone();
                    assert!(reads(&body), "{name}: {body}");
                }
            }
            for key in required {
                let mut body = least.clone();
                body.as_object_mut().unwrap().remove(key.as_str().unwrap());
                assert!(!reads(&body), "{name} needs {key}");
            }
            for example in schema["examples"].as_array().unwrap() {
                assert!(reads(example), "{name}: {example}");
            }
        }
    }
}
