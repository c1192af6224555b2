//! Reads the events of images that OpenAI streams.

use super::PROVIDER;
use crate::error::{Code, Error, Modality};
use crate::failure;
use crate::image::answer::{format_of, metadata, of_base64, usage};
use crate::image::codec::{invalid, read};
use crate::image::{GeneratedImage, ImageDecoder, ImageResult, ImageStreamEvent, ImageUsage};
use crate::media::Image;
use serde_json::{Map, Value};

/// The images so far.
///
/// OpenAI's events don't name the image of an unfinished version; it counts as one of the next image.
pub(super) struct Decoder {
    asked: u64,
    mime_type: String,
    began: bool,
    images: Vec<GeneratedImage>,
    usage: ImageUsage,
}

impl Decoder {
    /// A decoder for an answer with this many images. `mime_type` applies if the events have none.
    pub(super) fn new(asked: u64, mime_type: String) -> Self {
        Self {
            asked: asked.max(1),
            mime_type,
            began: false,
            images: Vec::new(),
            usage: ImageUsage::default(),
        }
    }

    fn index(&self) -> u32 {
        u32::try_from(self.images.len()).unwrap_or(u32::MAX)
    }

    /// Takes the image out of the event.
    fn image(&self, event: &mut Map<String, Value>) -> Result<Image, Error> {
        event.remove("type");
        let Some(Value::String(data)) = event.remove("b64_json") else {
            return Err(invalid(PROVIDER, "an image in the stream has no data"));
        };
        let named = format_of(event);
        of_base64(PROVIDER, &data, named.as_deref().unwrap_or(&self.mime_type))
    }

    fn complete(&mut self, mut event: Map<String, Value>) -> Result<ImageStreamEvent, Error> {
        let image = self.image(&mut event)?;
        let index = self.index();
        let used = usage(self.images.len() + 1, event.get("usage"));
        self.usage = ImageUsage {
            images_generated: used.images_generated,
            input_tokens: sum(self.usage.input_tokens, used.input_tokens),
            output_tokens: sum(self.usage.output_tokens, used.output_tokens),
            cost: used.cost,
        };
        self.images.push(GeneratedImage {
            image: image.clone(),
            metadata: metadata(PROVIDER, event),
        });
        Ok(ImageStreamEvent::Complete { image, index })
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

impl ImageDecoder for Decoder {
    fn push(&mut self, data: &str) -> Result<Vec<ImageStreamEvent>, Error> {
        if data == "[DONE]" {
            return Ok(Vec::new());
        }
        let mut event: Map<String, Value> = read(PROVIDER, data)?;
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let event = match kind {
            "image_generation.partial_image" | "image_edit.partial_image" => {
                let image = self.image(&mut event)?;
                ImageStreamEvent::Preview {
                    image,
                    index: self.index(),
                    metadata: metadata(PROVIDER, event),
                }
            }
            "image_generation.completed" | "image_edit.completed" => self.complete(event)?,
            _ if kind == "error" || event.get("error").is_some_and(|it| !it.is_null()) => {
                let event = Value::Object(event);
                let said = event.get("error").filter(|error| !error.is_null());
                return Err(failure::in_stream(PROVIDER, said.unwrap_or(&event)));
            }
            // The format may grow.
            _ => return Ok(Vec::new()),
        };
        self.began = true;
        Ok(vec![event])
    }

    fn is_complete(&self) -> bool {
        u64::from(self.index()) >= self.asked
    }

    fn finish(self: Box<Self>) -> Result<ImageResult, Error> {
        if !self.images.is_empty() {
            return Ok(ImageResult {
                images: self.images,
                usage: Some(self.usage),
                ..ImageResult::default()
            });
        }
        if !self.began {
            return Err(invalid(PROVIDER, "the stream has no image"));
        }
        let text = "the stream ended before an image was finished";
        Err(Error::new(Code::NetworkError, PROVIDER, text).with_modality(Modality::Image))
    }
}
