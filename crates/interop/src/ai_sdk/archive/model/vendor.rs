//! Provider metadata of parts.

use crate::Losses;
use crate::ai_sdk::archive::member;
use thread::{Json, Object};

/// The text of the loss for provider metadata that has no place.
const SAID: &str = "what a provider said of a part";

/// Adds the known data in `providerMetadata` to a part: id, signature, provider and details. A part
/// has one provider; the data of others is lost.
pub(super) fn put(part: &mut Object, metadata: Option<&Json>, at: &str, losses: &mut Losses) {
    let metadata = metadata.and_then(Json::as_object);
    for (vendor, said) in metadata.into_iter().flatten() {
        let at = member(at, vendor);
        let Some(said) = said.as_object() else {
            losses.push(at, SAID);
            continue;
        };
        if vendor == "pydantic_ai" {
            for (key, value) in said {
                let is_known = match key {
                    "signature" => is_thinking(part),
                    key => matches!(key, "id" | "provider_name" | "provider_details"),
                };
                if is_known {
                    part.insert(key, value.clone());
                } else if !value.is_null() {
                    losses.push(member(&at, key), SAID);
                }
            }
        } else if part.contains_key("provider_name") {
            losses.push(at, SAID);
        } else {
            of(part, vendor, said);
        }
    }
}

fn is_thinking(part: &Object) -> bool {
    part.get_str("part_kind") == Some("thinking")
}

fn of(part: &mut Object, vendor: &str, said: &Object) {
    let mut details = Object::new();
    let thinking = is_thinking(part);
    for (key, value) in said {
        match (vendor, key) {
            ("anthropic", "signature")
            | ("openai" | "azure", "reasoningEncryptedContent")
            | ("google" | "vertex", "thoughtSignature")
                if thinking =>
            {
                part.insert("signature", value.clone());
            }
            ("openai" | "azure", "itemId") => {
                part.insert("id", value.clone());
            }
            ("google" | "vertex", "thoughtSignature") => {
                details.insert("thought_signature", value.clone());
            }
            _ => {
                details.insert(key, value.clone());
            }
        }
    }
    part.insert("provider_name", vendor);
    if !details.is_empty() {
        part.insert("provider_details", details);
    }
}
