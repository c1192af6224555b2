//! The user's prompts, as parts of a message.

use super::{Writer, text};
use crate::ai_sdk::archive::namespace::standard;
use crate::runs::ModelMessage;
use thread::{Json, Object};

/// Whether a request contains a user's prompt or speech.
pub(super) fn prompts(request: &Json) -> bool {
    let parts = request.get("parts").and_then(Json::as_array);
    let kinds = parts.unwrap_or_default().iter();
    let mut kinds = kinds.map(|part| text(part, "part_kind"));
    kinds.any(|kind| matches!(kind, "user-prompt" | "speech"))
}

impl Writer<'_, '_> {
    /// Converts a request. Its prompts come before the answer if `asks`. Otherwise they become a
    /// steering message in the answer.
    pub(super) fn request(&mut self, message: &ModelMessage, asks: bool) {
        let Some(object) = message.json.as_object() else {
            return;
        };
        let pointer = &message.pointer;
        self.lose_rest(
            object,
            &["parts", "kind", "timestamp"],
            pointer,
            "a request",
        );
        let mut said = Vec::new();
        let parts = object.get("parts").and_then(Json::as_array);
        for (place, part) in parts.unwrap_or_default().iter().enumerate() {
            let pointer = format!("{pointer}/parts/{place}");
            let Some(part) = part.as_object() else {
                continue;
            };
            match part.get_str("part_kind").unwrap_or_default() {
                "user-prompt" => self.prompt(part, &pointer, &mut said),
                "speech" => speech(self, part, &pointer, &mut said),
                "tool-return" | "retry-prompt" => {}
                kind => self.lost(pointer, format!("a part of kind {kind:?}")),
            }
        }
        if asks {
            self.said.append(&mut said);
        } else if !said.is_empty() {
            let id = format!("s{}", self.parts.len());
            let steering = Object::new()
                .with("type", "steering-message")
                .with("id", id)
                .with("parts", Json::Array(said));
            self.parts.push(steering.into());
        }
    }

    fn prompt(&mut self, part: &Object, pointer: &str, said: &mut Vec<Json>) {
        self.lose_rest(part, &["part_kind", "content"], pointer, "a prompt");
        let content = part.get("content");
        let items = match content {
            Some(Json::Array(items)) => items.as_slice(),
            Some(item) => std::slice::from_ref(item),
            None => &[],
        };
        if matches!(content, Some(Json::Array(items)) if items.len() < 2) {
            self.lost(format!("{pointer}/content"), "that a prompt is a list");
        }
        for (place, item) in items.iter().enumerate() {
            let at = format!("{pointer}/content/{place}");
            if let Json::String(text) = item {
                said.push(text_part(text));
                continue;
            }
            match text(item, "kind") {
                "text-content" | "structured-content" => {
                    if let Some(item) = item.as_object() {
                        self.lose_rest(item, &["content"], &at, "a text");
                    }
                    said.push(text_part(text(item, "content")));
                }
                kind => match file(item) {
                    Some(file) => {
                        lose_file(self, item, &at);
                        said.push(file.into());
                    }
                    None => self.lost(at, format!("content of kind {kind:?}")),
                },
            }
        }
    }
}

fn text_part(text: &str) -> Json {
    Object::new().with("type", "text").with("text", text).into()
}

/// Bytes or an address as a file's part.
pub(super) fn file(content: &Json) -> Option<Object> {
    let media_type = content.get("media_type").and_then(Json::as_str);
    let (url, otherwise) = match text(content, "kind") {
        "binary" => {
            let data = standard(content.get("data")?.as_str()?);
            let media_type = media_type.unwrap_or("application/octet-stream");
            (
                format!("data:{media_type};base64,{data}"),
                "application/octet-stream",
            )
        }
        "image-url" => (content.get("url")?.as_str()?.to_owned(), "image/*"),
        "audio-url" => (content.get("url")?.as_str()?.to_owned(), "audio/*"),
        "video-url" => (content.get("url")?.as_str()?.to_owned(), "video/*"),
        "document-url" => {
            let url = content.get("url")?.as_str()?;
            (url.to_owned(), "application/octet-stream")
        }
        _ => return None,
    };
    let file = Object::new()
        .with("type", "file")
        .with("mediaType", media_type.unwrap_or(otherwise))
        .with_some(
            "filename",
            content
                .get("filename")
                .filter(|name| !name.is_null())
                .cloned(),
        )
        .with("url", url);
    Some(file)
}

/// Names what a file's part has no place for.
pub(super) fn lose_file(writer: &mut Writer<'_, '_>, content: &Json, pointer: &str) {
    const CARRIED: [&str; 5] = ["data", "url", "media_type", "kind", "filename"];
    if let Some(content) = content.as_object() {
        writer.lose_rest(content, &CARRIED, pointer, "a file");
        let data = content.get_str("data");
        if data.is_some_and(|data| data.contains(['-', '_'])) {
            writer.lost(format!("{pointer}/data"), "the alphabet of base64");
        }
    }
}

/// Converts speech to its transcript and its audio.
pub(super) fn speech(
    writer: &mut Writer<'_, '_>,
    part: &Object,
    pointer: &str,
    said: &mut Vec<Json>,
) {
    writer.lose_rest(
        part,
        &["part_kind", "transcript", "audio"],
        pointer,
        "speech",
    );
    writer.lost(pointer, "that it was spoken");
    if let Some(words) = part.get_str("transcript") {
        said.push(text_part(words));
    }
    if let Some(audio) = part.get("audio").filter(|audio| !audio.is_null()) {
        match file(audio) {
            Some(file) => {
                lose_file(writer, audio, &format!("{pointer}/audio"));
                said.push(file.into());
            }
            None => writer.lost(format!("{pointer}/audio"), "sound that is no bytes"),
        }
    }
}
