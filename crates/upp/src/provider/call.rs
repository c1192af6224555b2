//! One call of a model: its key, its attempts, and what became of them.

use super::{CANCELLED, Provider, answer, is_json, key_header, key_header_name};
use crate::error::{Code, Error};
use crate::failure::retry_after;
use crate::http::unreached;
use crate::model::{ModelEvent, Request, Sent};
use crate::prefix::{Prefix, RequestReport};
use crate::retry::{NoRetry, RetryStrategy};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The hosts of the vendors: they take no request without a key.
const VENDORS: [&str; 8] = [
    "api.anthropic.com",
    "api.cerebras.ai",
    "api.groq.com",
    "api.moonshot.ai",
    "api.openai.com",
    "api.x.ai",
    "generativelanguage.googleapis.com",
    "openrouter.ai",
];

/// The length from which on a header's value is taken for a secret.
const SECRET: usize = 8;

/// A request as it is sent, as often as it takes.
pub(super) struct Call {
    provider: Provider,
    request: Request,
    body: Bytes,
    sent: Sent,
    headers: HeaderMap,
    /// The key that the headers have, which no error may quote.
    key: Option<SecretString>,
}

impl Call {
    /// Writes the request and gets its key.
    pub(super) async fn new(provider: Provider, request: Request) -> Result<Arc<Self>, Error> {
        let encoded = provider.codec.encode(&request)?;
        let prefix = Arc::new(Prefix::of(&encoded));
        let report = RequestReport::new(&encoded, &prefix, request.previous.as_deref());
        let mut headers = provider.headers.clone();
        let key = provider.key(&request.signal).await?;
        let name = key_header_name(&*provider.codec);
        // A header of the caller's wins over ours.
        if let Some(key) = &key
            && !headers.contains_key(&name)
        {
            let (name, value) = key_header(&*provider.codec, key)?;
            headers.insert(name, value);
        }
        if !headers.contains_key(&name) && provider.is_vendors() {
            let text = "there is no API key, and the provider takes no request without one";
            return Err(provider.error(Code::AuthenticationFailed, text));
        }
        Ok(Arc::new(Self {
            body: Bytes::from(encoded.body),
            sent: Sent { prefix, report },
            provider,
            request,
            headers,
            key,
        }))
    }

    pub(super) fn provider(&self) -> &str {
        self.provider.codec.provider()
    }

    pub(super) fn retry(&self) -> Arc<dyn RetryStrategy> {
        let retry = self.provider.config.retry.clone();
        retry.unwrap_or_else(|| Arc::new(NoRetry))
    }

    /// Sends the request once and reads the answer.
    pub(super) fn attempt(
        self: Arc<Self>,
    ) -> impl Stream<Item = Result<ModelEvent, Error>> + Send + 'static {
        let call = Arc::clone(&self);
        self.items().map(move |item| {
            item.map_err(|error| {
                let error = call.redacted(error);
                tracing::debug!(
                    provider = call.provider(),
                    model = call.provider.codec.model_id(),
                    code = error.code.as_str(),
                    status = error.status,
                    message = error.message,
                    "a request to a model failed"
                );
                error
            })
        })
    }

    fn items(self: Arc<Self>) -> impl Stream<Item = Result<ModelEvent, Error>> + Send + 'static {
        async_stream::try_stream! {
            let signal = &self.request.signal;
            let codec = &*self.provider.codec;
            let mut decoder = codec.decoder(&self.request);
            let response = self.send(signal).await?;
            if is_json(&response, codec.framing()) {
                let body = self.provider.whole(response, signal).await?;
                let events = decoder.whole(&body)?;
                let (last, mut response) = decoder.finish()?;
                for event in events.into_iter().chain(last) {
                    yield ModelEvent::Event(event);
                }
                response.request = Some(self.sent.clone());
                yield ModelEvent::Done(Box::new(response));
                return;
            }
            let bytes = self.provider.chunks(response, signal.clone());
            let most = self.provider.config.max_event_bytes;
            let mut items = std::pin::pin!(answer(codec, decoder, bytes, most));
            while let Some(item) = items.next().await {
                match item? {
                    ModelEvent::Done(mut response) => {
                        response.request = Some(self.sent.clone());
                        yield ModelEvent::Done(response);
                    }
                    event @ ModelEvent::Event(_) => yield event,
                }
            }
        }
    }

    async fn send(&self, signal: &CancellationToken) -> Result<reqwest::Response, Error> {
        let provider = &self.provider;
        if signal.is_cancelled() {
            return Err(provider.error(Code::Cancelled, CANCELLED));
        }
        let request = provider
            .client
            .post(provider.url.clone())
            .headers(self.headers.clone())
            .body(self.body.clone());
        let late = "the provider sent no headers in time";
        let response = provider
            .within(
                provider.config.timeouts.headers,
                late,
                signal,
                request.send(),
            )
            .await?
            .map_err(|cause| unreached(provider.codec.provider(), cause))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response, signal).await?)
    }

    /// What an answer with a status other than 2xx means.
    async fn refused(
        &self,
        response: reqwest::Response,
        signal: &CancellationToken,
    ) -> Result<Error, Error> {
        let status = response.status().as_u16();
        let header = response.headers().get(reqwest::header::RETRY_AFTER);
        let wait = header
            .and_then(|value| value.to_str().ok())
            .and_then(|value| retry_after(value, crate::clock::now()));
        // The status says enough if the body can't be read, or comes drop by drop.
        let limit = self.provider.config.timeouts.headers;
        let body = tokio::time::timeout(limit, self.provider.whole(response, signal)).await;
        let body = match body {
            Ok(Err(error)) if error.code == Code::Cancelled => return Err(error),
            Ok(Ok(body)) => body,
            Ok(Err(_)) | Err(_) => String::new(),
        };
        let mut error = self.provider.codec.refusal(status, &body);
        error.retry_after = wait
            .or(error.retry_after)
            .map(|wait| wait.min(self.provider.config.retry_after_max));
        Ok(error)
    }

    /// Providers quote a refused key, though usually shortened; a key may be in a header of the
    /// caller's, too. What is as short as a word is none.
    fn redacted(&self, mut error: Error) -> Error {
        let key = self.key.as_ref().map(ExposeSecret::expose_secret);
        let headers = self.provider.config.headers.iter();
        let values = headers.map(|(_, value)| value.strip_prefix("Bearer ").unwrap_or(value));
        let secrets = key
            .into_iter()
            .chain(values.filter(|value| value.len() >= SECRET));
        for secret in secrets.filter(|secret| !secret.is_empty()) {
            error.message = error.message.replace(secret, "***");
        }
        error
    }
}

impl Provider {
    /// The key of one call.
    async fn key(&self, signal: &CancellationToken) -> Result<Option<SecretString>, Error> {
        if self.config.api_key.is_some() {
            return Ok(self.config.api_key.clone());
        }
        let Some(keys) = &self.config.keys else {
            return Ok(None);
        };
        let key = signal.run_until_cancelled(keys.key()).await;
        key.unwrap_or_else(|| Err(self.error(Code::Cancelled, CANCELLED)))
            .map(Some)
    }

    fn is_vendors(&self) -> bool {
        let host = self.url.host_str();
        host.is_some_and(|host| VENDORS.contains(&host))
    }
}
