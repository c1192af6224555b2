//! Texts and reasonings: what grows by deltas.

use super::error::ChunkError;
use super::{Reducer, put_metadata};
use crate::ai_sdk::chunk::{Block, Major, some, text};
use std::collections::BTreeMap;
use thread::{Json, Object};

impl Reducer {
    pub(super) fn start_block(&mut self, block: Block, chunk: &Json) {
        let id = text(chunk, "id");
        let mut part = match block {
            Block::Text => Object::new().with("type", "text"),
            Block::Reasoning => Object::new().with("type", "reasoning").with("id", id),
        };
        part.insert("text", "");
        part.insert("state", "streaming");
        put_metadata(&mut part, chunk);
        let place = self.parts.push(part);
        self.open_blocks(block).insert(id.to_owned(), place);
    }

    pub(super) fn grow_block(&mut self, block: Block, chunk: &Json) -> Result<(), ChunkError> {
        let part = self.block(block, chunk)?;
        if let Some(Json::String(whole)) = part.get_mut("text") {
            whole.push_str(text(chunk, "delta"));
        }
        put_metadata(part, chunk);
        Ok(())
    }

    pub(super) fn end_block(&mut self, block: Block, chunk: &Json) -> Result<(), ChunkError> {
        let cites = block == Block::Text && self.major >= Major::V7;
        let part = self.block(block, chunk)?;
        part.insert("state", "done");
        if let Some(citations) = some(chunk, "citations").filter(|_| cites) {
            part.insert("citations", known_citations(citations));
        }
        put_metadata(part, chunk);
        self.open_blocks(block).remove(text(chunk, "id"));
        Ok(())
    }

    fn block(&mut self, block: Block, chunk: &Json) -> Result<&mut Object, ChunkError> {
        let id = text(chunk, "id");
        let place = self.open_blocks(block).get(id).copied();
        let part = place.and_then(|place| self.parts.get_mut(place));
        part.ok_or_else(|| ChunkError::NotStarted(id.to_owned()))
    }

    fn open_blocks(&mut self, block: Block) -> &mut BTreeMap<String, usize> {
        let [texts, reasonings] = &mut self.open;
        match block {
            Block::Text => texts,
            Block::Reasoning => reasonings,
        }
    }
}

/// Citations with only the members of the client's schema. Clients drop other members here, unlike in
/// other fields.
fn known_citations(citations: &Json) -> Json {
    const SOURCE: [&str; 7] = [
        "type",
        "sourceType",
        "id",
        "url",
        "mediaType",
        "title",
        "filename",
    ];
    let Some(citations) = citations.as_array() else {
        return citations.clone();
    };
    let known = |citation: &Json| {
        let mut known = picked(citation, &["startIndex", "endIndex", "citedText"]);
        let foreign = match citation
            .pointer("/source/sourceType")
            .and_then(Json::as_str)
        {
            Some("url") => ["mediaType", "filename"].as_slice(),
            Some("document") => ["url"].as_slice(),
            _ => [].as_slice(),
        };
        if let Some(source) = citation.get("source") {
            let mut source = picked(source, &SOURCE)
                .with_some("providerMetadata", source.get("providerMetadata").cloned());
            source.retain(|key, _| !foreign.contains(&key));
            known.insert("source", Json::Object(source));
        }
        Json::Object(known)
    };
    Json::Array(citations.iter().map(known).collect())
}

fn picked(value: &Json, keys: &[&str]) -> Object {
    let members = keys
        .iter()
        .filter_map(|key| Some((*key, value.get(key)?.clone())));
    members.collect()
}
