//! Redirects: one request after the other.

use super::{OutboundError, OutboundRequest};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use reqwest::{Client, RequestBuilder, Response, Url};

/// Headers that a redirect to another origin keeps: they describe formats and do not identify the
/// caller.
const CARRIED: [HeaderName; 3] = [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT];

/// A request that is sent unchanged.
pub(super) struct Hop {
    method: Method,
    pub(super) url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl Hop {
    pub(super) fn first(request: OutboundRequest) -> Result<Self, OutboundError> {
        Ok(Self {
            method: request.method,
            url: Url::parse(&request.url).map_err(|_| OutboundError::Address)?,
            headers: request.headers,
            body: request.body,
        })
    }

    pub(super) fn request(&self, client: &Client) -> RequestBuilder {
        let request = client.request(self.method.clone(), self.url.clone());
        let request = request.headers(self.headers.clone());
        if self.body.is_empty() {
            return request;
        }
        request.body(self.body.clone())
    }

    /// The next request if the response is a redirect; none otherwise.
    pub(super) fn next(self, response: &Response) -> Result<Option<Self>, OutboundError> {
        let status = response.status();
        let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = response
            .headers()
            .get(header::LOCATION)
            .filter(|_| is_redirect)
        else {
            return Ok(None);
        };
        let location = std::str::from_utf8(location.as_bytes());
        let location = location.map_err(|_| OutboundError::Address)?;
        let joined = self.url.join(location);
        let url = joined.map_err(|_| OutboundError::Address)?;
        if self.url.scheme() == "https" && url.scheme() == "http" {
            return Err(OutboundError::Downgraded);
        }
        let mut next = self.redirected(status);
        if next.url.origin() != url.origin() {
            if !next.body.is_empty() {
                return Err(OutboundError::WrongBody);
            }
            let carried = CARRIED.into_iter();
            let carried = carried.filter_map(|name| Some((next.headers.remove(&name)?, name)));
            next.headers = carried.map(|(value, name)| (name, value)).collect();
        }
        next.url = url;
        Ok(Some(next))
    }

    /// Changes the method and the body for a redirect (RFC 9110 §15.4).
    fn redirected(mut self, status: StatusCode) -> Self {
        let asks = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if asks {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(header::CONTENT_TYPE);
        }
        self
    }
}
