//! The parts of a response.

use super::answers::PartAddress;
use super::{Writer, is_nothing, prompt};
use crate::ai_sdk::archive::model::CUSTOM;
use thread::{Json, Object};

impl Writer<'_, '_> {
    pub(super) fn part(&mut self, part: &Json, at: PartAddress, pointer: &str) {
        const TEXT: [&str; 6] = [
            "part_kind",
            "content",
            "id",
            "provider_name",
            "provider_details",
            "signature",
        ];
        let Some(object) = part.as_object() else {
            self.lost(pointer, "what is no part");
            return;
        };
        let kind = object.get_str("part_kind").unwrap_or_default();
        let content = object.get_str("content").unwrap_or_default();
        match kind {
            "text" => {
                self.lose_rest(object, &TEXT, pointer, "a text");
                let text = Object::new()
                    .with("type", "text")
                    .with("text", content)
                    .with("state", "done")
                    .with_some("providerMetadata", provider(object));
                self.parts.push(text.into());
            }
            "thinking" => {
                self.lose_rest(object, &TEXT, pointer, "a thought");
                let id = format!("r{}", self.parts.len());
                let thought = Object::new()
                    .with("type", "reasoning")
                    .with("id", id)
                    .with("text", content)
                    .with("state", "done")
                    .with_some("providerMetadata", provider(object));
                self.parts.push(thought.into());
            }
            "tool-call" | "builtin-tool-call" => self.call(object, at, pointer),
            "builtin-tool-return" | "tool-return" => {}
            "file" => {
                self.lose_rest(object, &TEXT, pointer, "a file");
                let content = object.get("content").cloned().unwrap_or_default();
                match prompt::file(&content) {
                    Some(mut file) => {
                        prompt::lose_file(self, &content, &format!("{pointer}/content"));
                        if let Some(metadata) = provider(object) {
                            file.insert("providerMetadata", metadata);
                        }
                        self.parts.push(file.into());
                    }
                    None => self.lost(pointer, "a file that is neither bytes nor at an address"),
                }
            }
            "speech" => {
                let mut parts = Vec::new();
                prompt::speech(self, object, pointer, &mut parts);
                for part in &mut parts {
                    if let Some(part) = part.as_object_mut()
                        && part.get_str("type") == Some("text")
                    {
                        part.insert("state", "done");
                    }
                }
                self.parts.append(&mut parts);
            }
            kind if kind.starts_with(CUSTOM) => match object.get("part") {
                Some(whole @ Json::Object(_)) => self.parts.push(whole.clone()),
                Some(_) | None => self.lost(pointer, "a part of a foreign kind"),
            },
            kind => self.lost(pointer, format!("a part of kind {kind:?}")),
        }
    }
}

/// A part's provider metadata, in the form of Pydantic AI's adapter.
pub(super) fn provider(part: &Object) -> Option<Object> {
    let mut said = Object::new();
    for key in ["id", "signature", "provider_name", "provider_details"] {
        if let Some(value) = part.get(key).filter(|value| !is_nothing(value)) {
            said.insert(key, value.clone());
        }
    }
    (!said.is_empty()).then(|| Object::new().with("pydantic_ai", said))
}
