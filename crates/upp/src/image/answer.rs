//! The answer of OpenAI's image endpoints, which xAI's share.

use super::codec::{invalid, read};
use super::{GeneratedImage, ImageResult, ImageUsage};
use crate::error::Error;
use crate::failure;
use crate::media::Image;
use crate::message::Metadata;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Answer {
    data: Option<Vec<Picture>>,
    error: Option<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// One image: its bytes as base64, or an address.
#[derive(Deserialize)]
struct Picture {
    b64_json: Option<String>,
    url: Option<String>,
    mime_type: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Reads the answer. Its own word on the MIME type wins over `mime_type`.
pub(super) fn decode(provider: &str, mime_type: &str, body: &str) -> Result<ImageResult, Error> {
    let answer: Answer = read(provider, body)?;
    if let Some(refusal) = answer.error.filter(|error| !error.is_null()) {
        return Err(failure::in_stream(provider, &refusal));
    }
    let pictures = answer.data.filter(|pictures| !pictures.is_empty());
    let pictures = pictures.ok_or_else(|| invalid(provider, "the answer has no image"))?;
    let mime_type = format_of(&answer.rest).unwrap_or_else(|| mime_type.to_owned());
    let images = pictures
        .into_iter()
        .map(|picture| picture.read(provider, &mime_type))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(ImageResult {
        usage: Some(usage(images.len(), answer.rest.get("usage"))),
        images,
        metadata: metadata(provider, answer.rest),
    })
}

impl Picture {
    fn read(self, provider: &str, mime_type: &str) -> Result<GeneratedImage, Error> {
        let mime_type = self.mime_type.as_deref().unwrap_or(mime_type);
        let image = match (self.b64_json, self.url) {
            (Some(data), _) => of_base64(provider, &data, mime_type)?,
            (None, Some(url)) => Image::from_url(url, Some(mime_type)),
            (None, None) => return Err(invalid(provider, "an image has no data and no address")),
        };
        Ok(GeneratedImage {
            image,
            metadata: metadata(provider, self.rest),
        })
    }
}

/// An image from base64 text or a data URL.
pub(super) fn of_base64(provider: &str, data: &str, mime_type: &str) -> Result<Image, Error> {
    let named = data.strip_prefix("data:");
    let named = named.and_then(|rest| rest.split_once(";base64,"));
    let (mime_type, data) = named.unwrap_or((mime_type, data));
    Image::from_base64(data, mime_type)
        .map_err(|cause| invalid(provider, "an image is not base64").caused_by(cause))
}

/// The MIME type that a field `output_format` names.
pub(super) fn format_of(fields: &Map<String, Value>) -> Option<String> {
    let format = fields.get("output_format")?.as_str()?;
    Some(match format {
        "jpg" => "image/jpeg".to_owned(),
        format if format.contains('/') => format.to_owned(),
        format => format!("image/{format}"),
    })
}

/// The usage of `made` images, with the fields that the provider's `usage` has.
pub(super) fn usage(made: usize, usage: Option<&Value>) -> ImageUsage {
    let field = |key: &str| usage.and_then(|usage| usage.get(key));
    ImageUsage {
        images_generated: u32::try_from(made).ok(),
        input_tokens: field("input_tokens").and_then(Value::as_u64),
        output_tokens: field("output_tokens").and_then(Value::as_u64),
        cost: field("cost")
            .or_else(|| field("cost_in_usd_ticks"))
            .and_then(Value::as_f64),
    }
}

/// Fields under the provider's namespace; empty if there are none.
pub(super) fn metadata(provider: &str, fields: Map<String, Value>) -> Metadata {
    let mut metadata = Metadata::new();
    if !fields.is_empty() {
        metadata.insert(provider.to_owned(), Value::Object(fields));
    }
    metadata
}
