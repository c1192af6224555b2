//! Requests to a remote agent, through the outbound guard.

use crate::config::RemoteConfig;
use crate::outbound::{Outbound, OutboundError, OutboundRequest, OutboundStream};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use interop::remote::Address;
use secrecy::ExposeSecret;
use serde_json::Value;
use std::sync::Arc;
use upp::{Code, Error};

/// Maximum size of one event of a stream, in bytes.
const MAX_EVENT: usize = 8 << 20;
/// Maximum size of an error that is read, in bytes.
const MAX_REFUSAL: usize = 64 << 10;

/// The client of one remote agent.
pub(super) struct Client {
    /// The agent's name on this server.
    pub(super) agent: String,
    /// The host, for errors; the whole URL may be confidential.
    pub(super) host: String,
    /// The agent's address, as notes and metadata record it.
    pub(super) at: Address,
    pub(super) config: RemoteConfig,
    outbound: Outbound,
}

/// A request to the agent.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    /// Below the address.
    pub(super) path: &'a str,
    pub(super) body: Option<String>,
    /// Whether server-sent events are wanted.
    pub(super) streams: bool,
    /// The `Idempotency-Key`.
    pub(super) key: Option<&'a str>,
}

impl<'a> Ask<'a> {
    pub(super) fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            body: None,
            streams: false,
            key: None,
        }
    }

    pub(super) fn post(path: &'a str, body: &Value) -> Self {
        Self {
            method: Method::POST,
            body: Some(body.to_string()),
            ..Self::get(path)
        }
    }

    pub(super) fn streaming(self) -> Self {
        Self {
            streams: true,
            ..self
        }
    }

    pub(super) fn with_key(self, key: &'a str) -> Self {
        Self {
            key: Some(key),
            ..self
        }
    }
}

/// The response to a request for a stream.
pub(super) enum Answered {
    /// The data of server-sent events.
    Events(BoxStream<'static, Result<String, Error>>),
    /// The whole response as one text: the agent does not support streaming.
    Whole(String),
}

impl Client {
    pub(super) fn new(agent: &str, config: RemoteConfig, outbound: Outbound) -> Self {
        let url = reqwest::Url::parse(&config.url).ok();
        let host = url.as_ref().and_then(|url| url.host_str());
        let origin = url.as_ref().map(|url| url.origin().ascii_serialization());
        Self {
            agent: agent.to_owned(),
            at: Address::new(&config.url, &origin.unwrap_or_default()),
            host: host.unwrap_or_default().to_owned(),
            config,
            outbound,
        }
    }

    /// An error of the agent, with its protocol and host.
    pub(super) fn error(&self, code: Code, what: &str) -> Error {
        let protocol = self.config.protocol.as_str();
        let text = format!("the agent {:?} at {}: {what}", self.agent, self.host);
        Error::new(code, protocol, text)
    }

    pub(super) fn cancelled(&self) -> Error {
        self.error(Code::Cancelled, "the request was cancelled")
    }

    pub(super) fn invalid(&self, what: &str) -> Error {
        self.error(Code::InvalidResponse, what)
    }

    /// Asks for one JSON text.
    pub(super) async fn json(&self, ask: Ask<'_>) -> Result<Value, Error> {
        let answer = self.open(ask).await?;
        let body = answer.whole().await;
        let body = body.map_err(|error| self.unsent(error))?;
        let read: Result<Value, _> = serde_json::from_slice(&body);
        read.map_err(|cause| self.invalid("the answer is not JSON").caused_by(cause))
    }

    /// Asks for a stream.
    pub(super) async fn stream(self: &Arc<Self>, ask: Ask<'_>) -> Result<Answered, Error> {
        let answer = self.open(ask.streaming()).await?;
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.trim_start().starts_with("application/json") {
            let body = answer.whole().await;
            let body = body.map_err(|error| self.unsent(error))?;
            return Ok(Answered::Whole(String::from_utf8_lossy(&body).into_owned()));
        }
        if !kind.trim_start().starts_with("text/event-stream") {
            return Err(self.invalid("the answer is neither JSON nor a stream of events"));
        }
        let this = Arc::clone(self);
        let bytes = async_stream::try_stream! {
            let mut answer = answer;
            while let Some(piece) = answer.chunk().await.map_err(|error| this.unsent(error))? {
                yield piece;
            }
        };
        let protocol = self.config.protocol.as_str();
        let events = upp::event_data(bytes, MAX_EVENT, protocol);
        Ok(Answered::Events(events.boxed()))
    }

