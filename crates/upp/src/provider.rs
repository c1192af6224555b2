//! The one client of all providers: sends what a codec writes, and has it read what comes back.

mod answer;
mod call;
mod config;
mod endpoint;
mod frames;

pub use answer::answer;
pub use config::ProviderConfig;
pub(crate) use endpoint::{Address, Answer, Endpoint};

use crate::codec::{Auth, Codec, Framing};
use crate::error::{Code, Error};
use crate::http::{http_client_builder, unreached};
use crate::model::{Capabilities, Model, ModelEvent, ModelStream, Request};
use crate::retry::retry_stream;
use bytes::Bytes;
use call::Call;
use futures_util::{Stream, StreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const CANCELLED: &str = "the request was cancelled";

/// A model behind one of the providers' wire formats. Cloning shares it.
///
/// Nothing is sent before its stream is polled; dropping the stream closes the connection.
#[derive(Clone)]
pub struct Provider {
    codec: Arc<dyn Codec>,
    config: Arc<ProviderConfig>,
    client: reqwest::Client,
    url: reqwest::Url,
    headers: HeaderMap,
}

// The address and the headers may hold secrets.
impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("provider", &self.codec.provider())
            .field("model_id", &self.codec.model_id())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// Checks the configuration and makes the client. Nothing is sent.
    pub fn new(codec: impl Codec, config: ProviderConfig) -> Result<Self, Error> {
        let refused = |text: &str| Error::new(Code::InvalidRequest, codec.provider(), text);
        let base = config.base_url.as_deref().unwrap_or(codec.base_url());
        let url = format!("{}{}", base.trim_end_matches('/'), codec.path());
        let url = reqwest::Url::parse(&url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| refused("the base URL is no HTTP address"))?;
        let headers = headers(&codec, &config)?;
        let client = match &config.client {
            Some(client) => client.clone(),
            None => http_client_builder(codec.provider())?
                .connect_timeout(config.timeouts.connect)
                .build()
                .map_err(|cause| unreached(codec.provider(), cause))?,
        };
        Ok(Self {
            codec: Arc::new(codec),
            config: Arc::new(config),
            client,
            url,
            headers,
        })
    }

    fn error(&self, code: Code, text: &str) -> Error {
        Error::new(code, self.codec.provider(), text)
    }

    /// Waits for `future`, but neither beyond the limit nor after the caller has cancelled.
    async fn within<T>(
        &self,
        limit: Duration,
        what: &str,
        signal: &CancellationToken,
        future: impl Future<Output = T>,
    ) -> Result<T, Error> {
        signal
            .run_until_cancelled(tokio::time::timeout(limit, future))
            .await
            .ok_or_else(|| self.error(Code::Cancelled, CANCELLED))?
            .map_err(|_| self.error(Code::Timeout, what))
    }

    /// The body, up to the limit.
    async fn whole(
        &self,
        response: reqwest::Response,
        signal: &CancellationToken,
    ) -> Result<String, Error> {
        let mut body = Vec::new();
        let mut chunks = std::pin::pin!(self.chunks(response, signal.clone()));
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk?);
            if body.len() > self.config.max_body_bytes {
                return Err(self.error(Code::InvalidResponse, "the response is too long"));
            }
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn chunks(
        &self,
        response: reqwest::Response,
        signal: CancellationToken,
    ) -> impl Stream<Item = Result<Bytes, Error>> + Send + 'static {
        let provider = self.clone();
        async_stream::try_stream! {
            let mut bytes = std::pin::pin!(response.bytes_stream());
            let late = "the provider sent nothing for too long";
            while let Some(chunk) = provider
                .within(provider.config.timeouts.idle, late, &signal, bytes.next())
                .await?
            {
                yield chunk.map_err(|cause| unreached(provider.codec.provider(), cause))?;
            }
        }
    }

    fn call(self, request: Request) -> impl Stream<Item = Result<ModelEvent, Error>> + Send {
        async_stream::try_stream! {
            let signal = request.signal.clone();
            let call = Call::new(self, request).await?;
            let provider = call.provider().to_owned();
            let cancelled = move || Error::new(Code::Cancelled, provider.as_str(), CANCELLED);
            let retry = call.retry();
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
        self.config
            .capabilities
            .unwrap_or_else(|| self.codec.capabilities())
    }

    fn stream(&self, request: Request) -> ModelStream {
        self.clone().call(request).boxed()
    }
}

fn headers(codec: &impl Codec, config: &ProviderConfig) -> Result<HeaderMap, Error> {
    let refused = |text: String| Error::new(Code::InvalidRequest, codec.provider(), text);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if codec.framing() == Framing::ServerSentEvents {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    }
    if let Some(key) = &config.api_key {
        let (name, value) = key_header(codec, key)?;
        headers.insert(name, value);
    }
    for (name, value) in codec.headers().iter().chain(&config.headers) {
        let bad = || refused(format!("the header '{name}' is malformed"));
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The name of the header that a key travels in.
fn key_header_name(codec: &dyn Codec) -> HeaderName {
    match codec.auth() {
        Auth::Bearer => AUTHORIZATION,
        Auth::Header(name) => HeaderName::from_static(name),
    }
}

/// The header that a key travels in.
fn key_header(codec: &dyn Codec, key: &SecretString) -> Result<(HeaderName, HeaderValue), Error> {
    let text = match codec.auth() {
        Auth::Bearer => format!("Bearer {}", key.expose_secret()),
        Auth::Header(_) => key.expose_secret().to_owned(),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| {
        let text = "the API key can't be a header";
        Error::new(Code::InvalidRequest, codec.provider(), text)
    })?;
    value.set_sensitive(true);
    Ok((key_header_name(codec), value))
}

/// Whether the answer is one JSON text although a stream was asked for.
fn is_json(response: &reqwest::Response, framing: Framing) -> bool {
    framing == Framing::ServerSentEvents
        && response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.trim_start().starts_with("application/json"))
}
