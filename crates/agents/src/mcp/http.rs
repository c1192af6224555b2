//! Servers that use streamable HTTP.

use super::config::{McpHttp, McpLimits};
use super::text::chain;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::time::Duration;

/// Number of times that a broken stream is reopened before its content counts as lost.
const N_STREAM_RETRIES: usize = 3;

/// Makes the transport without sending anything. Fails with a description if the configuration is
/// invalid.
pub(super) fn transport(
    http: &McpHttp,
    limits: &McpLimits,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let url = reqwest::Url::parse(&http.url).map_err(|_| "the URL is none".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the URL begins neither with http: nor with https:".to_owned());
    }
    let client = upp::http_client_builder("mcp")
        .map_err(|error| chain(&error))?
        .connect_timeout(limits.connect)
        .default_headers(headers(http)?)
        .build()
        .map_err(|error| chain(&error.without_url()))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str())
        .max_sse_event_size(limits.max_message_bytes);
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(N_STREAM_RETRIES);
    retries.base_duration = Duration::from_millis(250);
    retries.max_delay = Some(Duration::from_secs(2));
    config.retry_config = Arc::new(retries);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// The headers of every request. They go to one host only: the client follows no redirects.
fn headers(http: &McpHttp) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &http.headers {
        let key = HeaderName::try_from(name.as_str())
            .map_err(|_| format!("{name:?} is no name of a header"))?;
        let is_ours = matches!(key, ACCEPT | CONTENT_TYPE) || key.as_str().starts_with("mcp-");
        if is_ours || (key == AUTHORIZATION && http.bearer.is_some()) {
            return Err(format!("the header {name:?} is set by the client"));
        }
        headers.insert(key, secret(name, value, "")?);
    }
    if let Some(token) = &http.bearer {
        headers.insert(AUTHORIZATION, secret("authorization", token, "Bearer ")?);
    }
    Ok(headers)
}

fn secret(name: &str, value: &SecretString, before: &str) -> Result<HeaderValue, String> {
    let text = format!("{before}{}", value.expose_secret());
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| format!("the value of the header {name:?} can't be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A failed request, classified by whether the server may have received the call.
pub(super) enum Failure {
    /// The server has not received it.
    NotSent(String),
    /// The server may have received it.
    Lost(String),
    /// The server answered, but not with a result.
    Refused(String),
}

/// Classifies a failure of the HTTP transport; `None` for other errors.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's enum grows")]
pub(super) fn failure(error: &(dyn std::error::Error + 'static)) -> Option<Failure> {
    let error = error.downcast_ref::<StreamableHttpError<reqwest::Error>>()?;
    Some(match error {
        StreamableHttpError::Client(cause) if cause.is_connect() => {
            Failure::NotSent("it can't be reached".to_owned())
        }
        StreamableHttpError::Client(cause) if cause.is_decode() || cause.is_body() => {
            Failure::Lost("its answer broke off".to_owned())
        }
        // The request's address is in the error's text, and may hold a secret.
        StreamableHttpError::Client(_) => Failure::Lost("the connection broke".to_owned()),
        StreamableHttpError::SessionExpired => {
            Failure::NotSent("it does not know the session any more".to_owned())
        }
        StreamableHttpError::SessionRecoveryTimeout
        | StreamableHttpError::UnexpectedEndOfStream
        | StreamableHttpError::TransportChannelClosed => Failure::Lost(error.to_string()),
        StreamableHttpError::AuthRequired(_) => {
            Failure::Refused("it asks for authorisation".to_owned())
        }
        StreamableHttpError::InsufficientScope(_) => {
            Failure::Refused("the authorisation does not suffice".to_owned())
        }
        other => Failure::Refused(chain(other)),
    })
}
