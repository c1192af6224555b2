//! A2A 1.0, in both HTTP bindings: threads are contexts, and messages start tasks.
//!
//! `/a2a` is JSON-RPC with the default agent, and `/a2a/v1/…` has the paths of the other binding. Each
//! agent has both below `/a2a/{agent}`. An operation is one function, and the bindings only wrap it. The
//! path selects the agent that answers; a task can be read through every path.

mod answers;
mod cancel;
mod card;
mod list;
mod lookup;
mod pending;
mod rest;
mod routes;
mod rpc;
mod start;
mod stream;

use crate::error::ApiError;
use crate::state::Api;
use axum::RequestPartsExt as _;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use http::request::Parts;
use http::{HeaderMap, Uri};
use interop::a2a::{ErrorKind, RequestError, check_version};
pub(crate) use routes::PROTOCOL;

/// The agent that a path names; the default agent if it names none.
pub(crate) struct Agent(Option<String>);

impl FromRequestParts<Api> for Agent {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let params = parts.extract::<RawPathParams>().await;
        let params = params.map_err(|rejection| ApiError::InvalidPath {
            what: rejection.body_text(),
        })?;
        let mut named = params.iter().filter(|(name, _)| *name == "agent");
        let Some((_, agent)) = named.next() else {
            return Ok(Self(None));
        };
        let agents = api.app().agents();
        if agents.iter().any(|known| known.name == agent) {
            return Ok(Self(Some(agent.to_owned())));
        }
        Err(ApiError::UnknownRoute)
    }
}

/// A body. Its JSON errors have the form of the protocol.
pub(crate) struct Body<T>(T);

impl<T: FromRequest<Api, Rejection = ApiError>> FromRequest<Api> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let body = T::from_request(request, api).await;
        if let Err(ApiError::NotJson) = body {
            let message = "expected the content-type application/json or application/a2a+json";
            return Err(RequestError::new(ErrorKind::ContentTypeNotSupported, message).into());
        }
        body.map(Self)
    }
}

/// Refuses clients of another version. The version is in a header, or in the query for clients that
/// can't set headers.
fn version(headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
    let header = headers.get("a2a-version").and_then(|it| it.to_str().ok());
    let query = || {
        let pairs = uri.query().unwrap_or_default().split('&');
        let mut named = pairs.filter_map(|pair| pair.split_once('='));
        let found = named.find(|(name, _)| name.eq_ignore_ascii_case("a2a-version"));
        found.map(|(_, version)| version)
    };
    Ok(check_version(header.or_else(query))?)
}
