//! A user's media as content parts.

use super::ChatCompletions;
use crate::codec::{document_text, file_name};
use crate::content::{Media, UserContent};
use crate::error::{Code, Error};
use serde_json::{Value, json};

impl ChatCompletions {
    pub(super) fn part(&self, block: &UserContent) -> Result<Value, Error> {
        match block {
            UserContent::Text { text } => Ok(json!({"type": "text", "text": text})),
            UserContent::Image(media) => {
                let url = media.data_url().or_else(|| media.url().map(str::to_owned));
                let url = url.ok_or_else(|| self.unsupported("an image as text"))?;
                Ok(json!({"type": "image_url", "image_url": {"url": url}}))
            }
            UserContent::Document(media) => self.document(media),
            UserContent::Audio(media) => match (media.base64(), audio_format(&media.mime_type)) {
                (Some(data), Some(format)) => Ok(json!({
                    "type": "input_audio", "input_audio": {"data": data, "format": format},
                })),
                _ => Err(self.unsupported("audio other than WAV and MP3 bytes")),
            },
            UserContent::Video(media) if self.dialect.capabilities.video_input => {
                let url = media.data_url().or_else(|| media.url().map(str::to_owned));
                let url = url.ok_or_else(|| self.unsupported("a video as text"))?;
                Ok(json!({"type": "video_url", "video_url": {"url": url}}))
            }
            UserContent::Video(_) => Err(self.unsupported("video")),
            UserContent::Binary(_) => Err(self.unsupported("binary content")),
        }
    }

    fn document(&self, media: &Media) -> Result<Value, Error> {
        if let Some(text) = document_text(media) {
            let text = match &media.title {
                Some(title) => format!("[Document: {title}]\n{text}"),
                None => text.into_owned(),
            };
            return Ok(json!({"type": "text", "text": text}));
        }
        let url = media.url().filter(|_| self.dialect.document_urls);
        let data = media.data_url().or_else(|| url.map(str::to_owned));
        let data = data.ok_or_else(|| self.unsupported("a document by address; send its bytes"))?;
        let title = media.title.clone();
        let name = title.unwrap_or_else(|| file_name(media, "document"));
        Ok(json!({"type": "file", "file": {"filename": name, "file_data": data}}))
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::new(
            Code::InvalidRequest,
            &*self.dialect.provider,
            format!("Chat Completions can't take {what}"),
        )
    }
}

fn audio_format(mime_type: &str) -> Option<&'static str> {
    match mime_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mp3" | "audio/mpeg" => Some("mp3"),
        _ => None,
    }
}
