//! What is written, held against the published schemas.

use crate::reference::reference;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The published schemas of an API, by their names.
pub(super) struct Published {
    document: Value,
    validators: BTreeMap<String, jsonschema::Validator>,
}

impl Published {
    fn load(path: &str) -> Option<Self> {
        let shared = reference("the published schemas of responses")?;
        let path = shared.join("schemas").join(path);
        let document = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        Some(Self {
            document,
            validators: BTreeMap::new(),
        })
    }

    pub(super) fn open_responses() -> Option<Self> {
        Self::load("openresponses/openapi-2026-04-24.json")
    }

    pub(super) fn openai() -> Option<Self> {
        Self::load("openai/responses-conversations.openapi.json")
    }

    fn validator(&mut self, name: &str) -> &jsonschema::Validator {
        let document = &self.document;
        self.validators.entry(name.to_owned()).or_insert_with(|| {
            let schema = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": format!("#/components/schemas/{name}"),
                "components": document["components"],
            });
            jsonschema::validator_for(&schema).unwrap()
        })
    }

    fn allows(&mut self, name: &str, value: &Value) -> bool {
        self.validator(name).is_valid(value)
    }

    pub(super) fn check(&mut self, name: &str, value: &Value) {
        if let Err(error) = self.validator(name).validate(value) {
            panic!("{name}: {error} at {}: {value}", error.instance_path());
        }
    }

    /// Checks an event of Open Responses, whose schemas are told apart by their types.
    pub(super) fn check_event(&mut self, event: &Value) {
        let schemas = self.document["components"]["schemas"].as_object().unwrap();
        let found = schemas.iter().find(|(name, schema)| {
            name.ends_with("StreamingEvent")
                && schema["properties"]["type"]["enum"][0] == event["type"]
        });
        let name = found
            .unwrap_or_else(|| panic!("no event is of type {}", event["type"]))
            .0
            .clone();
        self.check(&name, event);
    }

    /// Checks an event against what `OpenAI` has published. Its own API sends no usage before the end
    /// either, has other reasons of incompleteness, and names two events otherwise.
    pub(super) fn check_openai_event(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap();
        if kind == "error" || kind.starts_with("response.reasoning.") {
            return;
        }
        let Some(response) = event.get("response") else {
            return self.check("ResponseStreamEvent", event);
        };
        self.check_openai_response(response);
    }

    pub(super) fn check_openai_response(&mut self, response: &Value) {
        let mut response = response.clone();
        if response["usage"].is_null() {
            response.as_object_mut().unwrap().remove("usage");
        }
        let reason = &response["incomplete_details"]["reason"];
        if ["max_steps", "max_handoffs", "timeout"]
            .iter()
            .any(|word| reason == word)
        {
            response["incomplete_details"]["reason"] = "max_output_tokens".into();
        }
        self.check("Response", &response);
    }
}

#[test]
fn the_published_schemas_do_refuse() {
    let (Some(mut open), Some(mut openai)) = (Published::open_responses(), Published::openai())
    else {
        return;
    };
    let item = json!({"type": "acme:item", "id": "i", "status": "completed"});
    assert!(!open.allows("ItemField", &item));
    assert!(!open.allows("ResponseResource", &json!({"id": "resp_1"})));
    assert!(!openai.allows("ConversationItem", &item));
    assert!(!openai.allows("ResponseStreamEvent", &json!({"type": "response.acme"})));
}
