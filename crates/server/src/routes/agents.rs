//! The configured agents.

use crate::error::ErrorBody;
use crate::reactors::AgentSummary;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// An agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentView {
    /// Its name.
    name: String,
    /// Its provider's name.
    provider: String,
    /// The model's name.
    model: String,
    /// The names of its tools.
    tools: Vec<String>,
    /// Whether it answers messages that name no agent.
    is_default: bool,
}

/// All agents.
#[derive(Serialize, ToSchema)]
pub(crate) struct AgentList {
    /// By name.
    agents: Vec<AgentView>,
}

impl From<AgentSummary> for AgentView {
    fn from(agent: AgentSummary) -> Self {
        let AgentSummary {
            name,
            provider,
            model,
            tools,
            is_default,
        } = agent;
        Self {
            name,
            provider,
            model,
            tools,
            is_default,
        }
    }
}

/// Lists the agents.
#[utoipa::path(get, path = "/agents", operation_id = "listAgents", tag = "agents", security(("key" = [])),
    responses((status = 200, body = AgentList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(State(api): State<Api>) -> Json<AgentList> {
    Json(AgentList {
        agents: api.app().agents().into_iter().map(Into::into).collect(),
    })
}
