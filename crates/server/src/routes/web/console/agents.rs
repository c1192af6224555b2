//! The page of the configured agents.

use crate::auth::{Caller, Scope};
use crate::config::Config;
use crate::error::ApiError;
use crate::reactors::{AgentSummary, ToolSummary};
use crate::routes::web::pages::PageParts;
use crate::routes::web::reply::page;
use crate::state::Api;
use axum::extract::State;
use axum::response::Response;
use http::Uri;
use upp::Effect;
use web::{AgentEntry, AgentsPage, ConsoleSection, ToolEffect, ToolEntry};

/// The native route with the same data.
const API_PATH: &str = "/api/v1/agents";

/// Shows the agents.
pub(in crate::routes::web) async fn read(
    State(api): State<Api>,
    caller: Caller,
) -> Result<Response, ApiError> {
    let config = api.app().config();
    let agents = api.app().agents().into_iter();
    let agents: Vec<AgentEntry> = agents.map(|agent| entry(agent, config)).collect();
    let parts = PageParts::read(&api, &caller).await?;
    let shown = AgentsPage {
        frame: parts.console("Agents", ConsoleSection::Agents, Some(API_PATH)),
        agents: &agents,
        may_write: caller.check_scope(Scope::Write).is_ok(),
    };
    Ok(page(shown.html()))
}

fn entry(agent: AgentSummary, config: &Config) -> AgentEntry {
    let settings = config.agents.get(&agent.name);
    let remote = settings.and_then(|settings| settings.remote.as_ref());
    AgentEntry {
        // The whole URL may be confidential.
        remote: remote.map(|remote| host(&remote.url)),
        description: agent.description,
        provider: agent.provider,
        model: agent.model,
        is_default: agent.is_default,
        handoffs: agent.handoffs,
        subagents: agent.subagents,
        tools: agent.tool_details.into_iter().map(tool).collect(),
        name: agent.name,
    }
}

fn host(url: &str) -> String {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host);
    host.unwrap_or_default().to_owned()
}

fn tool(tool: ToolSummary) -> ToolEntry {
    ToolEntry {
        name: tool.name,
        description: tool.description,
        effect: match tool.effect {
            Effect::Pure => ToolEffect::Pure,
            Effect::Idempotent => ToolEffect::Idempotent,
            Effect::Reconcilable => ToolEffect::Reconcilable,
            Effect::Effect => ToolEffect::Each,
        },
        needs_approval: tool.needs_approval,
        is_external: tool.is_external,
    }
}
