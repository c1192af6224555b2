//! The cards of the agents.

use super::Agent;
use crate::error::{ApiError, ErrorBody};
use crate::hex::hex;
use crate::reactors::AgentSummary;
use crate::routes::public_address::public_address;
use crate::state::Api;
use aws_lc_rs::digest;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, Uri, header};
use interop::a2a::{AgentCard, Interfaces};
use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};
use serde_json::Value;

/// `Cache-Control` of a card whose URLs are configured. Caches hold it for five minutes, because it
/// changes with the configuration.
const SHARED: &str = "public, max-age=300";
/// `Cache-Control` of a card whose URLs come from the request's `Host`. Shared caches must not pass one
/// client's `Host` to another.
const PRIVATE: &str = "private, max-age=300";

/// Reads the public card of the default agent, without confidential data. The other agents' cards are at
/// `/a2a/{agent}/.well-known/agent-card.json`.
///
/// If the client's `If-None-Match` or `If-Modified-Since` shows that its copy is current, the status is
/// 304.
#[utoipa::path(get, path = "/.well-known/agent-card.json", operation_id = "a2aAgentCard", tag = "a2a",
    params(("if-none-match" = Option<String>, Header), ("if-modified-since" = Option<String>, Header)),
    responses((status = 200, body = Object), (status = 304, description = "The client has this card"), (status = "default", body = ErrorBody)))]
pub(crate) async fn public(
    State(api): State<Api>,
    agent: Agent,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let card = card(&api, &agent, &headers, &uri, false)?.to_string();
    let hash = digest::digest(&digest::SHA256, card.as_bytes());
    let tag = format!("\"{}\"", hex(hash.as_ref()));
    let is_same_for_all = api.app().config().server.public_url.is_some();
    let fresh = if is_same_for_all { SHARED } else { PRIVATE };
    let since = api.since();
    let modified = DateTimePrinter::new().timestamp_to_rfc9110_string(&since);
    let modified = modified.map_err(|_| ApiError::Panicked)?;
    let caching = [
        (header::ETAG, tag.as_str()),
        (header::CACHE_CONTROL, fresh),
        (header::LAST_MODIFIED, modified.as_str()),
    ];
    if has(&headers, &tag, since) {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((caching, kind, card).into_response())
}

/// Whether a client has the version with this tag (RFC 9110, 13.1.2). If it sends no tags, whether its
/// version is from this time or later (13.1.3).
fn has(headers: &HeaderMap, tag: &str, since: Timestamp) -> bool {
    if !headers.contains_key(header::IF_NONE_MATCH) {
        let known = headers.get(header::IF_MODIFIED_SINCE);
        let known = known.and_then(|it| it.to_str().ok());
        let known = known.and_then(|it| DateTimeParser::new().parse_timestamp(it).ok());
        return known.is_some_and(|known| known.as_second() >= since.as_second());
    }
    let values = headers.get_all(header::IF_NONE_MATCH).into_iter();
    let mut tags = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    tags.any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == tag)
}

/// The card of an agent; the extended one also lists its tools.
pub(super) fn card(
    api: &Api,
    Agent(named): &Agent,
    headers: &HeaderMap,
    uri: &Uri,
    is_extended: bool,
) -> Result<Value, ApiError> {
    let base = public_address(api, headers, uri)?;
    let interfaces = match named {
        None => Interfaces {
            json_rpc: format!("{base}/a2a"),
            http_json: format!("{base}/a2a/v1"),
        },
        Some(agent) => Interfaces {
            json_rpc: format!("{base}/a2a/{agent}"),
            http_json: format!("{base}/a2a/{agent}/v1"),
        },
    };
    let is_meant = |agent: &AgentSummary| match named {
        Some(named) => agent.name == *named,
        None => agent.is_default,
    };
    let agent = api.app().agents().into_iter().find(is_meant);
    let agent = agent.ok_or(ApiError::UnknownRoute)?;
    let card = AgentCard {
        name: &agent.name,
        version: env!("CARGO_PKG_VERSION"),
        needs_key: !api.app().config().is_development(),
        tools: is_extended.then_some(agent.tools.as_slice()),
    };
    Ok(card.to_json(&interfaces))
}
