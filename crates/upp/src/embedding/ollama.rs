//! The embeddings format of Ollama, `/api/embed` (UPP §19).

use super::codec::{error, metadata, read};
use super::vector::Numbers;
use super::{
    EmbeddingCodec, EmbeddingInput, EmbeddingRequest, EmbeddingResult, EmbeddingUsage,
    EmbeddingVector,
};
use crate::error::{Code, Error};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The provider's name.
const PROVIDER: &str = "ollama";
/// Inputs a call.
const MOST_INPUTS: usize = 512;

/// An embedding model of an Ollama server.
#[derive(Clone, Debug)]
pub struct OllamaEmbeddings {
    model_id: String,
    dimensions: Option<usize>,
}

impl OllamaEmbeddings {
    /// A model by its name, such as `nomic-embed-text`.
    pub fn new(model_id: impl Into<String>) -> Self {
        Self {
            model_id: model_id.into(),
            dimensions: None,
        }
    }

    /// Requests vectors of this length.
    #[must_use]
    pub fn with_dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }
}

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Numbers>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl EmbeddingCodec for OllamaEmbeddings {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn max_batch_size(&self) -> usize {
        MOST_INPUTS
    }

    fn dimensions(&self) -> Option<usize> {
        self.dimensions
    }

    fn path(&self) -> String {
        "/api/embed".to_owned()
    }

    fn base_url(&self) -> &'static str {
        "http://localhost:11434"
    }

    fn encode(&self, request: &EmbeddingRequest) -> Result<Map<String, Value>, Error> {
        let mut body = (*request.params).clone();
        if let Some(dimensions) = self.dimensions {
            body.entry("dimensions")
                .or_insert_with(|| json!(dimensions));
        }
        let inputs = request.inputs.iter().map(|input| match input {
            EmbeddingInput::Text(text) => Ok(json!(text)),
            EmbeddingInput::Image(_) => {
                let text = "Ollama can't embed images";
                Err(error(Code::InvalidRequest, PROVIDER, text))
            }
        });
        let inputs = inputs.collect::<Result<Value, Error>>()?;
        body.insert("model".into(), json!(self.model_id));
        body.insert("input".into(), inputs);
        Ok(body)
    }

    fn decode(&self, body: &str) -> Result<EmbeddingResult, Error> {
        let answer: Answer = read(PROVIDER, body)?;
        let vectors = answer.embeddings.into_iter().enumerate();
        let total_tokens = answer.rest.get("prompt_eval_count").and_then(Value::as_u64);
        Ok(EmbeddingResult {
            embeddings: vectors
                .map(|(at, numbers)| EmbeddingVector::new(at, numbers.0))
                .collect(),
            usage: EmbeddingUsage {
                total_tokens: total_tokens.unwrap_or_default(),
            },
            metadata: metadata(PROVIDER, answer.rest),
        })
    }
}