    /// Starts a request that continues even if nobody awaits it.
    pub(super) fn position(
        self: &Arc<Self>,
        path: String,
        body: String,
        key: Option<String>,
    ) -> BoxFuture<'static, Result<Answered, Error>> {
        let this = Arc::clone(self);
        Box::pin(async move {
            let ask = Ask {
                method: Method::POST,
                body: Some(body),
                key: key.as_deref(),
                ..Ask::get(&path)
            };
            this.stream(ask).await
        })
    }

    async fn open(&self, ask: Ask<'_>) -> Result<OutboundStream, Error> {
        let request = OutboundRequest {
            method: ask.method.clone(),
            headers: self.headers(&ask)?,
            body: ask.body.map(Bytes::from).unwrap_or_default(),
            max_bytes: self.config.max_bytes,
            timeout: self.config.headers_timeout,
            ..OutboundRequest::get(format!("{}{}", self.config.url, ask.path))
        };
        let opened = self.outbound.open(request, self.config.idle_timeout).await;
        let answer = opened.map_err(|error| self.unsent(error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        Err(self.refused(answer).await)
    }

    fn headers(&self, ask: &Ask<'_>) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        let mut put = |name: HeaderName, value: &str| {
            let bad = |_| self.error(Code::InvalidRequest, "a header of it can't be sent");
            let mut value = HeaderValue::from_str(value).map_err(bad)?;
            value.set_sensitive(true);
            headers.insert(name, value);
            Ok(())
        };
        for (name, value) in &self.config.headers {
            if let Ok(name) = HeaderName::try_from(name) {
                put(name, value.expose_secret())?;
            }
        }
        if let Some(key) = &self.config.key {
            put(AUTHORIZATION, &format!("Bearer {}", key.expose_secret()))?;
        }
        let accept = if ask.streams {
            "text/event-stream, application/json"
        } else {
            "application/json"
        };
        put(ACCEPT, accept)?;
        if ask.body.is_some() {
            put(CONTENT_TYPE, "application/json")?;
        }
        if let Some(key) = ask.key {
            put(HeaderName::from_static("idempotency-key"), key)?;
        }
        if self.config.protocol == crate::config::RemoteProtocol::A2a {
            put(
                HeaderName::from_static("a2a-version"),
                interop::a2a::VERSION,
            )?;
        }
        Ok(headers)
    }

    /// The error of a request without a response.
    fn unsent(&self, error: OutboundError) -> Error {
        let code = match &error {
            OutboundError::Timeout { .. } => Code::Timeout,
            OutboundError::Unreached(_) => Code::NetworkError,
            OutboundError::TooLarge { .. }
            | OutboundError::TooManyRedirects { .. }
            | OutboundError::Downgraded
            | OutboundError::WrongBody => Code::InvalidResponse,
            OutboundError::Address
            | OutboundError::Scheme
            | OutboundError::Unencrypted
            | OutboundError::Credentials
            | OutboundError::Refused { .. }
            | OutboundError::SetUp(_)
            | OutboundError::Tls(_) => Code::InvalidRequest,
        };
        self.error(code, &error.to_string()).caused_by(error)
    }

    /// The error of a response with a status other than 2xx.
    async fn refused(&self, mut answer: OutboundStream) -> Error {
        let status = answer.status().as_u16();
        let mut body = Vec::new();
        while body.len() < MAX_REFUSAL
            && let Ok(Some(piece)) = answer.chunk().await
        {
            body.extend_from_slice(&piece);
        }
        let code = match status {
            401 | 403 => Code::AuthenticationFailed,
            408 | 504 => Code::Timeout,
            429 => Code::RateLimited,
            500.. => Code::ProviderError,
            // Nothing is wrong with the request.
            _ if is_locked(&body) => Code::ProviderError,
            _ => Code::InvalidRequest,
        };
        let said = error_text(&body);
        let said = said.map(|text| format!(": {text}")).unwrap_or_default();
        let mut error = self.error(code, &format!("it answered {status}{said}"));
        error.status = Some(status);
        for secret in self.secrets() {
            error.message = error.message.replace(&secret, "***");
        }
        error
    }

    /// Texts that errors must not repeat.
    fn secrets(&self) -> Vec<String> {
        let values = self.config.headers.values();
        let all = self.config.key.iter().chain(values);
        all.map(|secret| secret.expose_secret().to_owned())
            .filter(|secret| secret.len() >= 8)
            .collect()
    }
}

/// Whether an error means that the conversation is busy. Responses has the status of an invalid request
/// for it.
fn is_locked(body: &[u8]) -> bool {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let code = body
        .as_ref()
        .and_then(|body| body.get("error")?.get("code"));
    code.and_then(Value::as_str) == Some("conversation_locked")
}

/// The text of an error, in any of the protocols' forms.
fn error_text(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error").unwrap_or(&body);
    let text = error.get("message").or(Some(error))?.as_str()?;
    Some(text.chars().take(500).collect())
}
