//! The address that clients reach the server by.

use crate::error::ApiError;
use crate::state::Api;
use http::uri::Authority;
use http::{HeaderMap, Uri, header};

/// The server's URL for clients: from the configuration, or from the request.
pub(crate) fn public_address(
    api: &Api,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<String, ApiError> {
    let config = &api.app().config().server;
    if let Some(url) = &config.public_url {
        return Ok(url.clone());
    }
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    let host = uri.authority().map(Authority::as_str).or(host);
    let host = host.filter(|host| is_host(host));
    let host = host.ok_or(ApiError::InvalidHeader {
        name: "host",
        expected: "the name that this server was reached by",
    })?;
    Ok(format!("{scheme}://{host}"))
}

/// Whether a text is a host with an optional port, and nothing else.
fn is_host(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    text.chars().all(is_plain) && text.parse::<Authority>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_no_other_characters() {
        for host in [
            "localhost",
            "127.0.0.1:8787",
            "[::1]:80",
            "looms.example.org",
        ] {
            assert!(is_host(host), "{host}");
        }
        for host in ["user@example.org", "a'b", "a$b", "a b", "", "a/b"] {
            assert!(!is_host(host), "{host}");
        }
    }
}
