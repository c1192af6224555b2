//! The wire format of an embedding model.

use super::{EmbeddingInputs, EmbeddingRequest, EmbeddingResult, EmbeddingVector};
use crate::codec::Auth;
use crate::error::{Code, Error, Modality};
use crate::failure;
use crate::message::Metadata;
use serde_json::{Map, Value};

/// One wire format of embeddings, bound to a model. Pure; `EmbeddingProvider` sends.
pub trait EmbeddingCodec: Send + Sync + 'static {
    /// The provider's name: the namespace of its metadata, and the provider of errors.
    fn provider(&self) -> &str;

    /// The model's name at its provider.
    fn model_id(&self) -> &str;

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
    fn max_input_length(&self) -> Option<u64> {
        None
    }

    /// The length of its vectors, if known.
    fn dimensions(&self) -> Option<usize> {
        None
    }

    /// The address of the endpoint below the base URL, such as `/embeddings`.
    fn path(&self) -> String;

    /// The default base URL.
    fn base_url(&self) -> &str;

    /// How the key travels.
    fn auth(&self) -> Auth {
        Auth::Bearer
    }

    /// Writes the JSON body. Fails with [`Code::InvalidRequest`](crate::Code) if the format can't
    /// express the request.
    fn encode(&self, request: &EmbeddingRequest) -> Result<Map<String, Value>, Error>;

    /// Reads the answer; [`Code::InvalidResponse`](crate::Code) if it has another form. The vectors may
    /// be in any order and of any number.
    fn decode(&self, body: &str) -> Result<EmbeddingResult, Error>;

    /// The error of a response with a status other than 2xx.
    fn refusal(&self, status: u16, body: &str) -> Error {
        failure::of_status(self.provider(), status, body)
    }
}

pub(super) fn error(code: Code, provider: &str, text: impl Into<String>) -> Error {
    Error::new(code, provider, text).with_modality(Modality::Embedding)
}

/// Reads an answer's JSON.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(
    provider: &str,
    body: &'de str,
) -> Result<T, Error> {
    serde_json::from_str(body).map_err(|cause| {
        let text = "the answer is not what the provider's embeddings look like";
        error(Code::InvalidResponse, provider, text).caused_by(cause)
    })
}

/// Fields under the provider's namespace; empty if there are none.
pub(super) fn metadata(provider: &str, fields: Map<String, Value>) -> Metadata {
    let mut metadata = Metadata::new();
    if !fields.is_empty() {
        metadata.insert(provider.to_owned(), Value::Object(fields));
    }
    metadata
}

/// Puts the vectors in the order of their inputs. Each of the `count` inputs has one, and all are
/// of the same length; otherwise the answer is invalid.
pub(super) fn in_order(
    provider: &str,
    vectors: &mut [EmbeddingVector],
    count: usize,
) -> Result<(), Error> {
    vectors.sort_by_key(|vector| vector.index);
    if !vectors.iter().map(|vector| vector.index).eq(0..count) {
        let found = vectors.len();
        let text = format!("{count} inputs need one embedding each; the answer has {found}");
        return Err(error(Code::InvalidResponse, provider, text));
    }
    let length = vectors.first().map_or(1, |vector| vector.vector.len());
    if length == 0 || vectors.iter().any(|vector| vector.vector.len() != length) {
        let text = "the vectors of the answer are empty or of different lengths";
        return Err(error(Code::InvalidResponse, provider, text));
    }
    Ok(())
}
