//! Reading requests: the functions that several protocols share.

use crate::document::data_url;
use serde_json::{Value, json};
use std::borrow::Cow;

/// A key as a segment of a JSON pointer (RFC 6901).
pub(crate) fn token(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) {
        key.replace('~', "~0").replace('/', "~1").into()
    } else {
        key.into()
    }
}

/// A JSON Pointer in the notation of `OpenAI`'s protocols: `messages[0].content`. Empty for the
/// root.
pub fn param(pointer: &str) -> String {
    let mut param = String::new();
    for segment in pointer.split('/').skip(1) {
        if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            param.push('[');
            param.push_str(segment);
            param.push(']');
            continue;
        }
        if !param.is_empty() {
            param.push('.');
        }
        param.push_str(&segment.replace("~1", "/").replace("~0", "~"));
    }
    param
}

/// Whether this is an address that a server fetches from.
pub(crate) fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Whether this is a `data:` URL in base64.
pub(crate) fn is_inline(url: &str) -> bool {
    data_url(url).is_some_and(|(_, data)| is_base64(data))
}

/// A file as a part in the log's format: an image, or a file by its data (`data:`) or its URL.
pub(crate) fn file(url: &str, is_image: bool, media_type: Option<&str>) -> Value {
    let mut part = if is_image {
        json!({"type": "input_image", "image_url": url})
    } else if url.starts_with("data:") {
        json!({"type": "input_file", "file_data": url})
    } else {
        json!({"type": "input_file", "file_url": url})
    };
    if let Some(media_type) = media_type {
        part["media_type"] = media_type.into();
    }
    part
}

/// The base64 data of a file in the log, if it is stored inline, and its media type, if known.
pub(crate) fn inline<'a>(
    url: &'a str,
    media_type: Option<&'a str>,
) -> (Option<&'a str>, Option<&'a str>) {
    let (data, said) = match data_url(url) {
        Some((said, data)) => (Some(data), Some(said)),
        // Base64 alone, as some protocols send it.
        None => (Some(url).filter(|url| !url.contains(':')), None),
    };
    (data, media_type.or(said).filter(|kind| !kind.is_empty()))
}

/// Whether this is an image's media type.
pub(crate) fn is_image(media_type: &str) -> bool {
    MediaKind::of(media_type) == Some(MediaKind::Image)
}

/// Whether this is base64, with or without its padding.
pub(crate) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let n_padding = text.len() - digits.len();
    let is_padded = n_padding == 0 || (n_padding <= 2 && text.len().is_multiple_of(4));
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    is_padded && digits.len() % 4 != 1 && digits.bytes().all(is_digit)
}

/// The kind of input as which a model receives a file, if there are models that accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaKind {
    /// A picture.
    Image,
    /// A sound.
    Audio,
    /// A film.
    Video,
    /// A text, or a PDF.
    Document,
}

impl MediaKind {
    /// The media types of such files; `*` matches any subtype.
    pub(crate) const READ: [&str; 5] =
        ["text/*", "image/*", "audio/*", "video/*", "application/pdf"];

    /// The kind of a file of this media type; parameters are ignored. `None` if no model accepts
    /// it.
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        let name = media_type.split(';').next()?.trim().to_ascii_lowercase();
        match name.split_once('/')? {
            (_, "") => None,
            ("image", _) => Some(Self::Image),
            ("audio", _) => Some(Self::Audio),
            ("video", _) => Some(Self::Video),
            ("text", _) | ("application", "pdf") => Some(Self::Document),
            _ => None,
        }
    }
}
