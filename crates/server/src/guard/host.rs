//! Host names of this machine. Development mode serves only these, because it needs no key.

use crate::error::ApiError;
use crate::state::Api;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri, header};
use std::net::{Ipv4Addr, Ipv6Addr};

/// In development mode, refuses host names that a foreign DNS may point at this machine. Checks every
/// path, even those that need no key or do not exist.
pub(crate) async fn check_host(
    State(api): State<Api>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if api.app().config().is_development() {
        check(request.uri(), request.headers())?;
    }
    Ok(next.run(request).await)
}

/// Checks that the request's target and its only `Host` name this machine, as far as they are present.
fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let hosts: Vec<String> = headers.get_all(header::HOST).iter().map(text).collect();
    let target = uri.authority().map(Authority::as_str);
    let mut names = target.into_iter().chain(hosts.iter().map(String::as_str));
    let is_named = target.is_some() || !hosts.is_empty();
    if is_named && hosts.len() < 2 && names.all(is_this_machine) {
        return Ok(());
    }
    let host = target.map_or_else(|| hosts.join(", "), str::to_owned);
    Err(ApiError::ForeignHost { host })
}

/// Refuses requests of foreign web pages, which in development mode no key would stop.
pub(super) fn check_origin(headers: &HeaderMap, allowed: &[String]) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or_default();
    if is_local(origin)
        || allowed
            .iter()
            .any(|allowed| allowed == origin || allowed == "*")
    {
        Ok(())
    } else {
        Err(ApiError::ForeignOrigin {
            origin: origin.to_owned(),
        })
    }
}

/// Whether an origin is on this machine, with any port.
pub(crate) fn is_local(origin: &str) -> bool {
    let host = origin.split_once("://").map(|(_, host)| host);
    host.is_some_and(is_this_machine)
}

/// Whether an authority is `localhost` or a loopback address, with or without a port.
pub(crate) fn is_this_machine(authority: &str) -> bool {
    let (is_local, port) = if let Some(rest) = authority.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else {
            return false;
        };
        let address: Result<Ipv6Addr, _> = address.parse();
        (address.is_ok_and(|it| it.is_loopback()), port)
    } else {
        let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        let address: Result<Ipv4Addr, _> = host.parse();
        let is_name = host.eq_ignore_ascii_case("localhost");
        (is_name || address.is_ok_and(|it| it.is_loopback()), port)
    };
    is_local && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_pass() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "localhost.evil.example",
            "evil.example:80",
            "10.0.0.1",
            "[::2]:80",
            "127.0.0.1.evil.example",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn a_host_is_compared_as_a_whole() {
        for host in [
            "127.0.0.1:80:evil.example",
            "localhost:80@evil.example",
            "localhost:",
            "localhost:+80",
            "localhost:65536",
            "localhost.",
            "localhost ",
            "user@localhost",
            "[::1]evil.example",
            "[::1]:evil",
            "[::1",
            "[localhost]",
            "[127.0.0.1]",
            "::1",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
