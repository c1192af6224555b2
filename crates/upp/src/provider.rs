//! The client of all providers: sends a codec's requests, and passes the answers to its decoder.

mod answer;
mod call;
mod config;
mod endpoint;
mod frames;

pub use answer::answer;
pub use config::ProviderConfig;
pub(crate) use endpoint::{Address, Answer, Endpoint};
pub use frames::event_data;

use crate::codec::Codec;
use crate::error::{Error, Modality};
use crate::model::{Capabilities, Model, ModelEvent, ModelStream, Request};
use crate::retry::retry_stream;
use crate::settings::{NativeSettings, Settings};
use call::Call;
use futures_util::{Stream, StreamExt};
use std::sync::Arc;

/// A model behind one of the providers' wire formats. Cloning shares it.
///
/// Nothing is sent before its stream is polled; dropping the stream closes the connection.
#[derive(Clone)]
pub struct Provider {
    codec: Arc<dyn Codec>,
    endpoint: Endpoint,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("model_id", &self.codec.model_id())
            .field("endpoint", &self.endpoint)
            .finish()
    }
}

impl Provider {
    /// Checks the configuration and makes the client. Nothing is sent.
    pub fn new(codec: impl Codec, config: ProviderConfig) -> Result<Self, Error> {
        let codec: Arc<dyn Codec> = Arc::new(codec);
        let address = Address {
            provider: codec.provider(),
            modality: Modality::Llm,
            base_url: codec.base_url(),
            auth: codec.auth(),
            headers: codec.headers(),
        };
        let endpoint = Endpoint::new(&codec, &address, <dyn Codec>::refusal, config)?;
        Ok(Self { codec, endpoint })
    }

    fn call(self, request: Request) -> impl Stream<Item = Result<ModelEvent, Error>> + Send {
        async_stream::try_stream! {
            let (signal, endpoint) = (request.signal.token().clone(), self.endpoint.clone());
            let call = Call::new(self.codec, &self.endpoint, request).await?;
            let retry = endpoint.retry();
            let cancelled = move || endpoint.cancelled();
            let mut items = retry_stream(&*retry, signal, cancelled, move || {
                Arc::clone(&call).attempt().boxed()
            });
            while let Some(item) = items.next().await {
                yield item?;
            }
        }
    }
}

impl Model for Provider {
    fn model_id(&self) -> &str {
        self.codec.model_id()
    }

    fn provider(&self) -> &str {
        self.codec.provider()
    }

    fn capabilities(&self) -> Capabilities {
        let configured = self.endpoint.config.capabilities;
        configured.unwrap_or_else(|| self.codec.capabilities())
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        self.codec.settings(settings)
    }

    fn stream(&self, request: Request) -> ModelStream {
        self.clone().call(request).boxed()
    }
}
