//! Which provider and model a message is from.

use crate::message::AssistantMessage;
use crate::metadata::{Fact, Metadata};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The metadata key for the requested model, if the model that answered has another name.
const REQUESTED: &str = "requested_model";

/// Whether the message is this model's own, so that it is sent back with signatures, encrypted reasoning
/// and ids. A provider would refuse foreign ones, or accept them as its own.
pub(crate) fn is_native(message: &AssistantMessage, provider: &str, model_id: &str) -> bool {
    let named = |key: &str| message.metadata.text(provider, key);
    named(REQUESTED).or_else(|| named("model")) == Some(model_id)
}

/// The metadata of an answer: the provider's `fields` in its namespace, with the requested model.
pub(crate) fn native_metadata(
    provider: &str,
    model_id: &str,
    mut fields: Map<String, Value>,
) -> Metadata {
    if fields.get("model").and_then(Value::as_str) != Some(model_id) {
        let key = if fields.contains_key("model") {
            REQUESTED
        } else {
            "model"
        };
        fields.insert(key.to_owned(), Value::from(model_id));
    }
    Metadata::from_iter([(provider.to_owned(), Value::Object(fields))])
}

/// The metadata of an answer with its fields as facts.
pub(crate) fn native_facts(
    provider: &Arc<str>,
    model_id: &Arc<str>,
    mut fields: Vec<(&'static str, Fact)>,
) -> Metadata {
    let model = fields.iter().find(|(key, _)| *key == "model");
    if model.and_then(|(_, fact)| fact.as_str()) != Some(model_id) {
        let key = model.map_or("model", |_| REQUESTED);
        fields.push((key, Fact::Text(Arc::clone(model_id))));
    }
    Metadata::native(Arc::clone(provider), fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MessageOptions;
    use serde_json::json;

    #[test]
    fn a_message_is_native_to_the_model_that_was_asked_for_it() {
        let message = |fields: Value| {
            let Value::Object(fields) = fields else {
                panic!("an object")
            };
            let metadata = Some(native_metadata("p", "latest", fields));
            let options = MessageOptions {
                metadata,
                ..MessageOptions::default()
            };
            AssistantMessage::new(Vec::new(), Vec::new(), options)
        };
        for fields in [
            json!({}),
            json!({"model": "latest"}),
            json!({"model": "m-2026"}),
        ] {
            let message = message(fields);
            assert!(is_native(&message, "p", "latest"));
            assert!(!is_native(&message, "p", "m-2026"));
            assert!(!is_native(&message, "q", "latest"));
        }
    }
}
