//! Steps that workers answer: other processes that run the steps of an agent over HTTP.

use crate::auth::Caller;
use crate::body::{JsonBody, PathOf};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use runtime::{
    ExternalAnswer, ExternalError, ExternalSteps, LeaseRef, LeaseRequest, LeaseState, LeasedStep,
    RuntimeError, StepDelta, TenantId, ViewShare,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::time::Duration;
use timeline::{Payload, StepId, ThreadId};
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

/// Maximum time that a request waits for a step, in milliseconds.
const MAX_WAIT: u64 = 30_000;
/// Maximum number of agents in a request.
const MAX_AGENTS: usize = 100;
/// Maximum length of a worker's name, in bytes.
const MAX_WORKER: usize = 128;

/// The steps that a worker wants.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct WantedSteps {
    /// Only steps of these agents. Default: all agents with workers.
    agents: Option<Vec<String>>,
    /// How long the request waits for a step, in milliseconds. Default 0, maximum 30,000.
    #[schema(maximum = 30000)]
    wait_ms: u64,
    /// A name for the worker, which the server stores with the lease.
    worker: Option<String>,
}

/// A leased step.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeasedStepView {
    /// The id of the step.
    step_id: StepId,
    /// The id of the lease. Each further request for the step needs it.
    lease: String,
    /// How long the lease lasts without a heartbeat, in milliseconds.
    lease_ms: u64,
    /// The number of the attempt, from 1.
    attempt: u32,
    /// The agent.
    agent: String,
    /// The id of the thread.
    thread_id: ThreadId,
    /// The key of the thread.
    thread_key: String,
    /// The id of the execution.
    execution_id: String,
    /// The number of the step in the execution, from 0.
    iteration: u32,
    /// The messages for the model, the tools and the parameters.
    #[schema(value_type = StepRequest)]
    request: Payload,
}

/// The request for a worker.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what the runtime writes")]
pub(crate) struct StepRequest {
    /// The system prompt.
    system: Option<String>,
    /// The messages for the model, as messages of UPP.
    messages: Vec<Map<String, Value>>,
    /// The tools: `name`, `description` and the JSON Schema `parameters` of each.
    tools: Vec<Map<String, Value>>,
    /// `auto`, `none`, `required`, or an object with the name of a `tool`.
    tool_choice: Value,
    /// The parameters of the agent and of the run.
    params: Map<String, Value>,
    /// The JSON Schema of the answer, if it must have a structure.
    structure: Option<Value>,
}

/// A lease of a step.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeldLease {
    /// The id of the lease.
    lease: String,
}

/// The state of a lease.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaseView {
    /// `running`, or `cancelled` if nobody needs the answer: the worker can stop.
    state: &'static str,
    /// How long the lease lasts without another heartbeat, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
}

/// Pieces of an answer.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDeltas {
    /// The id of the lease.
    lease: String,
    /// The number of the request under this lease, ascending from 0. A repeated number is ignored.
    seq: u32,
    /// At most 256 pieces and 64 KiB of text.
    #[schema(value_type = Vec<TextDelta>)]
    deltas: Vec<StepDelta>,
}

/// A piece of text.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what the runtime reads")]
struct TextDelta {
    /// `output_text` or `reasoning`.
    r#type: String,
    /// The position of the part in the content of the answer.
    index: u32,
    /// The next piece.
    delta: String,
}

/// The answer of a worker.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewStepAnswer {
    /// The id of the lease.
    lease: String,
    /// The answer.
    #[schema(value_type = WorkerAnswer)]
    answer: ExternalAnswer,
}

/// The answer of a worker, with the fields that a reactor returns (EK §6).
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what the runtime reads")]
struct WorkerAnswer {
    /// A message of the assistant: `type` is `message`, `content` has parts of the types `output_text`,
    /// `reasoning`, `refusal` and `output_file`.
    assistant_event: Map<String, Value>,
    /// The tool calls. The server runs them.
    tool_calls: Option<Vec<WorkerCall>>,
    /// The messages that the worker sent to its model. Default: the messages of the leased step.
    messages_for_model: Option<Vec<Value>>,
    /// The usage metadata.
    usage: Option<WorkerUsage>,
    /// Why the model stopped: `end_turn`, `tool_use`, `max_tokens`, `content_filter`, or another word.
    stop_reason: Option<String>,
}

/// A tool call.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what the runtime reads")]
struct WorkerCall {
    /// The id of the call, unique in the answer.
    tool_call_id: String,
    /// The name of the tool.
    tool_name: String,
    /// The arguments.
    input: Option<Map<String, Value>>,
}

