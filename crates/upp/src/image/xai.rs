//! The images of xAI (UPP §19): OpenAI's format, but edits are JSON.

use super::answer;
use super::{ImageCapabilities, ImageCodec, ImageEditRequest, ImageRequest, ImageResult, refused};
use crate::call::EndpointCall;
use crate::error::Error;
use serde_json::{Map, Value, json};

/// The provider's name.
const PROVIDER: &str = "xai";
/// The default media type of an image.
const JPEG: &str = "image/jpeg";

/// An xAI image model.
///
/// Images are URLs that expire, or bytes if the parameters have `response_format: b64_json`.
#[derive(Clone, Debug)]
pub struct XaiImages {
    model_id: String,
}

impl XaiImages {
    /// A model by its name, such as `grok-imagine-image`. The `grok-2-image` models can't edit.
    pub fn new(model_id: impl Into<String>) -> Self {
        Self {
            model_id: model_id.into(),
        }
    }

    fn body(&self, prompt: &str, params: &Map<String, Value>) -> Map<String, Value> {
        let mut body = params.clone();
        body.insert("model".into(), json!(self.model_id));
        body.insert("prompt".into(), json!(prompt));
        body
    }
}

impl ImageCodec for XaiImages {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn capabilities(&self) -> ImageCapabilities {
        ImageCapabilities {
            generate: true,
            streaming: false,
            edit: !self.model_id.starts_with("grok-2-image"),
            max_images: Some(10),
        }
    }

    fn base_url(&self) -> &'static str {
        "https://api.x.ai/v1"
    }

    fn generate(&self, request: &ImageRequest) -> Result<EndpointCall, Error> {
        let body = self.body(&request.prompt, &request.params);
        Ok(EndpointCall::json("/images/generations", body))
    }

    fn edit(&self, request: &ImageEditRequest) -> Result<EndpointCall, Error> {
        if !self.capabilities().edit {
            return Err(refused(PROVIDER, "the model can't edit images"));
        }
        if request.mask.is_some() {
            return Err(refused(PROVIDER, "mask: xAI edits without masks"));
        }
        let media = request.image.media();
        let url = media.data_url().or_else(|| media.url().map(str::to_owned));
        let url = url.ok_or_else(|| refused(PROVIDER, "image: it is text, not an image"))?;
        let mut body = self.body(&request.prompt, &request.params);
        body.insert("image".into(), json!({"type": "image_url", "url": url}));
        Ok(EndpointCall::json("/images/edits", body))
    }

    fn decode(&self, _params: &Map<String, Value>, body: &str) -> Result<ImageResult, Error> {
        answer::decode(PROVIDER, JPEG, body)
    }
}
