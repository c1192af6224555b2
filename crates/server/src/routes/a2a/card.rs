//! The cards of the agents.

use super::Agent;
use crate::error::{ApiError, ErrorBody};
use crate::reactors::AgentSummary;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use http::{HeaderMap, Uri, header};
use interop::a2a::{AgentCard, Interfaces};
use serde_json::Value;

/// Shows the card of the default agent: how it is spoken to, and nothing that only some may know. Those of the
/// others stand at `/a2a/{agent}/.well-known/agent-card.json`.
#[utoipa::path(get, path = "/.well-known/agent-card.json", operation_id = "a2aAgentCard", tag = "a2a",
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn public(
    State(api): State<Api>,
    agent: Agent,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(card(&api, &agent, &headers, &uri, false)?))
}

/// The card of an agent; the extended one also tells of its tools.
pub(super) fn card(
    api: &Api,
    Agent(named): &Agent,
    headers: &HeaderMap,
    uri: &Uri,
    is_extended: bool,
) -> Result<Value, ApiError> {
    let base = base(api, headers, uri)?;
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

/// Where clients reach this server: as the configuration says, or as whoever asks has reached it.
fn base(api: &Api, headers: &HeaderMap, uri: &Uri) -> Result<String, ApiError> {
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
    let host = uri.authority().map(http::uri::Authority::as_str).or(host);
    let host = host.filter(|host| host.parse::<http::uri::Authority>().is_ok());
    let host = host.ok_or(ApiError::InvalidHeader {
        name: "host",
        expected: "the name that this server was reached by",
    })?;
    Ok(format!("{scheme}://{host}"))
}
