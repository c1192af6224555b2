//! The images of OpenAI (UPP §19): `/images/generations` and `/images/edits`.

mod stream;

use super::answer;
use super::{
    ImageCapabilities, ImageCodec, ImageDecoder, ImageEditRequest, ImageRequest, ImageResult,
    refused,
};
use crate::call::{EndpointCall, FormField, FormValue};
use crate::error::Error;
use crate::media::Image;
use serde_json::{Map, Value, json};

/// The provider's name.
const PROVIDER: &str = "openai";
/// The default media type of an image.
const PNG: &str = "image/png";

/// An OpenAI image model.
///
/// A stream has unfinished images only if the parameters request some (`partial_images`).
#[derive(Clone, Debug)]
pub struct OpenAiImages {
    model_id: String,
    capabilities: ImageCapabilities,
}

impl OpenAiImages {
    /// A model by its name, such as `gpt-image-1`. Only the models of that family stream.
    pub fn new(model_id: impl Into<String>) -> Self {
        let model_id = model_id.into();
        let only_generates = model_id.starts_with("dall-e-3");
        Self {
            capabilities: ImageCapabilities {
                generate: true,
                streaming: model_id.starts_with("gpt-image")
                    || model_id.starts_with("chatgpt-image"),
                edit: !only_generates,
                max_images: Some(if only_generates { 1 } else { 10 }),
            },
            model_id,
        }
    }

    /// Sets the model's capabilities, overriding the guess from its name.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: ImageCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The body of a call. Fields of the protocol overwrite the parameters.
    fn body(&self, request: &ImageRequest, stream: bool) -> Map<String, Value> {
        let mut body = (*request.params).clone();
        body.remove("stream");
        body.insert("model".into(), json!(self.model_id));
        body.insert("prompt".into(), json!(request.prompt));
        if stream {
            body.insert("stream".into(), json!(true));
        }
        body
    }
}

/// The MIME type that the parameters request.
fn mime_type(params: &Map<String, Value>) -> String {
    answer::format_of(params).unwrap_or_else(|| PNG.to_owned())
}

fn file(name: &str, image: &Image) -> Result<FormField, Error> {
    let data = image.to_bytes().map_err(|cause| {
        let text = format!("{name}: only an image whose bytes are here can be edited");
        refused(PROVIDER, &text).caused_by(cause)
    })?;
    let mime_type = image.mime_type().to_owned();
    let extension = mime_type.strip_prefix("image/").unwrap_or("bin");
    Ok(FormField {
        name: name.to_owned(),
        value: FormValue::File {
            file_name: format!("{name}.{extension}"),
            mime_type,
            data,
        },
    })
}

impl ImageCodec for OpenAiImages {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn capabilities(&self) -> ImageCapabilities {
        self.capabilities
    }

    fn base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn generate(&self, request: &ImageRequest) -> Result<EndpointCall, Error> {
        let body = self.body(request, false);
        Ok(EndpointCall::json("/images/generations", body))
    }

    fn stream(
        &self,
        request: &ImageRequest,
    ) -> Result<(EndpointCall, Box<dyn ImageDecoder>), Error> {
        if !self.capabilities.streaming {
            return Err(refused(PROVIDER, "the model can't stream images"));
        }
        let call = EndpointCall::json("/images/generations", self.body(request, true));
        let asked = request.params.get("n").and_then(Value::as_u64).unwrap_or(1);
        let decoder = stream::Decoder::new(asked, mime_type(&request.params));
        Ok((call, Box::new(decoder)))
    }

    fn edit(&self, request: &ImageEditRequest) -> Result<EndpointCall, Error> {
        if !self.capabilities.edit {
            return Err(refused(PROVIDER, "the model can't edit images"));
        }
        let ours = ["model", "prompt", "image", "mask", "stream"];
        let params = request.params.iter();
        let mut fields = vec![
            FormField::text("model", &self.model_id),
            FormField::text("prompt", &request.prompt),
        ];
        for (name, value) in params.filter(|(name, _)| !ours.contains(&name.as_str())) {
            fields.extend(FormField::of_value(name, value));
        }
        fields.push(file("image", &request.image)?);
        if let Some(mask) = &request.mask {
            fields.push(file("mask", mask)?);
        }
        Ok(EndpointCall::form("/images/edits", fields))
    }

    fn decode(&self, params: &Map<String, Value>, body: &str) -> Result<ImageResult, Error> {
        answer::decode(PROVIDER, &mime_type(params), body)
    }
}
