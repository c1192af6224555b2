//! Content blocks (UPP §6).

mod decode;
mod json;

pub(crate) use decode::{Block, Push};
pub(crate) use json::bytes as bytes_json;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Base64 in the standard alphabet. It is written with padding; text without is read too.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The source of the bytes of an image, document, audio or video.
///
/// As JSON it is the `source` of an image or a document: `{type, data}` or `{type, url}` (UPP §6).
/// Reading refuses text that is not base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum MediaSource {
    /// In the message, base64 in the standard alphabet.
    Base64 {
        /// The encoded bytes.
        #[serde(deserialize_with = "json::base64_text")]
        data: String,
    },
    /// At an address the provider can reach.
    Url {
        /// The address.
        url: String,
    },
    /// Plain text in the message (documents).
    Text {
        /// The text.
        data: String,
    },
    /// In memory; base64 as JSON.
    Bytes {
        /// The bytes.
        #[serde(with = "json::bytes")]
        data: Bytes,
    },
}

/// An image, document, audio, video or other binary block.
///
/// Each kind of block has its own JSON (UPP §6) with its own fields: `width`, `height` (images, video),
/// `title` (documents), `duration` (audio, video), `metadata` (binary). Other fields are left out.
/// Audio, video and binary have their bytes as `data`, or, as an extension, a `url`. Text in a block for
/// which UPP has none is written as the base64 of its UTF-8.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// The source of the bytes.
    pub source: MediaSource,
    /// The MIME type.
    pub mime_type: String,
    /// A title or file name, if known.
    pub title: Option<String>,
    /// In pixels.
    pub width: Option<u32>,
    /// In pixels.
    pub height: Option<u32>,
    /// In seconds.
    pub duration: Option<f64>,
    /// Further metadata of a binary block.
    pub metadata: Map<String, Value>,
}

impl Media {
    /// Media of which no more is known.
    pub fn new(source: MediaSource, mime_type: impl Into<String>) -> Self {
        Self {
            source,
            mime_type: mime_type.into(),
            title: None,
            width: None,
            height: None,
            duration: None,
            metadata: Map::new(),
        }
    }

    /// Sets or removes the title.
    #[must_use]
    pub fn with_title(mut self, title: Option<String>) -> Self {
        self.title = title;
        self
    }

    /// The bytes as base64, if the message has them.
    pub fn base64(&self) -> Option<Cow<'_, str>> {
        match &self.source {
            MediaSource::Base64 { data } => Some(Cow::Borrowed(data)),
            MediaSource::Bytes { data } => Some(Cow::Owned(BASE64.encode(data))),
            MediaSource::Url { .. } | MediaSource::Text { .. } => None,
        }
    }

    /// The URL, if the media is stored as one.
    pub fn url(&self) -> Option<&str> {
        match &self.source {
            MediaSource::Url { url } => Some(url),
            MediaSource::Base64 { .. } | MediaSource::Bytes { .. } | MediaSource::Text { .. } => {
                None
            }
        }
    }

    /// The text, if the source is text.
    pub fn text(&self) -> Option<&str> {
        match &self.source {
            MediaSource::Text { data } => Some(data),
            MediaSource::Base64 { .. } | MediaSource::Bytes { .. } | MediaSource::Url { .. } => {
                None
            }
        }
    }

    /// `data:<mime>;base64,<bytes>`, if the message has the bytes.
    pub fn data_url(&self) -> Option<String> {
        let data = self.base64()?;
        Some(format!("data:{};base64,{data}", self.mime_type))
    }
}

/// A content block of a user message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum UserContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(#[serde(with = "json::image")] Media),
    /// A document: PDF or plain text.
    Document(#[serde(with = "json::document")] Media),
    /// Audio.
    Audio(#[serde(with = "json::audio")] Media),
    /// Video.
    Video(#[serde(with = "json::video")] Media),
    /// Any other bytes.
    Binary(#[serde(with = "json::binary")] Media),
}

/// A content block of an assistant message. Tool calls are stored separately.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum AssistantContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning that the provider sends. `signature` is opaque and belongs to the provider. UPP has no
    /// such field; it expects such data in the message's metadata.
    Reasoning {
        /// The text; may be empty when the provider encrypts it.
        text: String,
        /// The provider's proof or encrypted form of this very text.
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// An image.
    Image(#[serde(with = "json::image")] Media),
    /// Audio.
    Audio(#[serde(with = "json::audio")] Media),
    /// Video.
    Video(#[serde(with = "json::video")] Media),
}

/// The input has a reasoning block (UPP §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a reasoning block can't be an input; only an assistant message has reasoning")]
pub struct ReasoningAsInput;

/// A model's block as input of the next turn; reasoning is refused (UPP §2).
impl TryFrom<AssistantContent> for UserContent {
    type Error = ReasoningAsInput;

    fn try_from(block: AssistantContent) -> Result<Self, ReasoningAsInput> {
        match block {
            AssistantContent::Text { text } => Ok(Self::Text { text }),
            AssistantContent::Reasoning { .. } => Err(ReasoningAsInput),
            AssistantContent::Image(media) => Ok(Self::Image(media)),
            AssistantContent::Audio(media) => Ok(Self::Audio(media)),
            AssistantContent::Video(media) => Ok(Self::Video(media)),
        }
    }
}

#[cfg(test)]
mod tests;
