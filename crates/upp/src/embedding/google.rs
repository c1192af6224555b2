//! The embeddings format of Google, `batchEmbedContents` (UPP §19).

use super::codec::{error, metadata, read};
use super::vector::Numbers;
use super::{
    EmbeddingCodec, EmbeddingInput, EmbeddingInputs, EmbeddingRequest, EmbeddingResult,
    EmbeddingUsage, EmbeddingVector, InputType,
};
use crate::codec::Auth;
use crate::error::{Code, Error};
use crate::gemini::failure;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The provider's name.
const PROVIDER: &str = "google";
/// Inputs a call.
const MOST_INPUTS: usize = 100;
/// Tokens an input.
const MOST_TOKENS: u64 = 2048;

/// A Google embedding model. The parameters, such as `taskType`, are sent with every input.
#[derive(Clone, Debug)]
pub struct GoogleEmbeddings {
    model_id: String,
    dimensions: Option<usize>,
    images: bool,
}

impl GoogleEmbeddings {
    /// A model by its name, such as `gemini-embedding-001`.
    pub fn new(model_id: impl Into<String>) -> Self {
        Self {
            model_id: model_id.into(),
            dimensions: None,
            images: false,
        }
    }

    /// Requests vectors of this length.
    #[must_use]
    pub fn with_dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }

    /// Declares that the model accepts images too.
    #[must_use]
    pub fn with_image_input(mut self) -> Self {
        self.images = true;
        self
    }

    fn part(&self, input: &EmbeddingInput) -> Result<Value, Error> {
        let refused = |text| error(Code::InvalidRequest, PROVIDER, text);
        match input {
            EmbeddingInput::Text(text) => Ok(json!({ "text": text })),
            EmbeddingInput::Image(_) if !self.images => {
                Err(refused("the model can't embed images"))
            }
            EmbeddingInput::Image(media) => {
                let mime_type = &media.mime_type;
                if let Some(data) = media.base64() {
                    return Ok(json!({"inlineData": {"mimeType": mime_type, "data": data}}));
                }
                let url = media.url();
                let url = url.ok_or_else(|| refused("an image that is text can't be embedded"))?;
                Ok(json!({"fileData": {"mimeType": mime_type, "fileUri": url}}))
            }
        }
    }

    /// The fields that are repeated with every input.
    fn shared(&self, request: &EmbeddingRequest) -> Map<String, Value> {
        let mut shared = (*request.params).clone();
        if let Some(dimensions) = self.dimensions {
            shared
                .entry("outputDimensionality")
                .or_insert_with(|| json!(dimensions));
        }
        if let Some(input_type) = request.input_type {
            let name = match input_type {
                InputType::Document => "RETRIEVAL_DOCUMENT",
                InputType::Query => "RETRIEVAL_QUERY",
            };
            shared.entry("taskType").or_insert_with(|| json!(name));
        }
        shared.insert("model".into(), json!(format!("models/{}", self.model_id)));
        shared
    }
}

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Item>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Item {
    values: Numbers,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

fn usage(fields: &Map<String, Value>) -> EmbeddingUsage {
    let count = |key: &str| fields.get("usageMetadata")?.get(key)?.as_u64();
    EmbeddingUsage {
        total_tokens: count("totalTokenCount")
            .or_else(|| count("promptTokenCount"))
            .unwrap_or_default(),
    }
}

impl EmbeddingCodec for GoogleEmbeddings {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn supported_inputs(&self) -> EmbeddingInputs {
        EmbeddingInputs {
            text: true,
            image: self.images,
        }
    }

    fn max_batch_size(&self) -> usize {
        MOST_INPUTS
    }

    fn max_input_length(&self) -> Option<u64> {
        Some(MOST_TOKENS)
    }

    fn dimensions(&self) -> Option<usize> {
        self.dimensions.or(match self.model_id.as_str() {
            "gemini-embedding-001" => Some(3072),
            "text-embedding-004" => Some(768),
            _ => None,
        })
    }

    fn path(&self) -> String {
        format!("/models/{}:batchEmbedContents", self.model_id)
    }

    fn base_url(&self) -> &'static str {
        "https://generativelanguage.googleapis.com/v1beta"
    }

    fn auth(&self) -> Auth {
        Auth::Header("x-goog-api-key")
    }

    fn encode(&self, request: &EmbeddingRequest) -> Result<Map<String, Value>, Error> {
        let shared = self.shared(request);
        let requests = request.inputs.iter().map(|input| {
            let mut one = shared.clone();
            one.insert("content".into(), json!({"parts": [self.part(input)?]}));
            Ok(Value::Object(one))
        });
        let requests = requests.collect::<Result<Value, Error>>()?;
        Ok(Map::from_iter([("requests".to_owned(), requests)]))
    }

    fn decode(&self, body: &str) -> Result<EmbeddingResult, Error> {
        let answer: Answer = read(PROVIDER, body)?;
        let items = answer.embeddings.into_iter().enumerate();
        let embeddings = items.map(|(at, item)| {
            let mut vector = EmbeddingVector::new(at, item.values.0);
            vector.metadata = metadata(PROVIDER, item.rest);
            vector
        });
        Ok(EmbeddingResult {
            embeddings: embeddings.collect(),
            usage: usage(&answer.rest),
            metadata: metadata(PROVIDER, answer.rest),
        })
    }

    fn refusal(&self, status: u16, body: &str) -> Error {
        failure::of_status(status, body)
    }
}