/// The usage metadata of an answer.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what the runtime reads")]
struct WorkerUsage {
    /// The provider of the model.
    provider: Option<String>,
    /// The model.
    model: Option<String>,
    /// Tokens of the prompt.
    input_tokens: Option<u64>,
    /// Tokens of the answer.
    output_tokens: Option<u64>,
    /// Tokens of the prompt that came from a cache.
    cache_read_tokens: Option<u64>,
    /// Tokens of the prompt that were written to a cache.
    cache_write_tokens: Option<u64>,
    /// Tokens of the answer that are reasoning.
    reasoning_tokens: Option<u64>,
    /// The duration of the model call in milliseconds. Default: the time since the lease.
    latency_ms: Option<u64>,
}

/// The failure of a step.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepFailure {
    /// The id of the lease.
    lease: String,
    /// The cause, for people. At most 4096 bytes.
    message: String,
}

fn api_error(error: ExternalError, base: &str) -> ApiError {
    match error {
        ExternalError::NotLeased => ApiError::LeaseEnded,
        ExternalError::Cancelled => ApiError::StepCancelled,
        ExternalError::Refused(refused) => {
            ApiError::field(format!("{base}{}", refused.pointer), refused.what)
        }
        ExternalError::View(refused) => RuntimeError::from(refused).into(),
        ExternalError::Store(error) => error.into(),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The steps of a tenant's stored threads and of ephemeral ones.
fn stores<'a>(api: &'a Api, tenant: &TenantId) -> [&'a ExternalSteps; 2] {
    let stored = api.runtime(tenant).external();
    [stored, api.app().ephemeral().external()]
}

impl WantedSteps {
    /// The wanted agents that have workers.
    fn agents(&self, api: &Api) -> Result<BTreeSet<String>, ApiError> {
        if self.wait_ms > MAX_WAIT {
            return Err(ApiError::field(
                "/waitMs",
                format!("expected at most {MAX_WAIT}"),
            ));
        }
        if self.worker.as_ref().is_some_and(|it| it.len() > MAX_WORKER) {
            let what = format!("expected at most {MAX_WORKER} bytes");
            return Err(ApiError::field("/worker", what));
        }
        let all = api.app().config().agents.iter();
        let with_workers = all.filter(|(_, agent)| agent.worker.is_some());
        let known: BTreeSet<String> = with_workers.map(|(name, _)| name.clone()).collect();
        let Some(wanted) = &self.agents else {
            return Ok(known);
        };
        if wanted.len() > MAX_AGENTS {
            let what = format!("expected at most {MAX_AGENTS} agents");
            return Err(ApiError::field("/agents", what));
        }
        if let Some(n) = wanted.iter().position(|name| !known.contains(name)) {
            let what = "no agent with workers has this name";
            return Err(ApiError::field(format!("/agents/{n}"), what));
        }
        Ok(wanted.iter().cloned().collect())
    }
}

/// Leases the oldest step that waits for a worker. Waits for one if there is none.
#[utoipa::path(post, path = "/steps/lease", operation_id = "leaseStep", tag = "steps", security(("key" = [])),
    request_body = WantedSteps,
    responses((status = 200, body = LeasedStepView), (status = 204, description = "No step waits for a worker."),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn lease(
    State(api): State<Api>,
    caller: Caller,
    JsonBody(wanted): JsonBody<WantedSteps>,
) -> Result<Response, ApiError> {
    let agents = wanted.agents(&api)?;
    let until = Instant::now() + Duration::from_millis(wanted.wait_ms);
    let tenant = &caller.tenant;
    let [stored, ephemeral] = stores(&api, tenant);
    let share = ViewShare::current();
    let reserve = |bytes| share.as_ref().map_or(Ok(()), |share| share.try_hold(bytes));
    let offers = [stored.offers(tenant), ephemeral.offers(tenant)];
    loop {
        let [first, second] = [offers[0].notified(), offers[1].notified()];
        for steps in [stored, ephemeral] {
            let request = LeaseRequest {
                agents: &agents,
                covers: &|key| caller.rights.cover(key),
                worker: wanted.worker.clone(),
                reserve: &reserve,
            };
            let leased = steps.lease(tenant, request).await;
            if let Some(step) = leased.map_err(|error| api_error(error, ""))? {
                return Ok(Json(LeasedStepView::from(step)).into_response());
            }
        }
        let poll = stored.poll().map(|poll| Instant::now() + poll);
        let next = poll.map_or(until, |poll| poll.min(until));
        if Instant::now() >= until {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        tokio::select! {
            () = first => {}
            () = second => {}
            () = sleep_until(next) => {}
            () = api.shutdown().cancelled() => return Ok(StatusCode::NO_CONTENT.into_response()),
            error = caller.ended() => return Err(error),
        }
    }
}

impl From<LeasedStep> for LeasedStepView {
    fn from(step: LeasedStep) -> Self {
        Self {
            step_id: step.step,
            lease: step.lease,
            lease_ms: milliseconds(step.lease_for),
            attempt: step.attempt,
            agent: step.agent,
            thread_id: step.thread,
            thread_key: step.key,
            execution_id: step.execution,
            iteration: step.iteration,
            request: step.request,
        }
    }
}

/// The store that has the step.
async fn store_of<'a>(
    api: &'a Api,
    caller: &Caller,
    step: &str,
) -> Result<&'a ExternalSteps, ApiError> {
    let [stored, ephemeral] = stores(api, &caller.tenant);
    let is_ephemeral = ephemeral.has(&caller.tenant, step).await;
    let is_ephemeral = is_ephemeral.map_err(|error| api_error(error, ""))?;
    Ok(if is_ephemeral { ephemeral } else { stored })
}

/// Prolongs the lease of a step. The response says whether the run still needs the answer.
#[utoipa::path(post, path = "/steps/{step}/heartbeat", operation_id = "heartbeatStep", tag = "steps", security(("key" = [])),
    params(("step" = String, Path)), request_body = HeldLease,
    responses((status = 200, body = LeaseView), (status = "default", body = ErrorBody)))]
