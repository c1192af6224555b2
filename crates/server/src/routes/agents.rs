//! The configured agents.

use crate::error::ErrorBody;
use crate::reactors::{AgentSummary, ToolSummary};
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use upp::Effect;
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
    /// The configured description.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The names of its tools.
    tools: Vec<String>,
    /// Its tools, in the order of their names.
    tool_details: Vec<ToolView>,
    /// The names of the agents that it calls as tools.
    sub_agents: Vec<String>,
    /// The names of the agents that it can hand over to.
    handoffs: Vec<String>,
    /// Whether it answers messages that name no agent.
    is_default: bool,
}

/// A tool of an agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolView {
    /// Its name.
    name: String,
    /// The description for the model.
    description: String,
    /// The effect of a call: `pure`, `idempotent`, `reconcilable` or `effect`. It decides whether a call
    /// with an unknown outcome runs again.
    #[schema(value_type = String)]
    effect: Effect,
    /// Whether each call needs an approval.
    needs_approval: bool,
    /// Whether the client executes the calls and sends the results.
    external: bool,
    /// The JSON Schema of the results of an external tool, if it declares one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
}

impl From<ToolSummary> for ToolView {
    fn from(tool: ToolSummary) -> Self {
        let ToolSummary {
            name,
            description,
            effect,
            needs_approval,
            is_external,
            result,
        } = tool;
        Self {
            name,
            description,
            effect,
            needs_approval,
            external: is_external,
            result: result.map(Arc::unwrap_or_clone),
        }
    }
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
            description,
            tools,
            tool_details,
            subagents,
            handoffs,
            is_default,
        } = agent;
        Self {
            name,
            provider,
            model,
            description,
            tools,
            tool_details: tool_details.into_iter().map(Into::into).collect(),
            sub_agents: subagents,
            handoffs,
            is_default,
        }
    }
}

/// Lists the agents.
#[utoipa::path(get, path = "/agents", operation_id = "listAgents", tag = "agents", security(("key" = [])),
    responses((status = 200, body = AgentList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(State(api): State<Api>) -> Json<AgentList> {
    Json(agents(&api))
}

/// The configured agents.
pub(crate) fn agents(api: &Api) -> AgentList {
    AgentList {
        agents: api.app().agents().into_iter().map(Into::into).collect(),
    }
}
