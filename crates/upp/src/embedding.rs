//! Vectors of texts and images (UPP §19).

mod codec;
mod google;
mod instance;
mod ollama;
mod openai;
#[cfg(feature = "http")]
mod provider;
mod vector;

pub use codec::EmbeddingCodec;
pub use google::GoogleEmbeddings;
pub use instance::{EmbedOptions, Embedding, EmbeddingEvent, EmbeddingOptions, EmbeddingStream};
pub use ollama::OllamaEmbeddings;
pub use openai::OpenAiEmbeddings;
#[cfg(feature = "http")]
pub use provider::EmbeddingProvider;
pub use vector::vector_from_base64;

use crate::content::{Media, UserContent};
use crate::error::Error;
use crate::message::Metadata;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The input types of an embedding model (UPP §19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingInputs {
    /// Texts.
    pub text: bool,
    /// Images.
    pub image: bool,
}

/// One thing to embed.
#[derive(Clone, Debug, PartialEq)]
pub enum EmbeddingInput {
    /// A text.
    Text(String),
    /// An image.
    Image(Media),
}

impl From<&str> for EmbeddingInput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for EmbeddingInput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The input has a block that can't be embedded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only text and images can be embedded")]
pub struct NotEmbeddable;

impl TryFrom<UserContent> for EmbeddingInput {
    type Error = NotEmbeddable;

    fn try_from(block: UserContent) -> Result<Self, NotEmbeddable> {
        match block {
            UserContent::Text { text } => Ok(Self::Text(text)),
            UserContent::Image(media) => Ok(Self::Image(media)),
            UserContent::Document(_)
            | UserContent::Audio(_)
            | UserContent::Video(_)
            | UserContent::Binary(_) => Err(NotEmbeddable),
        }
    }
}

/// The purpose of the vectors; some models distinguish the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputType {
    /// To be found.
    Document,
    /// To find by.
    Query,
}

/// One call of an embedding model, with at most as many inputs as the model accepts per call.
#[derive(Clone, Debug, Default)]
pub struct EmbeddingRequest {
    /// The inputs; the index of each vector is the position here.
    pub inputs: Vec<EmbeddingInput>,
    /// The purpose of the vectors.
    pub input_type: Option<InputType>,
    /// Provider-native parameters, passed unchanged.
    pub params: Arc<Map<String, Value>>,
    /// Cancel it to abandon the answer; this closes the connection.
    pub signal: CancellationToken,
}

/// The vector of one input (UPP §19).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingVector {
    /// The vector.
    pub vector: Vec<f64>,
    /// Its length.
    pub dimensions: usize,
    /// The position of its input.
    pub index: usize,
    /// The tokens of its input, if the provider reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Provider-namespaced extras.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Metadata,
}

impl EmbeddingVector {
    /// The vector of the input at `index`.
    pub fn new(index: usize, vector: Vec<f64>) -> Self {
        Self {
            dimensions: vector.len(),
            vector,
            index,
            tokens: None,
            metadata: Metadata::new(),
        }
    }
}

/// The usage of an embedding call (UPP §19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddingUsage {
    /// Tokens of all inputs.
    pub total_tokens: u64,
}

/// The vectors of all inputs, in their order (UPP §19).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingResult {
    /// One vector an input.
    pub embeddings: Vec<EmbeddingVector>,
    /// The usage of the call.
    #[serde(default)]
    pub usage: EmbeddingUsage,
    /// Provider-namespaced extras. After several calls, those of the last call that has some.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Metadata,
}

/// An embedding model of a provider (UPP §19).
pub trait EmbeddingModel: Send + Sync {
    /// The model's name at its provider.
    fn model_id(&self) -> &str;

    /// The provider's name, which is also the namespace of its metadata.
    fn provider(&self) -> &str;

    /// The input types of the model; text only by default.
    fn supported_inputs(&self) -> EmbeddingInputs {
        EmbeddingInputs {
            text: true,
            image: false,
        }
    }

    /// Inputs a call at most.
    fn max_batch_size(&self) -> usize;

    /// Maximum number of tokens per input, if known.
    fn max_input_length(&self) -> Option<u64>;

    /// The length of its vectors, if known.
    fn dimensions(&self) -> Option<usize>;

    /// One call. The vectors may come in any order; their indices are positions in the request.
    fn embed(
        &self,
        request: EmbeddingRequest,
    ) -> BoxFuture<'static, Result<EmbeddingResult, Error>>;
}

#[cfg(test)]
mod tests;
