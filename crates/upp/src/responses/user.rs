//! User messages as input parts.

use super::{Dialect, Responses};
use crate::codec::{Codec as _, document_text, file_name};
use crate::content::{Media, UserContent};
use crate::error::{Code, Error};
use crate::message::{Speaker, UserMessage};
use serde_json::{Map, Value, json};

impl Responses {
    pub(super) fn user(&self, user: &UserMessage) -> Result<Value, Error> {
        let role = match user.explicit_speaker() {
            Speaker::User => "user",
            Speaker::System => "system",
            Speaker::Developer => "developer",
        };
        if let [UserContent::Text { text }] = user.content.as_slice() {
            return Ok(json!({"type": "message", "role": role, "content": text}));
        }
        let fields = user.metadata.get(&self.provider);
        let detail = fields.and_then(|fields| fields.get("detail")?.as_str());
        let detail = detail.unwrap_or("auto");
        let parts = user.content.iter().map(|block| self.part(block, detail));
        let parts: Vec<Value> = parts.collect::<Result<_, _>>()?;
        Ok(json!({"type": "message", "role": role, "content": parts}))
    }

    fn part(&self, block: &UserContent, detail: &str) -> Result<Value, Error> {
        let can = self.capabilities();
        match block {
            UserContent::Text { text } => Ok(json!({"type": "input_text", "text": text})),
            UserContent::Image(media) => address(media)
                .map(|url| json!({"type": "input_image", "image_url": url, "detail": detail}))
                .ok_or_else(|| self.unsupported("an image as text")),
            UserContent::Document(media) => match document_text(media) {
                Some(text) => Ok(json!({"type": "input_text", "text": titled(media, &text)})),
                None if can.document_input => self.file(media, "document"),
                None => Err(self.unsupported("documents other than text")),
            },
            UserContent::Audio(media) if self.dialect == Dialect::OpenRouter => {
                match (media.base64(), media.mime_type.split_once('/')) {
                    (Some(data), Some((_, format))) => Ok(json!({
                        "type": "input_audio", "input_audio": {"data": data, "format": format},
                    })),
                    (_, _) => Err(self.unsupported("audio by address")),
                }
            }
            UserContent::Audio(media) if can.audio_input => self.file(media, "audio"),
            UserContent::Audio(_) => Err(self.unsupported("audio")),
            UserContent::Video(media) if can.video_input => address(media)
                .map(|url| json!({"type": "input_video", "video_url": url}))
                .ok_or_else(|| self.unsupported("a video as text")),
            UserContent::Video(_) => Err(self.unsupported("video")),
            UserContent::Binary(_) => Err(self.unsupported("binary content")),
        }
    }

    fn file(&self, media: &Media, stem: &str) -> Result<Value, Error> {
        if let Some(url) = media.url() {
            return Ok(json!({"type": "input_file", "file_url": url}));
        }
        let data = media.data_url();
        let data = data.ok_or_else(|| self.unsupported("audio as text"))?;
        let mut part = Map::new();
        part.insert("type".into(), json!("input_file"));
        let name = media
            .title
            .clone()
            .unwrap_or_else(|| file_name(media, stem));
        part.insert("filename".into(), Value::from(name));
        part.insert("file_data".into(), Value::from(data));
        Ok(Value::Object(part))
    }

    fn unsupported(&self, what: &str) -> Error {
        let text = format!("Responses of {} can't take {what}", self.provider);
        Error::new(Code::InvalidRequest, self.provider.as_str(), text)
    }
}

/// The address of media, or their bytes as one.
fn address(media: &Media) -> Option<String> {
    media.url().map(str::to_owned).or_else(|| media.data_url())
}

fn titled(media: &Media, text: &str) -> String {
    match &media.title {
        Some(title) => format!("[Document: {title}]\n{text}"),
        None => text.to_owned(),
    }
}
