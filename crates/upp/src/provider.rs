//! The one client of all providers: sends what a codec writes, and has it read what comes back.

mod answer;
mod config;
mod endpoint;
mod frames;

pub use answer::answer;
pub use config::ProviderConfig;
pub(crate) use endpoint::{Address, Answer, Endpoint};

use crate::codec::{Auth, Codec, Framing};
use crate::error::{Code, Error};
use crate::failure::retry_after;
use crate::http::{http_client_builder, unreached};
use crate::model::{Capabilities, Model, ModelEvent, ModelStream, Request, Sent};
use crate::prefix::{Prefix, RequestReport};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

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
            .ok_or_else(|| self.error(Code::Cancelled, "the request was cancelled"))?
            .map_err(|_| self.error(Code::Timeout, what))
    }

    async fn send(
        &self,
        body: Bytes,
        signal: &CancellationToken,
    ) -> Result<reqwest::Response, Error> {
        if signal.is_cancelled() {
            return Err(self.error(Code::Cancelled, "the request was cancelled"));
        }
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(body);
        let late = "the provider sent no headers in time";
        let response = self
            .within(self.config.timeouts.headers, late, signal, request.send())
            .await?
            .map_err(|cause| unreached(self.codec.provider(), cause))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let header = response.headers().get(reqwest::header::RETRY_AFTER);
        let wait = header
            .and_then(|value| value.to_str().ok())
            .and_then(|value| retry_after(value, crate::clock::now()));
        // The status says enough if the body can't be read.
        let body = self.whole(response, signal).await.or_else(|error| {
            if error.code == Code::Cancelled {
                Err(error)
            } else {
                Ok(String::new())
            }
        })?;
        let mut error = self.codec.refusal(status, &body);
        error.retry_after = wait
            .or(error.retry_after)
            .map(|wait| wait.min(self.config.retry_after_max));
        Err(self.redacted(error))
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

    /// Providers quote a refused key, though usually shortened.
    fn redacted(&self, mut error: Error) -> Error {
        if let Some(key) = &self.config.api_key
            && !key.expose_secret().is_empty()
        {
            error.message = error.message.replace(key.expose_secret(), "***");
        }
        error
    }

    fn call(self, request: Request) -> impl Stream<Item = Result<ModelEvent, Error>> + Send {
        async_stream::try_stream! {
            let encoded = self.codec.encode(&request)?;
            let prefix = Arc::new(Prefix::of(&encoded));
            let report = RequestReport::new(&encoded, &prefix, request.previous.as_deref());
            let sent = Sent { prefix, report };
            let signal = request.signal.clone();
            let mut decoder = self.codec.decoder(&request);
            drop(request);
            let response = self.send(Bytes::from(encoded.body), &signal).await?;
            if is_json(&response, self.codec.framing()) {
                let body = self.whole(response, &signal).await?;
                let events = decoder.whole(&body).map_err(|error| self.redacted(error))?;
                let (last, mut response) = decoder.finish().map_err(|error| self.redacted(error))?;
                for event in events.into_iter().chain(last) {
                    yield ModelEvent::Event(event);
                }
                response.request = Some(sent);
                yield ModelEvent::Done(Box::new(response));
                return;
            }
            let bytes = self.chunks(response, signal);
            let most = self.config.max_event_bytes;
            let mut items = std::pin::pin!(answer(&*self.codec, decoder, bytes, most));
            while let Some(item) = items.next().await {
                match item.map_err(|error| self.redacted(error))? {
                    ModelEvent::Done(mut response) => {
                        response.request = Some(sent.clone());
                        yield ModelEvent::Done(response);
                    }
                    event @ ModelEvent::Event(_) => yield event,
                }
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
        let (name, text) = match codec.auth() {
            Auth::Bearer => ("authorization", format!("Bearer {}", key.expose_secret())),
            Auth::Header(name) => (name, key.expose_secret().to_owned()),
        };
        let value = HeaderValue::from_str(&text);
        let mut value = value.map_err(|_| refused("the API key can't be a header".into()))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
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

/// Whether the answer is one JSON text although a stream was asked for.
fn is_json(response: &reqwest::Response, framing: Framing) -> bool {
    framing == Framing::ServerSentEvents
        && response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.trim_start().starts_with("application/json"))
}