pub(crate) async fn heartbeat(
    State(api): State<Api>,
    caller: Caller,
    PathOf(step): PathOf<String>,
    JsonBody(HeldLease { lease }): JsonBody<HeldLease>,
) -> Result<Json<LeaseView>, ApiError> {
    let at = LeaseRef {
        tenant: &caller.tenant,
        step: &step,
        lease: &lease,
        covers: &|key| caller.rights.cover(key),
    };
    let steps = store_of(&api, &caller, &step).await?;
    let state = steps.heartbeat(at).await;
    Ok(Json(match state.map_err(|error| api_error(error, ""))? {
        LeaseState::Running(lease) => LeaseView {
            state: "running",
            lease_ms: Some(milliseconds(lease)),
        },
        LeaseState::Cancelled => LeaseView {
            state: "cancelled",
            lease_ms: None,
        },
    }))
}

/// Streams pieces of the answer to the followers of the thread.
#[utoipa::path(post, path = "/steps/{step}/deltas", operation_id = "streamStep", tag = "steps", security(("key" = [])),
    params(("step" = String, Path)), request_body = NewDeltas,
    responses((status = 204), (status = "default", body = ErrorBody)))]
pub(crate) async fn stream(
    State(api): State<Api>,
    caller: Caller,
    PathOf(step): PathOf<String>,
    JsonBody(new): JsonBody<NewDeltas>,
) -> Result<StatusCode, ApiError> {
    let at = LeaseRef {
        tenant: &caller.tenant,
        step: &step,
        lease: &new.lease,
        covers: &|key| caller.rights.cover(key),
    };
    let steps = store_of(&api, &caller, &step).await?;
    let streamed = steps.stream(at, new.seq, &new.deltas).await;
    streamed.map_err(|error| api_error(error, ""))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers a step. A repeated request under the same lease changes nothing.
#[utoipa::path(post, path = "/steps/{step}/complete", operation_id = "completeStep", tag = "steps", security(("key" = [])),
    params(("step" = String, Path)), request_body = NewStepAnswer,
    responses((status = 204), (status = "default", body = ErrorBody)))]
pub(crate) async fn complete(
    State(api): State<Api>,
    caller: Caller,
    PathOf(step): PathOf<String>,
    JsonBody(new): JsonBody<NewStepAnswer>,
) -> Result<StatusCode, ApiError> {
    let at = LeaseRef {
        tenant: &caller.tenant,
        step: &step,
        lease: &new.lease,
        covers: &|key| caller.rights.cover(key),
    };
    let steps = store_of(&api, &caller, &step).await?;
    let completed = steps.complete(at, &new.answer).await;
    completed.map_err(|error| api_error(error, "/answer"))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Fails a step and its run.
#[utoipa::path(post, path = "/steps/{step}/fail", operation_id = "failStep", tag = "steps", security(("key" = [])),
    params(("step" = String, Path)), request_body = StepFailure,
    responses((status = 204), (status = "default", body = ErrorBody)))]
pub(crate) async fn fail(
    State(api): State<Api>,
    caller: Caller,
    PathOf(step): PathOf<String>,
    JsonBody(failure): JsonBody<StepFailure>,
) -> Result<StatusCode, ApiError> {
    let at = LeaseRef {
        tenant: &caller.tenant,
        step: &step,
        lease: &failure.lease,
        covers: &|key| caller.rights.cover(key),
    };
    let steps = store_of(&api, &caller, &step).await?;
    let failed = steps.fail(at, &failure.message).await;
    failed.map_err(|error| api_error(error, ""))?;
    Ok(StatusCode::NO_CONTENT)
}
