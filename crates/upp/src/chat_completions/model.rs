//! Sends requests in the Chat Completions format.

use super::decode::Decoder;
use super::encode::Encoding;
use super::failure::{of_status, retry_after};
use crate::error::{Code, Error};
use crate::http::{Timeouts, http_client_builder, unreached};
use crate::model::{Capabilities, Model, ModelEvent, ModelStream, Request};
use crate::sse::{self, SseError};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Where a Chat Completions model is and how it is reached.
#[derive(Clone)]
pub struct ChatCompletionsConfig {
    /// The prefix of the endpoint, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The model.
    pub model_id: String,
    /// The provider's name in errors and metadata; `openai` unless set.
    pub provider: String,
    /// Sent as a bearer token.
    pub api_key: Option<SecretString>,
    /// Further headers; they win over ours. Their values are treated as secrets.
    pub headers: BTreeMap<String, String>,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// What the model can do.
    pub capabilities: Capabilities,
    /// Longest event of a stream, in bytes.
    pub max_event_bytes: usize,
    /// Longest body of a response that is no stream, in bytes.
    pub max_body_bytes: usize,
    /// Whether reasoning is sent back as `reasoning_content`.
    pub resend_reasoning: bool,
    /// The client to send with; one of [`http_client_builder`] when absent.
    pub client: Option<reqwest::Client>,
}

impl ChatCompletionsConfig {
    /// The usual configuration of a model at an address.
    pub fn new(base_url: impl Into<String>, model_id: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model_id: model_id.into(),
            provider: "openai".to_owned(),
            api_key: None,
            headers: BTreeMap::new(),
            timeouts: Timeouts::default(),
            capabilities: Capabilities {
                streaming: true,
                tools: true,
                structured_output: true,
                image_input: true,
                document_input: true,
                video_input: false,
                audio_input: false,
            },
            max_event_bytes: 8 << 20,
            max_body_bytes: 64 << 20,
            resend_reasoning: false,
            client: None,
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn with_api_key(mut self, key: SecretString) -> Self {
        self.api_key = Some(key);
        self
    }

    /// Sets the provider's name.
    #[must_use]
    pub fn with_provider(mut self, name: impl Into<String>) -> Self {
        self.provider = name.into();
        self
    }
}

impl std::fmt::Debug for ChatCompletionsConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatCompletionsConfig")
            .field("model_id", &self.model_id)
            .field("provider", &self.provider)
            .field("timeouts", &self.timeouts)
            .field("headers", &self.headers.keys())
            .finish_non_exhaustive()
    }
}

/// A model behind the Chat Completions format.
#[derive(Clone)]
pub struct ChatCompletions {
    config: Arc<ChatCompletionsConfig>,
    client: reqwest::Client,
    url: reqwest::Url,
    headers: HeaderMap,
}

// The address and the client's headers may hold secrets.
impl std::fmt::Debug for ChatCompletions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ChatCompletions")
            .field(&self.config)
            .finish()
    }
}

impl ChatCompletions {
    /// Checks the configuration and makes the client. Nothing is sent.
    pub fn new(config: ChatCompletionsConfig) -> Result<Self, Error> {
        let refused = |text: &str| Error::new(Code::InvalidRequest, config.provider.as_str(), text);
        let url = format!("{}/chat/completions", config.base_url.trim_end_matches('/'));
        let url = reqwest::Url::parse(&url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| refused("the base URL is no HTTP address"))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(key) = &config.api_key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()));
            let mut value = value.map_err(|_| refused("the API key can't be a header"))?;
            value.set_sensitive(true);
            headers.insert(reqwest::header::AUTHORIZATION, value);
        }
        for (name, value) in &config.headers {
            let bad = || refused(&format!("the header '{name}' is malformed"));
            let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?,
                value,
            );
        }
        let client = match &config.client {
            Some(client) => client.clone(),
            None => http_client_builder(&config.provider)?
                .connect_timeout(config.timeouts.connect)
                .build()
                .map_err(|cause| unreached(&config.provider, cause))?,
        };
        Ok(Self {
            config: Arc::new(config),
            client,
            url,
            headers,
        })
    }

    fn error(&self, code: Code, text: &str) -> Error {
        Error::new(code, self.config.provider.as_str(), text)
    }

    /// Waits for `future`, but neither beyond the limit nor after the caller has cancelled.
    async fn within<T>(
        &self,
        limit: std::time::Duration,
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
            .map_err(|cause| unreached(&self.config.provider, cause))?;
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
        let mut error = of_status(&self.config.provider, status, &body);
        error.retry_after = wait;
        error.message = self.redacted(error.message);
        Err(error)
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
        let model = self.clone();
        async_stream::try_stream! {
            let mut bytes = std::pin::pin!(response.bytes_stream());
            let late = "the provider sent nothing for too long";
            while let Some(chunk) = model
                .within(model.config.timeouts.idle, late, &signal, bytes.next())
                .await?
            {
                yield chunk.map_err(|cause| unreached(&model.config.provider, cause))?;
            }
        }
    }

    /// Providers quote a refused key, though usually shortened.
    fn redacted(&self, message: String) -> String {
        match &self.config.api_key {
            Some(key) if !key.expose_secret().is_empty() => {
                message.replace(key.expose_secret(), "***")
            }
            Some(_) | None => message,
        }
    }
}

