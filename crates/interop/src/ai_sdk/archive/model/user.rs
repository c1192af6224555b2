//! User messages.

use super::step::event;
use crate::Losses;
use crate::ai_sdk::archive::{member, parts_of, text_of};
use crate::ai_sdk::chunk::some;
use crate::document::data_url;
use thread::{Json, Object};

/// A user's message as a prompt.
pub(super) struct Prompt {
    pub(super) prompt: Json,
    /// The system messages that represent its data parts.
    pub(super) events: Vec<Json>,
}

pub(super) fn read_prompt(message: &Json, at: &str, pointer: &str, losses: &mut Losses) -> Prompt {
    let mut content = Vec::new();
    let mut events = Vec::new();
    for (place, part) in parts_of(message).iter().enumerate() {
        let pointer = format!("{pointer}/parts/{place}");
        let kind = text_of(part, "type");
        match kind {
            "text" => content.push(text_of(part, "text").into()),
            "file" => {
                let mut file = file(part);
                if let (Some(name), Some(file)) = (some(part, "filename"), file.as_object_mut()) {
                    file.insert("filename", name.clone());
                }
                if some(part, "providerReference").is_some() {
                    losses.push(
                        member(&pointer, "providerReference"),
                        "where a provider has a file",
                    );
                }
                content.push(file);
            }
            "step-start" => {}
            _ if kind.starts_with("data-") => {
                let data = part.get("data").cloned().unwrap_or_default();
                let event = event(kind, &data, at).with_some("id", part.get("id").cloned());
                events.push(event.into());
            }
            _ => losses.push(pointer.as_str(), "a part that is nothing a user says"),
        }
        if some(part, "providerMetadata").is_some() {
            losses.push(
                member(&pointer, "providerMetadata"),
                "what is said to providers of a user's part",
            );
        }
    }
    let content = match content.as_slice() {
        [Json::String(_)] => content.pop().unwrap_or_default(),
        _ => Json::Array(content),
    };
    let prompt = Object::new()
        .with("content", content)
        .with("timestamp", at)
        .with("part_kind", "user-prompt");
    Prompt {
        prompt: prompt.into(),
        events,
    }
}

/// A file as user content: its bytes if the part contains them, else its URL.
pub(super) fn file(part: &Json) -> Json {
    let url = text_of(part, "url");
    let media_type = text_of(part, "mediaType");
    if let Some((found, data)) = data_url(url) {
        let media_type = if media_type.is_empty() {
            found
        } else {
            media_type
        };
        let binary = Object::new()
            .with("data", data)
            .with("media_type", media_type)
            .with("kind", "binary");
        return binary.into();
    }
    let kind = match media_type.split('/').next() {
        Some("image") => "image-url",
        Some("audio") => "audio-url",
        Some("video") => "video-url",
        _ => "document-url",
    };
    let known = (!media_type.is_empty() && !media_type.ends_with("/*")).then_some(media_type);
    let link = Object::new()
        .with("url", url)
        .with("kind", kind)
        .with_some("media_type", known);
    link.into()
}
