//! OpenAI's embeddings format, which other providers support too (UPP §19).

use super::codec::{error, metadata, read};
use super::vector::Numbers;
use super::{
    EmbeddingCodec, EmbeddingInput, EmbeddingInputs, EmbeddingRequest, EmbeddingResult,
    EmbeddingUsage, EmbeddingVector, InputType,
};
use crate::content::Media;
use crate::error::{Code, Error};
use crate::failure;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Maximum number of inputs per call, according to OpenAI.
const MOST_INPUTS: usize = 2048;
/// Maximum number of tokens per input of OpenAI's models.
const MOST_TOKENS: u64 = 8191;

/// An embedding model with OpenAI's format.
///
/// Vectors are numbers, or packed if the parameters have `encoding_format: base64`; both are read.
#[derive(Clone, Debug)]
pub struct OpenAiEmbeddings {
    provider: String,
    base_url: String,
    model_id: String,
    max_input_length: Option<u64>,
    dimensions: Option<usize>,
    images: bool,
    tells_input_type: bool,
}

impl OpenAiEmbeddings {
    /// A model of OpenAI's by its name, such as `text-embedding-3-small`.
    pub fn new(model_id: impl Into<String>) -> Self {
        let mut codec = Self::compatible("openai", "https://api.openai.com/v1", model_id);
        codec.max_input_length = Some(MOST_TOKENS);
        codec
    }

    /// A model at `OpenRouter` by its name, such as `openai/text-embedding-3-small`.
    pub fn openrouter(model_id: impl Into<String>) -> Self {
        let mut codec = Self::compatible("openrouter", "https://openrouter.ai/api/v1", model_id);
        codec.tells_input_type = true;
        codec
    }

    /// A model of a compatible provider of this name, at this address.
    pub fn compatible(
        provider: impl Into<String>,
        base_url: impl Into<String>,
        model_id: impl Into<String>,
    ) -> Self {
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            model_id: model_id.into(),
            max_input_length: None,
            dimensions: None,
            images: false,
            tells_input_type: false,
        }
    }

    /// Requests vectors of this length; not every model supports that.
    #[must_use]
    pub fn with_dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }

    /// Declares that the model accepts images too, as some at `OpenRouter` do.
    #[must_use]
    pub fn with_image_input(mut self) -> Self {
        self.images = true;
        self
    }

    /// The inputs as the format has them: texts, or content parts if one of them is an image.
    fn input(&self, inputs: &[EmbeddingInput]) -> Result<Value, Error> {
        let only_text = inputs
            .iter()
            .all(|it| matches!(it, EmbeddingInput::Text(_)));
        let inputs = inputs.iter().map(|input| {
            let part = match input {
                EmbeddingInput::Text(text) if only_text => return Ok(json!(text)),
                EmbeddingInput::Text(text) => json!({"type": "text", "text": text}),
                EmbeddingInput::Image(media) => {
                    json!({"type": "image_url", "image_url": {"url": self.image(media)?}})
                }
            };
            Ok(json!({ "content": [part] }))
        });
        inputs.collect()
    }

    fn image(&self, media: &Media) -> Result<String, Error> {
        let refused = |text: &str| error(Code::InvalidRequest, &self.provider, text);
        if !self.images {
            return Err(refused("the model can't embed images"));
        }
        let url = media.data_url().or_else(|| media.url().map(str::to_owned));
        url.ok_or_else(|| refused("an image that is text can't be embedded"))
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Option<Vec<Item>>,
    error: Option<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Item {
    embedding: Numbers,
    index: Option<usize>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Item {
    fn read(self, at: usize, provider: &str) -> EmbeddingVector {
        let mut rest = self.rest;
        rest.remove("object");
        let mut vector = EmbeddingVector::new(self.index.unwrap_or(at), self.embedding.0);
        vector.metadata = metadata(provider, rest);
        vector
    }
}

fn usage(fields: &Map<String, Value>) -> EmbeddingUsage {
    let count = |key: &str| fields.get("usage")?.get(key)?.as_u64();
    EmbeddingUsage {
        total_tokens: count("total_tokens")
            .or_else(|| count("prompt_tokens"))
            .unwrap_or_default(),
    }
}

impl EmbeddingCodec for OpenAiEmbeddings {
    fn provider(&self) -> &str {
        &self.provider
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
        self.max_input_length
    }

    fn dimensions(&self) -> Option<usize> {
        let name = self.model_id.trim_start_matches("openai/");
        self.dimensions.or(match name {
            "text-embedding-3-small" | "text-embedding-ada-002" => Some(1536),
            "text-embedding-3-large" => Some(3072),
            _ => None,
        })
    }

    fn path(&self) -> String {
        "/embeddings".to_owned()
    }

    fn base_url(&self) -> &str {
        &self.base_url
    }

    fn encode(&self, request: &EmbeddingRequest) -> Result<Map<String, Value>, Error> {
        let mut body = (*request.params).clone();
        if let (Some(dimensions), false) = (self.dimensions, body.contains_key("dimensions")) {
            body.insert("dimensions".into(), json!(dimensions));
        }
        if let Some(input_type) = request.input_type
            && self.tells_input_type
            && !body.contains_key("input_type")
        {
            let name = match input_type {
                InputType::Document => "search_document",
                InputType::Query => "search_query",
            };
            body.insert("input_type".into(), json!(name));
        }
        body.insert("model".into(), json!(self.model_id));
        body.insert("input".into(), self.input(&request.inputs)?);
        Ok(body)
    }

    fn decode(&self, body: &str) -> Result<EmbeddingResult, Error> {
        let mut answer: Answer = read(&self.provider, body)?;
        // A router may report what its provider refused with status 200.
        if let Some(refusal) = answer.error.filter(|error| !error.is_null()) {
            return Err(failure::in_stream(&self.provider, &refusal));
        }
        let Some(items) = answer.data else {
            let text = "the answer has no 'data'";
            return Err(error(Code::InvalidResponse, &self.provider, text));
        };
        let items = items.into_iter().enumerate();
        answer.rest.remove("object");
        Ok(EmbeddingResult {
            embeddings: items
                .map(|(at, item)| item.read(at, &self.provider))
                .collect(),
            usage: usage(&answer.rest),
            metadata: metadata(&self.provider, answer.rest),
        })
    }
}
