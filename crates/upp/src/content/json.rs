//! The JSON of each kind of block (UPP §6).

use super::{BASE64, Media, MediaSource};
use base64::Engine;
use base64::read::DecoderReader;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Checks base64 without keeping what it decodes to.
fn check(text: &str) -> Result<(), std::io::Error> {
    let mut reader = DecoderReader::new(text.as_bytes(), &BASE64);
    std::io::copy(&mut reader, &mut std::io::sink()).map(drop)
}

fn not_base64<E: Error>(place: &str, error: &dyn std::fmt::Display) -> E {
    E::custom(format_args!("{place} is not base64: {error}"))
}

/// Reads a string that must be base64, and returns it unchanged.
pub(super) fn base64_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    check(&text).map_err(|error| not_base64("source.data", &error))?;
    Ok(text)
}

/// Bytes as base64.
pub(crate) mod bytes {
    use super::{BASE64, Deserialize, Deserializer, Engine, Serializer, not_base64};
    use bytes::Bytes;
    use std::borrow::Cow;

    pub(crate) fn serialize<S: Serializer>(data: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(data))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        BASE64
            .decode(&*text)
            .map(Bytes::from)
            .map_err(|error| not_base64("data", &error))
    }
}

/// The bytes as base64, or a text's UTF-8 as base64; `None` for a URL.
fn inline(media: &Media) -> Option<Cow<'_, str>> {
    match media.text() {
        Some(text) => Some(Cow::Owned(BASE64.encode(text))),
        None => media.base64(),
    }
}

/// The source of an image as UPP has it: base64, url or bytes.
fn image_source(media: &Media) -> Cow<'_, MediaSource> {
    match &media.source {
        MediaSource::Text { data } => Cow::Owned(MediaSource::Base64 {
            data: BASE64.encode(data),
        }),
        MediaSource::Base64 { .. } | MediaSource::Url { .. } | MediaSource::Bytes { .. } => {
            Cow::Borrowed(&media.source)
        }
    }
}

/// The source of a document as UPP has it: base64, url or text.
fn document_source(media: &Media) -> Cow<'_, MediaSource> {
    match &media.source {
        MediaSource::Bytes { data } => Cow::Owned(MediaSource::Base64 {
            data: BASE64.encode(data),
        }),
        MediaSource::Base64 { .. } | MediaSource::Url { .. } | MediaSource::Text { .. } => {
            Cow::Borrowed(&media.source)
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sourced<'a> {
    source: Cow<'a, MediaSource>,
    mime_type: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
}

/// `{source, mimeType, width?, height?}`
pub(super) mod image {
    use super::{
        Deserialize, Deserializer, Error, Media, MediaSource, Serialize, Serializer, Sourced,
        image_source,
    };

    pub(crate) fn serialize<S: Serializer>(
        media: &Media,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let json = Sourced {
            source: image_source(media),
            mime_type: media.mime_type.as_str().into(),
            title: None,
            width: media.width,
            height: media.height,
        };
        json.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Media, D::Error> {
        let json = Sourced::deserialize(deserializer)?;
        let source = json.source.into_owned();
        if matches!(source, MediaSource::Text { .. }) {
            let text = "an image's source.type is base64, url or bytes, not text";
            return Err(D::Error::custom(text));
        }
        let mut media = Media::new(source, json.mime_type);
        (media.width, media.height) = (json.width, json.height);
        Ok(media)
    }
}

/// `{source, mimeType, title?}`
pub(super) mod document {
    use super::{
        Deserialize, Deserializer, Error, Media, MediaSource, Serialize, Serializer, Sourced,
        document_source,
    };

    pub(crate) fn serialize<S: Serializer>(
        media: &Media,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let json = Sourced {
            source: document_source(media),
            mime_type: media.mime_type.as_str().into(),
            title: media.title.as_deref().map(Into::into),
            width: None,
            height: None,
        };
        json.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Media, D::Error> {
        let json = Sourced::deserialize(deserializer)?;
        let source = json.source.into_owned();
        if matches!(source, MediaSource::Bytes { .. }) {
            let text = "a document's source.type is base64, url or text, not bytes";
            return Err(D::Error::custom(text));
        }
        let title = json.title.map(Into::into);
        Ok(Media::new(source, json.mime_type).with_title(title))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    mime_type: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Cow<'a, Map<String, Value>>>,
}

impl<'a> Inline<'a> {
    fn of(media: &'a Media) -> Self {
        Self {
            data: inline(media),
            url: media.url().map(Into::into),
            mime_type: media.mime_type.as_str().into(),
            duration: None,
            width: None,
            height: None,
            metadata: None,
        }
    }

    fn media<E: Error>(&mut self) -> Result<Media, E> {
        let source = match (self.data.take(), self.url.take()) {
            (Some(data), _) => {
                check(&data).map_err(|error| not_base64("data", &error))?;
                MediaSource::Base64 {
                    data: data.into_owned(),
                }
            }
            (None, Some(url)) => MediaSource::Url {
                url: url.into_owned(),
            },
            (None, None) => return Err(E::missing_field("data")),
        };
        Ok(Media::new(source, std::mem::take(&mut self.mime_type)))
    }
}

macro_rules! inline {
    ($(#[$doc:meta])* $name:ident: $($field:ident),*) => {
        $(#[$doc])*
        pub(super) mod $name {
            use super::{Deserialize, Deserializer, Inline, Media, Serialize, Serializer};

            pub(crate) fn serialize<S: Serializer>(
                media: &Media,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                let mut json = Inline::of(media);
                $(json.$field = media.$field;)*
                json.serialize(serializer)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Media, D::Error> {
                let mut json = Inline::deserialize(deserializer)?;
                let mut media = json.media()?;
                $(media.$field = json.$field;)*
                Ok(media)
            }
        }
    };
}

inline!(
    /// `{data, mimeType, duration?}`
    audio: duration
);
inline!(
    /// `{data, mimeType, duration?, width?, height?}`
    video: duration, width, height
);

/// `{data, mimeType, metadata?}`
pub(super) mod binary {
    use super::{Cow, Deserialize, Deserializer, Inline, Media, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        media: &Media,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut json = Inline::of(media);
        json.metadata = (!media.metadata.is_empty()).then_some(Cow::Borrowed(&media.metadata));
        json.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Media, D::Error> {
        let mut json = Inline::deserialize(deserializer)?;
        let mut media = json.media()?;
        media.metadata = json.metadata.map(Cow::into_owned).unwrap_or_default();
        Ok(media)
    }
}
