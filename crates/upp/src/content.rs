//! Content blocks (UPP §6).

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Where the bytes of an image, document, audio or video are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum MediaSource {
    /// In the message, base64 in the standard alphabet.
    Base64 {
        /// The encoded bytes.
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
}

/// An image, document, audio, video or other binary block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Media {
    /// Where the bytes are.
    pub source: MediaSource,
    /// The MIME type.
    pub mime_type: String,
    /// A title or file name, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl Media {
    /// Media of this type from this source.
    pub fn new(source: MediaSource, mime_type: impl Into<String>) -> Self {
        Self {
            source,
            mime_type: mime_type.into(),
            title: None,
        }
    }

    /// The bytes as base64, where they are at hand.
    pub fn base64(&self) -> Option<Cow<'_, str>> {
        match &self.source {
            MediaSource::Base64 { data } => Some(Cow::Borrowed(data)),
            MediaSource::Url { .. } | MediaSource::Text { .. } => None,
        }
    }

    /// The address, where that is the source.
    pub fn url(&self) -> Option<&str> {
        match &self.source {
            MediaSource::Url { url } => Some(url),
            MediaSource::Base64 { .. } | MediaSource::Text { .. } => None,
        }
    }

    /// The text, where that is the source.
    pub fn text(&self) -> Option<&str> {
        match &self.source {
            MediaSource::Text { data } => Some(data),
            MediaSource::Base64 { .. } | MediaSource::Url { .. } => None,
        }
    }

    /// The bytes as a `data:` URL, where they are at hand.
    pub fn data_url(&self) -> Option<String> {
        let data = self.base64()?;
        Some(format!("data:{};base64,{data}", self.mime_type))
    }
}

/// What a user message holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum UserContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Media),
    /// A document: PDF or plain text.
    Document(Media),
    /// Audio.
    Audio(Media),
    /// Video.
    Video(Media),
    /// Any other bytes.
    Binary(Media),
}

/// What an assistant message holds, beside its tool calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum AssistantContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning the provider shows. `signature` is opaque and belongs to the provider.
    Reasoning {
        /// The text; may be empty when the provider encrypts it.
        text: String,
        /// The provider's proof or encrypted form of this very text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// An image.
    Image(Media),
    /// Audio.
    Audio(Media),
    /// Video.
    Video(Media),
}
