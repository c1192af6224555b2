//! Sends what a codec of embeddings writes.

use super::codec::{error, in_order};
use super::{EmbeddingCodec, EmbeddingInputs, EmbeddingModel, EmbeddingRequest, EmbeddingResult};
use crate::call::EndpointCall;
use crate::error::{Code, Error, Modality};
use crate::provider::{Address, Endpoint, ProviderConfig};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// An embedding model behind one of the providers' wire formats. Cloning shares it.
///
/// Dropping a call closes its connection. An answer longer than the configuration's `max_body_bytes` is
/// an error. A full batch of long vectors, written as numbers, may exceed it; then request base64 if the
/// provider has it, or send fewer inputs per call.
#[derive(Clone)]
pub struct EmbeddingProvider {
    codec: Arc<dyn EmbeddingCodec>,
    endpoint: Endpoint,
}

impl std::fmt::Debug for EmbeddingProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddingProvider")
            .field("model_id", &self.codec.model_id())
            .field("endpoint", &self.endpoint)
            .finish()
    }
}

impl EmbeddingProvider {
    /// Checks the configuration and makes the client. Nothing is sent.
    pub fn new(codec: impl EmbeddingCodec, config: ProviderConfig) -> Result<Self, Error> {
        let codec: Arc<dyn EmbeddingCodec> = Arc::new(codec);
        let address = Address {
            provider: codec.provider(),
            modality: Modality::Embedding,
            base_url: codec.base_url(),
            auth: codec.auth(),
            headers: Vec::new(),
        };
        let endpoint = Endpoint::new(&codec, &address, <dyn EmbeddingCodec>::refusal, config)?;
        Ok(Self { codec, endpoint })
    }

    async fn call(self, request: EmbeddingRequest) -> Result<EmbeddingResult, Error> {
        let (codec, count) = (&*self.codec, request.inputs.len());
        if count == 0 {
            return Ok(EmbeddingResult::default());
        }
        let most = codec.max_batch_size();
        if count > most {
            let text = format!("{count} inputs are too many for one call; it takes {most}");
            return Err(error(Code::InvalidRequest, codec.provider(), text));
        }
        let session = self.endpoint.session(&request.signal).await?;
        let shown = |error| session.redacted(error);
        let call = EndpointCall::json(codec.path(), codec.encode(&request).map_err(shown)?);
        let answer = session.text(&call, &request.signal).await?;
        let mut result = codec.decode(&answer).map_err(shown)?;
        in_order(codec.provider(), &mut result.embeddings, count)?;
        Ok(result)
    }
}

impl EmbeddingModel for EmbeddingProvider {
    fn model_id(&self) -> &str {
        self.codec.model_id()
    }

    fn provider(&self) -> &str {
        self.codec.provider()
    }

    fn supported_inputs(&self) -> EmbeddingInputs {
        self.codec.supported_inputs()
    }

    fn max_batch_size(&self) -> usize {
        self.codec.max_batch_size()
    }

    fn max_input_length(&self) -> Option<u64> {
        self.codec.max_input_length()
    }

    fn dimensions(&self) -> Option<usize> {
        self.codec.dimensions()
    }

    fn embed(
        &self,
        request: EmbeddingRequest,
    ) -> BoxFuture<'static, Result<EmbeddingResult, Error>> {
        Box::pin(self.clone().call(request))
    }
}
