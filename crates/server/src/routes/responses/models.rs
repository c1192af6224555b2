//! The values of a request's `model`: the agents, and the models that they can run with.

use crate::app::App;
use crate::body::PathOf;
use crate::error::openai::Worded;
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use interop::options::{RunOptions, RunToolChoice};
use interop::responses::RequestError;
use runtime::Run;
use serde_json::{Value, json};

/// The run for a request with these options.
///
/// If `model` names an agent, that agent runs as configured. If it names a model, the default agent runs
/// with that model and only the request's own tools: such a client does not expect calls of other tools.
/// Without `model`, the default agent runs.
pub(in crate::routes) fn run_of(app: &App, mut options: RunOptions) -> Result<Run, ApiError> {
    let mut agent = None;
    if let Some(name) = options.model.take() {
        if app.has_agent(&name) {
            agent = Some(name);
        } else if app.config().models.contains_key(&name) {
            options.model = Some(name);
            options.only_these_tools = true;
        } else {
            return Err(RequestError::model_not_found(&name).into());
        }
    }
    let must_call = match &options.tool_choice {
        Some(RunToolChoice::Required | RunToolChoice::Allowed { required: true, .. }) => true,
        Some(
            RunToolChoice::Auto
            | RunToolChoice::None
            | RunToolChoice::Function { .. }
            | RunToolChoice::Allowed { .. },
        )
        | None => false,
    };
    if must_call && options.only_these_tools && options.tools.is_empty() {
        let message = "/tool_choice: a call is required, and no tools are given.";
        return Err(RequestError::at("/tool_choice", "invalid_value", message).into());
    }
    let params = serde_json::to_value(options).map_err(runtime::RuntimeError::from)?;
    app.check_params(agent.as_deref(), Some(&params))
        .map_err(|error| super::refused::impossible(&error))?;
    Ok(Run {
        agent,
        params: Some(params),
        ..Run::default()
    })
}

/// The agents, and the models without an agent of their name.
fn all(app: &App) -> Vec<Value> {
    let created = app.opened_at().as_second();
    let shown = |id: &str, owner: &str| json!({"id": id, "object": "model", "created": created, "owned_by": owner});
    let agents = app.agents();
    let models = app.models().into_iter();
    let models = models.filter(|(name, _)| agents.iter().all(|agent| agent.name != *name));
    let models = models.map(|(name, provider)| shown(&name, &provider));
    let agents = agents.iter().map(|agent| shown(&agent.name, "loomline"));
    agents.chain(models).collect()
}

/// Lists the possible values of a request's `model`.
///
/// These are the agents and the configured models. An agent's name selects the agent as configured; a
/// model's name selects the model itself.
#[utoipa::path(get, path = "/v1/models", operation_id = "listModels", tag = "responses", security(("key" = [])),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(State(api): State<Api>) -> Json<Value> {
    Json(json!({"object": "list", "data": all(api.app())}))
}

/// Reads one of them.
#[utoipa::path(get, path = "/v1/models/{model}", operation_id = "readModel", tag = "responses", security(("key" = [])),
    params(("model" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    State(api): State<Api>,
    PathOf(model): PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    let found = all(api.app()).into_iter().find(|it| it["id"] == *model);
    found.map(Json).ok_or_else(|| {
        let unknown = Worded::from(RequestError::model_not_found(&model));
        ApiError::Worded(Box::new(Worded {
            status: StatusCode::NOT_FOUND,
            ..unknown
        }))
    })
}
