//! The citations in the texts of an answer.

use super::super::content::citation;
use serde_json::Value;
use std::collections::BTreeMap;
use timeline::Payload;

/// The citations of each block of an answer, as JSON texts.
pub(super) type Citations = BTreeMap<usize, Vec<String>>;

/// The citations that a provider of the Responses format stored with its message, by their blocks:
/// `metadata.<provider>.items`, each of which names a block.
pub(super) fn citations(metadata: &Payload) -> Citations {
    let mut citations = Citations::new();
    let Value::Object(providers) = metadata.value() else {
        return citations;
    };
    let items = providers
        .values()
        .filter_map(|fields| fields.get("items")?.as_array());
    for item in items.flatten() {
        let Some(first) = item.get("content").and_then(Value::as_u64) else {
            continue;
        };
        let Ok(first) = usize::try_from(first) else {
            continue;
        };
        let parts = item.pointer("/with/item/content").and_then(Value::as_array);
        for (place, part) in parts.into_iter().flatten().enumerate() {
            let cited = part.get("annotations").and_then(Value::as_array);
            let cited = cited.into_iter().flatten().filter_map(citation);
            let cited: Vec<String> = cited.map(|it| it.to_string()).collect();
            if !cited.is_empty() {
                citations.insert(first.saturating_add(place), cited);
            }
        }
    }
    citations
}
