//! The outbound guard: what every request goes through whose address a user chose, such as that of a
//! webhook, of a file elsewhere or of an agent elsewhere.
//!
//! A server stands where others can't reach: beside databases, and beside the service that gives its
//! machine credentials. So only public addresses are connected to, and what `[outbound] allow` names.
//! That is judged where it counts: for a name, once it is resolved, on the addresses that the
//! connection is then made to; for an address in a URL, as it is; and both again after each redirect.
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

/// How long to wait for a connection, the name's resolution included.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a request may take to its end, unless it says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long an answer may be, unless the request says otherwise, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// How many redirects are followed, unless the request says otherwise.
const MAX_REDIRECTS: usize = 5;

/// A request to where a user wants it.
#[derive(Clone, Debug)]
pub struct OutboundRequest {
    /// The method.
    pub method: Method,
    /// Where to: `https:`, or `http:` where that is allowed.
    pub url: String,
    /// Its headers. A redirect to another origin takes along only those that name forms.
    pub headers: HeaderMap,
    /// Its body. It goes to no other origin than the first.
    pub body: Bytes,
    /// How long the answer may be once it is unpacked, in bytes.
    pub max_bytes: usize,
    /// How long all of it may take, redirects and the answer's body included.
    pub timeout: Duration,
    /// How many redirects are followed.
    pub max_redirects: usize,
}

impl OutboundRequest {
    /// A request without a body: 8 MiB of answer, 30 seconds, five redirects.
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

/// What was answered, by whoever was asked last.
#[derive(Clone, Debug)]
pub struct OutboundAnswer {
    /// The status. One that tells of a failure is an answer, too.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// An answer whose body is read as it comes.
#[derive(Debug)]
pub struct OutboundStream {
    response: Response,
    idle: Duration,
    limit: usize,
    left: usize,
}

impl OutboundStream {
    /// The status. One that tells of a failure is an answer, too.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next piece of the body; none at its end.
    ///
    /// # Errors
    ///
    /// [`OutboundError::Timeout`] if nothing comes for too long, [`OutboundError::TooLarge`] and
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

    /// All of the body.
    ///
    /// # Errors
    ///
    /// As of [`OutboundStream::chunk`].
    pub async fn whole(mut self) -> Result<Bytes, OutboundError> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.chunk().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }
}

/// Sends what users point somewhere. It keeps connections, so one is made and shared.
#[derive(Clone, Debug)]
pub struct Outbound {
    config: OutboundConfig,
    /// Connects names to public addresses, and to those of networks that are allowed.
    public: Client,
    /// Connects to hosts that are allowed by name, wherever they are.
    named: Client,
}

impl Outbound {
    /// A guard that lets through what is public, and what the configuration allows.
    ///
    /// # Errors
    ///
    /// [`OutboundError::SetUp`] if TLS can't be had.
    pub fn new(config: OutboundConfig) -> Result<Self, OutboundError> {
        let names = PublicNames::new(config.clone());
        let build = |builder: reqwest::ClientBuilder| builder.build().map_err(OutboundError::SetUp);
        Ok(Self {
            public: build(builder()?.dns_resolver(names))?,
            named: build(builder()?)?,
            config,
        })
    }

    /// Sends a request, follows redirects, and reads the answer to its end.
    ///
    /// # Errors
    ///
    /// See [`OutboundError`]. Nothing was sent where the address is refused.
    pub async fn send(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        let after = request.timeout;
        let answered = tokio::time::timeout(after, self.follow(request)).await;
        answered.unwrap_or(Err(OutboundError::Timeout { after }))
    }

    /// Sends a request and follows redirects; the answer's body is read as it comes. `timeout` is that of the
    /// answer's headers, `max_bytes` that of the whole body; `idle` is how long nothing of the body may come.
    ///
    /// # Errors
    ///
    /// See [`OutboundError`]. Nothing was sent where the address is refused.
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

    /// The answer of whoever is asked last; its body is not read yet.
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

    /// The client that may connect there; refuses what none may connect to.
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

/// A client that follows no redirects by itself and asks no proxy: either would lead past the guard.
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
