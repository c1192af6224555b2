//! One call of an endpoint.

use super::Endpoint;
use crate::call::EndpointCall;
use crate::error::{Code, Error};
use crate::failure::retry_after;
use crate::provider::frames::Frame;
use crate::retry::with_retries;
use futures_util::Stream;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

/// Minimum length of a header's value that counts as a secret.
const SECRET: usize = 8;

/// One call, with its key.
pub(crate) struct Session {
    pub(in crate::provider) endpoint: Endpoint,
    /// Which no error may quote.
    pub(super) key: Option<SecretString>,
    pub(super) header: Option<(HeaderName, HeaderValue)>,
}

impl Session {
    /// Removes secrets from an error before the caller sees it. Providers quote a refused key, though
    /// usually shortened. A key may also be in a header that the caller configured. Header values that
    /// are as short as a word don't count as keys.
    pub(crate) fn redacted(&self, error: Error) -> Error {
        let mut error = error.with_modality(self.endpoint.modality);
        let key = self.key.as_ref().map(ExposeSecret::expose_secret);
        let headers = self.endpoint.config.headers.iter();
        let values = headers.map(|(_, value)| value.strip_prefix("Bearer ").unwrap_or(value));
        let secrets = key
            .into_iter()
            .chain(values.filter(|value| value.len() >= SECRET));
        for secret in secrets.filter(|secret| !secret.is_empty()) {
            error.message = error.message.replace(secret, "***");
        }
        error
    }

    /// Sends the call and waits for the headers of a successful answer.
    pub(in crate::provider) async fn open(
        &self,
        call: &EndpointCall,
        accept: &str,
        signal: &CancellationToken,
    ) -> Result<reqwest::Response, Error> {
        if signal.is_cancelled() {
            return Err(self.endpoint.cancelled());
        }
        let mut request = self.endpoint.request(call, accept)?;
        if let Some((name, value)) = &self.header {
            request = request.header(name, value);
        }
        let late = "the provider sent no headers in time";
        let response = self
            .endpoint
            .within(
                self.endpoint.config.timeouts.headers,
                late,
                signal,
                request.send(),
            )
            .await?
            .map_err(|cause| self.endpoint.unreached(cause))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response, signal).await)
    }

    /// The error for an answer with a status other than 2xx.
    async fn refused(&self, response: reqwest::Response, signal: &CancellationToken) -> Error {
        let status = response.status().as_u16();
        let header = response.headers().get(RETRY_AFTER);
        let wait = header
            .and_then(|value| value.to_str().ok())
            .and_then(|value| retry_after(value, crate::clock::now()));
        // The status says enough if the body can't be read, or comes drop by drop.
        let limit = self.endpoint.config.timeouts.headers;
        let body = tokio::time::timeout(limit, self.endpoint.whole(response, signal)).await;
        let body = match body {
            Ok(Err(error)) if error.code == Code::Cancelled => return error,
            Ok(Ok(body)) => body,
            Ok(Err(_)) | Err(_) => String::new(),
        };
        let mut error = (self.endpoint.refusal)(status, &body);
        error.retry_after = wait
            .or(error.retry_after)
            .map(|wait| wait.min(self.endpoint.config.retry_after_max));
        self.redacted(error)
    }

    /// Makes attempts according to the configuration's strategy.
    async fn attempts<T, F: Future<Output = Result<T, Error>>>(
        &self,
        signal: &CancellationToken,
        attempt: impl FnMut() -> F,
    ) -> Result<T, Error> {
        let retry = self.endpoint.retry();
        with_retries(&*retry, signal, || self.endpoint.cancelled(), attempt).await
    }

    /// Sends the call and returns the whole answer.
    pub(crate) async fn text(
        &self,
        call: &EndpointCall,
        signal: &CancellationToken,
    ) -> Result<String, Error> {
        self.attempts(signal, || async {
            let response = self.open(call, "application/json", signal).await?;
            self.endpoint.whole(response, signal).await
        })
        .await
    }

    /// Sends the call and returns the answer's events, or the whole answer if the provider did not
    /// stream.
    pub(crate) async fn events(
        &self,
        call: &EndpointCall,
        signal: &CancellationToken,
    ) -> Result<Answer<impl Stream<Item = Result<Frame, Error>> + Send + use<> + 'static>, Error>
    {
        let open = || self.open(call, "text/event-stream", signal);
        let response = self.attempts(signal, open).await?;
        if is_json(&response) {
            return Ok(Answer::Whole(self.endpoint.whole(response, signal).await?));
        }
        Ok(Answer::Events(
            self.endpoint.events(response, signal.clone()),
        ))
    }
}

/// The answer to a streaming call.
pub(crate) enum Answer<S> {
    /// The provider streams.
    Events(S),
    /// The provider answered with one text.
    Whole(String),
}

/// Whether the answer is one JSON text although the request was for a stream.
pub(in crate::provider) fn is_json(response: &reqwest::Response) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.trim_start().starts_with("application/json"))
}
