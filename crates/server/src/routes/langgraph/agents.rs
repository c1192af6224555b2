//! The configured agents, as assistants and as agents.

use super::object;
use crate::auth::Caller;
use crate::body::{OptionalBody, PathOf};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use interop::langgraph::{Agent, AgentSearch, ErrorKind, RequestError};
use serde_json::Value;

/// The agents, by name.
fn all(api: &Api) -> Vec<Agent> {
    let agents = api.app().agents().into_iter();
    let agents = agents.map(|agent| Agent {
        name: agent.name,
        model: agent.model,
        tools: agent.tools,
        is_default: agent.is_default,
    });
    agents.collect()
}

fn find(api: &Api, id: &str) -> Result<Agent, ApiError> {
    let agent = all(api).into_iter().find(|agent| agent.name == id);
    agent.ok_or_else(|| RequestError::no_agent(id).into())
}

fn search(api: &Api, body: Value, shown: impl Fn(&Agent) -> Value) -> Result<Response, ApiError> {
    let asked = AgentSearch::read(&object(body))?;
    let found: Vec<Agent> = all(api).into_iter().filter(|it| asked.finds(it)).collect();
    let end = asked.offset.saturating_add(asked.limit);
    let next = (found.len() > end).then_some(end);
    let page = found.iter().skip(asked.offset).take(asked.limit);
    let page: Vec<Value> = page.map(|agent| asked.select.of(shown(agent))).collect();
    Ok((super::search::pagination(found.len(), next), Json(page)).into_response())
}

/// Searches the configured agents, as assistants.
#[utoipa::path(post, path = "/assistants/search", operation_id = "langgraphSearchAssistants", tag = "langgraph", security(("key" = [])),
    request_body = Option<Object>, responses((status = 200, body = Vec<Object>), (status = "default", body = ErrorBody)))]
pub(super) async fn search_assistants(
    State(api): State<Api>,
    _: Caller,
    OptionalBody(body): OptionalBody<Value>,
) -> Result<Response, ApiError> {
    search(&api, body, Agent::assistant)
}

/// Searches the configured agents.
#[utoipa::path(post, path = "/agents/search", operation_id = "agentProtocolSearchAgents", tag = "langgraph", security(("key" = [])),
    request_body = Option<Object>, responses((status = 200, body = Vec<Object>), (status = "default", body = ErrorBody)))]
pub(super) async fn search_agents(
    State(api): State<Api>,
    _: Caller,
    OptionalBody(body): OptionalBody<Value>,
) -> Result<Response, ApiError> {
    search(&api, body, Agent::agent)
}

/// Counts the configured agents.
#[utoipa::path(post, path = "/assistants/count", operation_id = "langgraphCountAssistants", tag = "langgraph", security(("key" = [])),
    request_body = Option<Object>, responses((status = 200, body = usize, content_type = "application/json"), (status = "default", body = ErrorBody)))]
pub(super) async fn count(
    State(api): State<Api>,
    _: Caller,
    OptionalBody(body): OptionalBody<Value>,
) -> Result<Json<usize>, ApiError> {
    let asked = AgentSearch::read(&object(body))?;
    let found = all(&api).into_iter().filter(|agent| asked.finds(agent));
    Ok(Json(found.count()))
}

/// Reads a configured agent as an assistant. Its id is its name.
#[utoipa::path(get, path = "/assistants/{assistant_id}", operation_id = "langgraphReadAssistant", tag = "langgraph", security(("key" = [])),
    params(("assistant_id" = String, Path)), responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read_assistant(
    State(api): State<Api>,
    _: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(find(&api, &id)?.assistant()))
}

/// Reads a configured agent.
#[utoipa::path(get, path = "/agents/{agent_id}", operation_id = "agentProtocolReadAgent", tag = "langgraph", security(("key" = [])),
    params(("agent_id" = String, Path)), responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read_agent(
    State(api): State<Api>,
    _: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(find(&api, &id)?.agent()))
}

/// Reads the JSON Schemas of an agent's input and output.
#[utoipa::path(get, path = "/assistants/{assistant_id}/schemas", operation_id = "langgraphAssistantSchemas", tag = "langgraph", security(("key" = [])),
    params(("assistant_id" = String, Path)), responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn assistant_schemas(
    State(api): State<Api>,
    _: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(find(&api, &id)?.schemas("graph_id")))
}

/// Reads the JSON Schemas of an agent's input and output.
#[utoipa::path(get, path = "/agents/{agent_id}/schemas", operation_id = "agentProtocolAgentSchemas", tag = "langgraph", security(("key" = [])),
    params(("agent_id" = String, Path)), responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn agent_schemas(
    State(api): State<Api>,
    _: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(find(&api, &id)?.schemas("agent_id")))
}

/// Reads an agent's graph: the agent and its tools.
#[utoipa::path(get, path = "/assistants/{assistant_id}/graph", operation_id = "langgraphAssistantGraph", tag = "langgraph", security(("key" = [])),
    params(("assistant_id" = String, Path)), responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn graph(
    State(api): State<Api>,
    _: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(find(&api, &id)?.graph()))
}

fn configured() -> ApiError {
    let what = "assistants are the agents of the server's configuration: they are made, changed and deleted there";
    RequestError::new(ErrorKind::NotAllowed, what).into()
}

/// Refuses: agents are configured.
#[utoipa::path(post, path = "/assistants", operation_id = "langgraphCreateAssistant", tag = "langgraph", security(("key" = [])),
    request_body = Option<Object>, responses((status = "default", body = ErrorBody)))]
pub(super) async fn create(_: Caller, _: OptionalBody<Value>) -> ApiError {
    configured()
}

/// Refuses: agents are configured.
#[utoipa::path(patch, path = "/assistants/{assistant_id}", operation_id = "langgraphChangeAssistant", tag = "langgraph", security(("key" = [])),
    params(("assistant_id" = String, Path)), request_body = Option<Object>, responses((status = "default", body = ErrorBody)))]
pub(super) async fn change(
    State(api): State<Api>,
    _: Caller,
    PathOf(id): PathOf<String>,
    _: OptionalBody<Value>,
) -> ApiError {
    find(&api, &id).err().unwrap_or_else(configured)
}

/// Refuses: agents are configured.
#[utoipa::path(delete, path = "/assistants/{assistant_id}", operation_id = "langgraphDeleteAssistant", tag = "langgraph", security(("key" = [])),
    params(("assistant_id" = String, Path)), responses((status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    _: Caller,
    PathOf(id): PathOf<String>,
) -> ApiError {
    find(&api, &id).err().unwrap_or_else(configured)
}
