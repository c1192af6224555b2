//! The images of Google, `predict` (UPP §19).

use super::answer::{metadata, of_base64, usage};
use super::codec::{invalid, read};
use super::{GeneratedImage, ImageCapabilities, ImageCodec, ImageRequest, ImageResult};
use crate::call::EndpointCall;
use crate::codec::Auth;
use crate::error::{Code, Error, Modality};
use crate::gemini::failure;
use serde_json::{Map, Value, json};

/// The provider's name.
const PROVIDER: &str = "google";
/// The default media type of an image.
const PNG: &str = "image/png";
/// The metadata key for the reasons why images are missing.
const FILTERED: &str = "raiFilteredReasons";

/// A Google image model, such as Imagen.
///
/// If a policy withheld all images, the answer is the error `CONTENT_FILTERED`. If it withheld some, the
/// result's metadata has the reasons as `raiFilteredReasons`.
#[derive(Clone, Debug)]
pub struct GoogleImages {
    model_id: String,
}

impl GoogleImages {
    /// A model by its name, such as `imagen-4.0-generate-001`.
    pub fn new(model_id: impl Into<String>) -> Self {
        Self {
            model_id: model_id.into(),
        }
    }
}

fn filtered(reason: &str) -> Error {
    let text = format!("the provider withheld all images: {reason}");
    Error::new(Code::ContentFiltered, PROVIDER, text).with_modality(Modality::Image)
}

fn picture(mut fields: Map<String, Value>) -> Result<GeneratedImage, Error> {
    let Some(Value::String(data)) = fields.remove("bytesBase64Encoded") else {
        return Err(invalid(PROVIDER, "a prediction has no image"));
    };
    let named = fields.remove("mimeType");
    let mime_type = named.as_ref().and_then(Value::as_str).unwrap_or(PNG);
    Ok(GeneratedImage {
        image: of_base64(PROVIDER, &data, mime_type)?,
        metadata: metadata(PROVIDER, fields),
    })
}

impl ImageCodec for GoogleImages {
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
            edit: false,
            max_images: Some(4),
        }
    }

    fn base_url(&self) -> &'static str {
        "https://generativelanguage.googleapis.com/v1beta"
    }

    fn auth(&self) -> Auth {
        Auth::Header("x-goog-api-key")
    }

    fn generate(&self, request: &ImageRequest) -> Result<EndpointCall, Error> {
        let mut body = Map::new();
        body.insert("instances".into(), json!([{"prompt": request.prompt}]));
        if !request.params.is_empty() {
            body.insert(
                "parameters".into(),
                Value::Object((*request.params).clone()),
            );
        }
        let path = format!("/models/{}:predict", self.model_id);
        Ok(EndpointCall::json(path, body))
    }

    fn decode(&self, _params: &Map<String, Value>, body: &str) -> Result<ImageResult, Error> {
        let mut answer: Map<String, Value> = read(PROVIDER, body)?;
        let predictions = match answer.remove("predictions") {
            Some(Value::Array(predictions)) => predictions,
            // What is left of an answer when nothing passed.
            None if answer.is_empty() => Vec::new(),
            _ => return Err(invalid(PROVIDER, "the answer has no list 'predictions'")),
        };
        let mut images = Vec::new();
        let mut reasons = Vec::new();
        for prediction in predictions {
            let Value::Object(mut fields) = prediction else {
                return Err(invalid(PROVIDER, "a prediction is no object"));
            };
            match fields.remove("raiFilteredReason") {
                Some(reason) if !fields.contains_key("bytesBase64Encoded") => reasons.push(reason),
                _ => images.push(picture(fields)?),
            }
        }
        if images.is_empty() {
            let reason = reasons.first().and_then(Value::as_str);
            return Err(filtered(reason.unwrap_or("it gave no reason")));
        }
        if !reasons.is_empty() {
            answer.insert(FILTERED.into(), Value::Array(reasons));
        }
        Ok(ImageResult {
            usage: Some(usage(images.len(), None)),
            images,
            metadata: metadata(PROVIDER, answer),
        })
    }

    fn refusal(&self, status: u16, body: &str) -> Error {
        failure::of_status(status, body)
    }
}
