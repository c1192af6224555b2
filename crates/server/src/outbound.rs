//! The outbound guard, which sends every request to a user-supplied URL, such as that of a webhook, a
//! file or a remote agent.
//!
//! The server may reach hosts that its users must not: databases, or the service that hands credentials
//! to the machine. So the guard connects only to public addresses and to those in `[outbound] allow`. It
//! checks the addresses that it then connects to: for a name after resolving it, for an IP address as it
//! is, and both again after each redirect.
//!
//! ```no_run
//! use loomline_server::outbound::{Outbound, OutboundConfig, OutboundRequest};
//!
//! # async fn sent() -> Result<(), loomline_server::outbound::OutboundError> {
//! let outbound = Outbound::new(OutboundConfig::default())?;
//! let answer = outbound.send(OutboundRequest::get("https://example.org/menu.pdf")).await?;
//! println!("{} with {} bytes", answer.status, answer.body.len());
//! # Ok(())
//! # }
//! ```

mod address;
mod allow;
mod error;
mod hop;
mod resolve;
#[cfg(test)]
mod tests;

pub use address::{AddressKind, kind_of};
pub use allow::{Allowed, OutboundConfig};
pub use error::OutboundError;

use address::literal;
use bytes::{Bytes, BytesMut};
use hop::Hop;
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Client, Response, Url};
use resolve::PublicNames;
use std::time::Duration;

/// Time limit for connecting, including name resolution.
const CONNECT: Duration = Duration::from_secs(10);
/// Default for the duration of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Default for the size of a response, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// Default for the number of redirects.
const MAX_REDIRECTS: usize = 5;

/// A request to a user-supplied URL.
#[derive(Clone, Debug)]
pub struct OutboundRequest {
    /// The method.
    pub method: Method,
    /// Where to: `https:`, or `http:` where that is allowed.
    pub url: String,
    /// The headers. A redirect to another origin keeps only those that describe formats.
    pub headers: HeaderMap,
    /// The body. It is sent to the first origin only.
    pub body: Bytes,
    /// Maximum size of the response after decompression, in bytes.
    pub max_bytes: usize,
    /// Maximum duration of the request, with redirects and the response's body.
    pub timeout: Duration,
    /// How many redirects are followed.
    pub max_redirects: usize,
}

impl OutboundRequest {
    /// A request without a body. Limits: 8 MiB of response, 30 seconds, five redirects.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            max_bytes: MAX_BYTES,
            timeout: TIMEOUT,
            max_redirects: MAX_REDIRECTS,
        }
    }

    /// A request with a body, with the limits of [`get`](Self::get).
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            body: body.into(),
            ..Self::get(url)
        }
    }
}

/// The response of the last host, after all redirects.
#[derive(Clone, Debug)]
pub struct OutboundAnswer {
    /// The status; an error status is a response too.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A response whose body is streamed.
#[derive(Debug)]
pub struct OutboundStream {
    response: Response,
    idle: Duration,
    limit: usize,
    left: usize,
}

impl OutboundStream {
    /// The status; an error status is a response too.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next chunk of the body; none at its end.
    ///
    /// # Errors
    ///
    /// [`OutboundError::Timeout`] if no byte arrives for too long, [`OutboundError::TooLarge`] and
    /// [`OutboundError::Unreached`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, OutboundError> {
        let after = self.idle;
        let piece = tokio::time::timeout(after, self.response.chunk()).await;
        let piece = piece.map_err(|_| OutboundError::Timeout { after })?;
        let piece = piece.map_err(OutboundError::unreached)?;
        let n = piece.as_ref().map_or(0, Bytes::len);
        let too_large = OutboundError::TooLarge { limit: self.limit };
        self.left = self.left.checked_sub(n).ok_or(too_large)?;
        Ok(piece)
    }

    /// The whole body.
    ///
    /// # Errors
    ///
    /// Those of [`OutboundStream::chunk`].
    pub async fn whole(mut self) -> Result<Bytes, OutboundError> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.chunk().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }
}

/// Sends requests to user-supplied URLs. It has a connection pool, so make one and share it.
#[derive(Clone, Debug)]
pub struct Outbound {
    config: OutboundConfig,
    /// A client that connects to public addresses and to allowed networks.
    public: Client,
    /// A client that connects to hosts that are allowed by name, whatever their address.
    named: Client,
}

