//! One type for each kind of media.

use super::{MediaError, mime, read};
use crate::content::{AssistantContent, BASE64, Media, MediaSource, UserContent};
use base64::Engine;
use bytes::Bytes;
use std::path::Path;

/// The name of a block's type for error messages.
fn kind_of(block: &UserContent) -> &'static str {
    match block {
        UserContent::Text { .. } => "text",
        UserContent::Image(_) => "an image",
        UserContent::Document(_) => "a document",
        UserContent::Audio(_) => "audio",
        UserContent::Video(_) => "video",
        UserContent::Binary(_) => "binary",
    }
}

fn checked_base64(data: String) -> Result<MediaSource, MediaError> {
    BASE64.decode(&data).map_err(MediaError::NotBase64)?;
    Ok(MediaSource::Base64 { data })
}

macro_rules! helper {
    ($(#[$doc:meta])* $name:ident, $variant:ident, $what:literal, $guess:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name(Media);

        impl $name {
            /// From a URL. Nothing is fetched; without `mime_type`, the type is guessed from the
            /// extension.
            pub fn from_url(url: impl Into<String>, mime_type: Option<&str>) -> Self {
                let url = url.into();
                let mime_type = mime_type.unwrap_or_else(|| $guess(&url)).to_owned();
                Self(Media::new(MediaSource::Url { url }, mime_type))
            }

            /// From base64 text, which is checked and stored unchanged.
            pub fn from_base64(
                data: impl Into<String>,
                mime_type: impl Into<String>,
            ) -> Result<Self, MediaError> {
                let source = checked_base64(data.into())?;
                Ok(Self(Media::new(source, mime_type)))
            }

            /// Of a message's block of this kind.
            pub fn from_block(block: &UserContent) -> Result<Self, MediaError> {
                let UserContent::$variant(media) = block else {
                    return Err(MediaError::Block {
                        expected: $what,
                        found: kind_of(block),
                    });
                };
                Ok(Self(media.clone()))
            }

            /// As a block of a user message.
            pub fn to_block(&self) -> UserContent {
                UserContent::$variant(self.0.clone())
            }

            /// The underlying media.
            pub fn media(&self) -> &Media {
                &self.0
            }

            /// Converts into the underlying media.
            pub fn into_media(self) -> Media {
                self.0
            }

            /// The MIME type.
            pub fn mime_type(&self) -> &str {
                &self.0.mime_type
            }

            /// Whether the bytes are here, not at an address.
            pub fn has_data(&self) -> bool {
                self.0.url().is_none()
            }

            /// How many bytes there are; `None` for an address.
            pub fn size(&self) -> Option<usize> {
                self.0.size()
            }

            /// The bytes as base64; an error for an address and for text.
            pub fn to_base64(&self) -> Result<String, MediaError> {
                let data = self.0.base64().ok_or_else(|| self.0.has_no("base64"))?;
                Ok(data.into_owned())
            }

            /// `data:<mime>;base64,<bytes>`; an error for an address and for text.
            pub fn to_data_url(&self) -> Result<String, MediaError> {
                self.0.data_url().ok_or_else(|| self.0.has_no("base64"))
            }

            /// The bytes; an error for an address.
            pub fn to_bytes(&self) -> Result<Bytes, MediaError> {
                self.0.to_bytes()
            }

            /// The URL; fails if the message has the bytes.
            pub fn to_url(&self) -> Result<&str, MediaError> {
                self.0.url().ok_or_else(|| self.0.has_no("an address"))
            }
        }

        impl From<$name> for UserContent {
            fn from(it: $name) -> Self {
                Self::$variant(it.0)
            }
        }
    };
}

macro_rules! from_file_and_bytes {
    ($name:ident, $variant:ident, $guess:path) => {
        impl $name {
            /// Reads a file; the MIME type is guessed from its extension. A file that is missing,
            /// empty or larger than [`super::MAX_FILE_BYTES`] is an error.
            pub fn from_path(path: impl AsRef<Path>) -> Result<Self, MediaError> {
                let path = path.as_ref();
                let mime_type = $guess(&path.to_string_lossy());
                Ok(Self::from_bytes(read(path)?, mime_type))
            }

            /// Of bytes in memory.
            pub fn from_bytes(data: impl Into<Bytes>, mime_type: impl Into<String>) -> Self {
                let data = data.into();
                Self(Media::new(MediaSource::Bytes { data }, mime_type))
            }

            /// As a block of an assistant message.
            pub fn to_assistant_block(&self) -> AssistantContent {
                AssistantContent::$variant(self.0.clone())
            }
        }
    };
}

helper!(
    /// An image (UPP §6).
    Image,
    Image,
    "an image",
    mime::image
);
helper!(
    /// A document: PDF or plain text (UPP §6).
    Document,
    Document,
    "a document",
    mime::document
);
helper!(
    /// Audio (UPP §6).
    Audio,
    Audio,
    "audio",
    mime::audio
);
helper!(
    /// A video (UPP §6).
    Video,
    Video,
    "video",
    mime::video
);
from_file_and_bytes!(Image, Image, mime::image);
from_file_and_bytes!(Audio, Audio, mime::audio);
from_file_and_bytes!(Video, Video, mime::video);

impl Document {
    /// Reads a file as base64; the MIME type is guessed from its extension. A file that is
    /// missing, empty or larger than [`super::MAX_FILE_BYTES`] is an error.
    pub fn from_path(path: impl AsRef<Path>, title: Option<String>) -> Result<Self, MediaError> {
        let path = path.as_ref();
        let data = BASE64.encode(read(path)?);
        let mime_type = mime::document(&path.to_string_lossy());
        let media = Media::new(MediaSource::Base64 { data }, mime_type);
        Ok(Self(media.with_title(title)))
    }

    /// Of plain text.
    pub fn from_text(text: impl Into<String>, title: Option<String>) -> Self {
        let source = MediaSource::Text { data: text.into() };
        Self(Media::new(source, "text/plain").with_title(title))
    }

    /// Sets the title.
    #[must_use]
    pub fn with_title(self, title: Option<String>) -> Self {
        Self(self.0.with_title(title))
    }

    /// The title, if there is one.
    pub fn title(&self) -> Option<&str> {
        self.0.title.as_deref()
    }

    /// Whether it is a PDF.
    pub fn is_pdf(&self) -> bool {
        self.mime_type() == "application/pdf"
    }

    /// Whether it is plain text.
    pub fn is_text(&self) -> bool {
        self.mime_type() == "text/plain"
    }

    /// The text; an error unless the source is text.
    pub fn to_text(&self) -> Result<&str, MediaError> {
        self.0.text().ok_or_else(|| self.0.has_no("text"))
    }
}

impl Image {
    /// Sets the width and the height, in pixels.
    #[must_use]
    pub fn with_size(mut self, width: u32, height: u32) -> Self {
        (self.0.width, self.0.height) = (Some(width), Some(height));
        self
    }
}

impl Audio {
    /// Sets the duration, in seconds.
    #[must_use]
    pub fn with_duration(mut self, seconds: f64) -> Self {
        self.0.duration = Some(seconds);
        self
    }
}

impl Video {
    /// Sets the duration, in seconds.
    #[must_use]
    pub fn with_duration(mut self, seconds: f64) -> Self {
        self.0.duration = Some(seconds);
        self
    }

    /// Sets the width and the height, in pixels.
    #[must_use]
    pub fn with_size(mut self, width: u32, height: u32) -> Self {
        (self.0.width, self.0.height) = (Some(width), Some(height));
        self
    }
}