impl Model for ChatCompletions {
    fn model_id(&self) -> &str {
        &self.config.model_id
    }

    fn provider(&self) -> &str {
        &self.config.provider
    }

    fn capabilities(&self) -> Capabilities {
        self.config.capabilities
    }

    fn stream(&self, request: Request) -> ModelStream {
        let model = self.clone();
        async_stream::try_stream! {
            let encoding = Encoding {
                provider: model.config.provider.clone(),
                model_id: model.config.model_id.clone(),
                resend_reasoning: model.config.resend_reasoning,
            };
            let body = Bytes::from(encoding.encode(&request)?.to_string());
            let signal = request.signal.clone();
            let structured = request.structure.is_some();
            drop(request);
            let response = model.send(body, &signal).await?;
            let mut decoder = Decoder::new(
                model.config.provider.as_str(),
                model.config.model_id.as_str(),
                structured,
            );
            if is_json(&response) {
                let body = model.whole(response, &signal).await?;
                for event in decoder.push(&body)? {
                    yield ModelEvent::Event(event);
                }
                let (events, response) = decoder.finish()?;
                for event in events {
                    yield ModelEvent::Event(event);
                }
                yield ModelEvent::Done(Box::new(response));
            } else {
                let bytes = model.chunks(response, signal);
                let mut answer =
                    std::pin::pin!(answer(decoder, bytes, model.config.max_event_bytes));
                while let Some(item) = answer.next().await {
                    yield item.map_err(|mut error| {
                        error.message = model.redacted(std::mem::take(&mut error.message));
                        error
                    })?;
                }
            }
        }
        .boxed()
    }
}

fn is_json(response: &reqwest::Response) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.trim_start().starts_with("application/json"))
}

/// Decodes the bytes of a stream of chunks.
pub(super) fn answer(
    mut decoder: Decoder,
    bytes: impl Stream<Item = Result<Bytes, Error>> + Send + 'static,
    most: usize,
) -> impl Stream<Item = Result<ModelEvent, Error>> + Send {
    async_stream::try_stream! {
        let mut events = std::pin::pin!(sse::events(bytes, most));
        while let Some(event) = events.next().await {
            let event = match event {
                Ok(event) => event,
                // Only usage is missing, which a provider may leave out anyway.
                Err(SseError::Body(error))
                    if decoder.is_finished() && error.code != Code::Cancelled => break,
                Err(error) => Err(decoder.unreadable(error))?,
            };
            let data = event.data.trim();
            if data.is_empty() {
                continue;
            }
            if data == "[DONE]" {
                decoder.done();
                break;
            }
            match decoder.push(data) {
                Ok(events) => {
                    for event in events {
                        yield ModelEvent::Event(event);
                    }
                }
                Err(error) if event.unfinished && error.code == Code::InvalidResponse => break,
                Err(error) => Err(error)?,
            }
        }
        let (events, response) = decoder.finish()?;
        for event in events {
            yield ModelEvent::Event(event);
        }
        yield ModelEvent::Done(Box::new(response));
    }
}

impl Decoder {
    fn unreadable(&self, error: SseError<Error>) -> Error {
        match error {
            SseError::Body(error) => error,
            SseError::TooLong(_) | SseError::Malformed(_) => self.invalid(&error.to_string()),
        }
    }
}