impl Outbound {
    /// A guard that allows public addresses and those in the configuration.
    ///
    /// # Errors
    ///
    /// [`OutboundError::SetUp`] if TLS can't be set up.
    pub fn new(config: OutboundConfig) -> Result<Self, OutboundError> {
        let names = PublicNames::new(config.clone());
        let build = |builder: reqwest::ClientBuilder| builder.build().map_err(OutboundError::SetUp);
        Ok(Self {
            public: build(builder()?.dns_resolver(names))?,
            named: build(builder()?)?,
            config,
        })
    }

    /// Sends a request, follows redirects, and reads the whole response.
    ///
    /// # Errors
    ///
    /// See [`OutboundError`]. If the URL is refused, nothing was sent.
    pub async fn send(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        let after = request.timeout;
        let answered = tokio::time::timeout(after, self.follow(request)).await;
        answered.unwrap_or(Err(OutboundError::Timeout { after }))
    }

    /// Sends a request and follows redirects; the response's body is streamed. `timeout` limits the time
    /// to the response's headers, and `max_bytes` the size of the body. `idle` limits the time without
    /// new bytes of the body.
    ///
    /// # Errors
    ///
    /// See [`OutboundError`]. If the URL is refused, nothing was sent.
    pub async fn open(
        &self,
        request: OutboundRequest,
        idle: Duration,
    ) -> Result<OutboundStream, OutboundError> {
        let (after, limit) = (request.timeout, request.max_bytes);
        let answered = tokio::time::timeout(after, self.answered(request)).await;
        let response = answered.unwrap_or(Err(OutboundError::Timeout { after }))?;
        Ok(OutboundStream {
            response,
            idle,
            limit,
            left: limit,
        })
    }

    async fn follow(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        let max_bytes = request.max_bytes;
        read(self.answered(request).await?, max_bytes).await
    }

    /// The last host's response, after redirects, with an unread body.
    async fn answered(&self, request: OutboundRequest) -> Result<Response, OutboundError> {
        let limit = request.max_redirects;
        let mut hop = Hop::first(request)?;
        for _ in 0..=limit {
            let client = self.client_for(&hop.url)?;
            let sent = hop.request(client).send().await;
            let response = sent.map_err(OutboundError::unreached)?;
            hop = match hop.next(&response)? {
                Some(next) => next,
                None => return Ok(response),
            };
        }
        Err(OutboundError::TooManyRedirects { limit })
    }

    /// The HTTP client for this URL; an error if the guard allows no connection to it.
    fn client_for(&self, url: &Url) -> Result<&Client, OutboundError> {
        match url.scheme() {
            "https" => {}
            "http" if self.config.http => {}
            "http" => return Err(OutboundError::Unencrypted),
            _ => return Err(OutboundError::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OutboundError::Credentials);
        }
        let host = url.host_str().ok_or(OutboundError::Address)?;
        let port = url.port_or_known_default().ok_or(OutboundError::Address)?;
        if self.config.allows_host(host, port) {
            return Ok(&self.named);
        }
        // Only names are resolved, so that an address must be judged here.
        if let Some(address) = literal(host) {
            self.config.check(host, address)?;
        }
        Ok(&self.public)
    }
}

/// A client that neither follows redirects by itself nor uses a proxy: either would bypass the guard.
fn builder() -> Result<reqwest::ClientBuilder, OutboundError> {
    let builder = upp::http_client_builder("outbound").map_err(OutboundError::Tls)?;
    Ok(builder.no_proxy().referer(false).connect_timeout(CONNECT))
}

async fn read(mut response: Response, limit: usize) -> Result<OutboundAnswer, OutboundError> {
    let announced = response.content_length().unwrap_or_default();
    if usize::try_from(announced).map_or(true, |announced| announced > limit) {
        return Err(OutboundError::TooLarge { limit });
    }
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(OutboundError::unreached)? {
        if piece.len() > limit - body.len() {
            return Err(OutboundError::TooLarge { limit });
        }
        body.extend_from_slice(&piece);
    }
    Ok(OutboundAnswer {
        status: response.status(),
        headers: std::mem::take(response.headers_mut()),
        body: body.freeze(),
    })
}
