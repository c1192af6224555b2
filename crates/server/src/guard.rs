//! Who may call: keys, and in development mode this machine alone.

use crate::app::DEV_TENANT;
use crate::error::ApiError;
use crate::state::Api;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, Uri, header};
use runtime::TenantId;
use std::net::IpAddr;

/// The tenant a request speaks for.
#[derive(Clone)]
pub(crate) struct Tenant(pub(crate) TenantId);

impl<S: Send + Sync> FromRequestParts<S> for Tenant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // Nobody without the layer below, so that a route that forgets it is closed, not open.
        parts
            .extensions
            .get()
            .cloned()
            .ok_or(ApiError::Unauthorized)
    }
}

/// Lets through who has a key, or in development mode who is on this machine.
pub(crate) async fn authenticate(
    State(api): State<Api>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let config = api.app().config();
    let tenant = if config.is_development() {
        check_host(request.uri(), request.headers())?;
        check_origin(request.headers(), &config.server.cors_origins)?;
        TenantId::from(DEV_TENANT)
    } else {
        let key = bearer(request.headers()).ok_or(ApiError::Unauthorized)?;
        api.keys()
            .tenant(key)
            .cloned()
            .ok_or(ApiError::Unauthorized)?
    };
    request.extensions_mut().insert(Tenant(tenant));
    Ok(next.run(request).await)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

/// Refuses names that someone else's DNS may point at this machine.
fn check_host(uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let header = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = uri
        .authority()
        .map(http::uri::Authority::as_str)
        .or(header)
        .unwrap_or_default();
    if is_this_machine(host) {
        Ok(())
    } else {
        Err(ApiError::ForeignHost {
            host: host.to_owned(),
        })
    }
}

/// Refuses what a foreign page makes a browser send; no key would stop it here.
fn check_origin(headers: &HeaderMap, allowed: &[String]) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or_default();
    let local = origin
        .split_once("://")
        .is_some_and(|(_, host)| is_this_machine(host));
    if local
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

fn is_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
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
}
