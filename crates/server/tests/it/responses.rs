//! Open Responses, with what its clients send.

mod branches;
mod brought;
mod conversations;
mod create;
mod goes_on;
mod passing;
mod prepared;
mod rights;
mod sizes;
pub(crate) mod socket;
mod socket_limits;
mod stored;
mod subagents;
mod suite;

use crate::harness::{Answer, Server};
use crate::reference::reference;
use axum::body::Body;
use http::header;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A tool of the client's.
fn weather() -> Value {
    json!({
        "type": "function", "name": "get_weather", "description": "The weather of a place",
        "parameters": {
            "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"],
        },
    })
}

/// What makes the scripted model call it.
const ASKS: &str = "use get_weather {\"location\": \"Paris\"}";

/// What a call gave.
fn output(call: &Value, said: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call, "output": said})
}

impl Server {
    /// Asks for a response that can't be refused.
    async fn respond(&self, body: Value) -> Value {
        let answer = self.post("/v1/responses", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let response = answer.json();
        fits("ResponseResource", &response);
        response
    }

    /// Requests a response as a stream and returns its events.
    async fn respond_streaming(&self, mut body: Value) -> Vec<Value> {
        body["stream"] = true.into();
        let answer = self.post("/v1/responses", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.headers[header::CONTENT_TYPE], "text/event-stream");
        events(&answer.text)
    }

    async fn post_with_token(&self, path: &str, token: &str, body: Value) -> Answer {
        let request = self
            .request("POST", path)
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", token);
        self.send(request.body(Body::from(body.to_string())).unwrap())
            .await
    }

    async fn n_threads(&self) -> usize {
        let threads = self.get("/api/v1/threads").await.json();
        threads["threads"].as_array().unwrap().len()
    }
}

/// The events of a stream that is over: each is of the type its frame says, numbered from 0 on or
/// from where it was resumed, and the stream ends as it must.
fn events(text: &str) -> Vec<Value> {
    let body = text.strip_suffix("data: [DONE]\n\n").expect(text);
    let frames = body
        .split_terminator("\n\n")
        .filter(|frame| !frame.starts_with(':'));
    let events: Vec<Value> = frames
        .map(|frame| {
            let (kind, data) = frame.split_once("\ndata: ").unwrap();
            let event: Value = serde_json::from_str(data).unwrap();
            assert_eq!(
                Some(kind),
                event["type"]
                    .as_str()
                    .map(|it| format!("event: {it}"))
                    .as_deref()
            );
            event
        })
        .collect();
    check_events(&events);
    events
}

/// Events without gaps, each as the specification has it.
fn check_events(events: &[Value]) {
    let first = events[0]["sequence_number"].as_u64().unwrap();
    for (number, event) in (first..).zip(events) {
        assert_eq!(event["sequence_number"], number, "{event}");
        fits_event(event);
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

/// The response that the last event has.
fn last(events: &[Value]) -> &Value {
    &events.last().unwrap()["response"]
}

/// What the messages of a response say.
fn text_of(response: &Value) -> String {
    let items = response["output"].as_array().unwrap().iter();
    let parts = items.flat_map(|item| item["content"].as_array().into_iter().flatten());
    parts
        .filter_map(|part| part["text"].as_str())
        .collect::<Vec<_>>()
        .join("|")
}

fn output_types(response: &Value) -> Vec<&str> {
    let items = response["output"].as_array().unwrap().iter();
    items.map(|item| item["type"].as_str().unwrap()).collect()
}

/// The status and the error of a refusal, which is in the envelope of this API.
fn refusal(answer: &Answer) -> (u16, String, String, Option<String>) {
    let error = answer.json()["error"].clone();
    assert!(error["message"].is_string(), "{error}");
    let text = |member: &str| error[member].as_str().map(str::to_owned);
    let (kind, code) = (text("type").unwrap(), text("code").unwrap());
    (answer.status.as_u16(), kind, code, text("param"))
}

fn invalid(code: &str, param: &str) -> (u16, String, String, Option<String>) {
    let kind = "invalid_request_error".to_owned();
    let param = Some(param.to_owned()).filter(|param| !param.is_empty());
    (400, kind, code.to_owned(), param)
}

fn not_found(code: &str) -> (u16, String, String, Option<String>) {
    (404, "not_found".to_owned(), code.to_owned(), None)
}

/// The published schemas of Open Responses, where they are at hand.
struct Published {
    document: Value,
    validators: BTreeMap<String, jsonschema::Validator>,
}

static PUBLISHED: Mutex<Option<Published>> = Mutex::new(None);

fn with_published(check: impl FnOnce(&mut Published)) {
    let Some(shared) = reference("the published schemas of responses") else {
        return;
    };
    let mut published = PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let published = published.get_or_insert_with(|| {
        let path = shared.join("schemas/openresponses/openapi-2026-04-24.json");
        Published {
            document: serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
            validators: BTreeMap::new(),
        }
    });
    check(published);
}

impl Published {
    fn check(&mut self, name: &str, value: &Value) {
        let document = &self.document;
        let validator = self.validators.entry(name.to_owned()).or_insert_with(|| {
            let schema = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": format!("#/components/schemas/{name}"),
                "components": document["components"],
            });
            jsonschema::validator_for(&schema).unwrap()
        });
        if let Err(error) = validator.validate(value) {
            panic!("{name}: {error} at {}: {value}", error.instance_path());
        }
    }

    fn event_schema(&self, kind: &Value) -> String {
        let schemas = self.document["components"]["schemas"].as_object().unwrap();
        let is_it = |(name, schema): &(&String, &Value)| {
            name.ends_with("StreamingEvent") && schema["properties"]["type"]["enum"][0] == *kind
        };
        let found = schemas.iter().find(is_it);
        found
            .unwrap_or_else(|| panic!("no event is of type {kind}"))
            .0
            .clone()
    }
}

/// Holds a value against the published schema of this name.
fn fits(name: &str, value: &Value) {
    with_published(|published| published.check(name, value));
}

fn fits_event(event: &Value) {
    with_published(|published| {
        let name = published.event_schema(&event["type"]);
        published.check(&name, event);
    });
}
