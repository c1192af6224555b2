//! Pending calls and their answers.

pub(super) mod ancestors;
mod submitted;

pub(in crate::routes) use submitted::SubmittedAnswers;

use super::events::EventRecord;
use super::messages::{AcceptedView, accepted_view, replayed, streamed, wanted_stream};
use super::page_query::{AtQuery, of_past};
use super::tree::TreeQuery;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::KeyedBody;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use interop::parts::ToolPart;
use runtime::{Pending, RuntimeError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use timeline::{ExecutionId, ItemType, NewItem, OpenKind, Payload, Seq};
use utoipa::ToSchema;

/// The pending calls of a thread.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingCalls {
    /// The calls, each before the pending calls of its sub-agent. While an execution runs, the thread's
    /// own calls are not listed.
    calls: Vec<PendingView>,
    /// The last event that the list covers.
    seq: u64,
}

/// A pending call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingView {
    /// The call's id.
    tool_call_id: String,
    /// The tool's name.
    tool_name: String,
    /// `approval`: waits for an approval. `external`: waits for a result. `others`: can't be answered
    /// yet, because an earlier call is pending. `child`: waits for its sub-agent, and continues when the
    /// sub-agent's calls are answered.
    kind: OpenKind,
    /// The arguments.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Payload>,
    /// The execution that ended with it.
    execution_id: ExecutionId,
    /// The key of the call's thread: this one, or that of a sub-agent.
    thread_key: String,
    /// The calls of sub-agents that led to it, outermost first; empty for the thread's own calls.
    path: Vec<PathView>,
}

impl PendingView {
    /// A description for people.
    pub(super) fn message(&self) -> String {
        let (name, call) = (&self.tool_name, &self.tool_call_id);
        let input = self.input.as_ref().map_or("", Payload::text);
        match self.kind {
            OpenKind::Approval => format!("[{name} {input} waits for approval: call {call}]"),
            OpenKind::External => format!("[{name} {input} waits for its result: call {call}]"),
            OpenKind::Others => format!("[{name} {input} comes after another call: call {call}]"),
            OpenKind::Child => format!("[{name} {input} waits for its sub-agent: call {call}]"),
        }
    }
}

/// A call on the path to another one.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PathView {
    /// The key of the call's thread.
    thread_key: String,
    /// The call's id.
    tool_call_id: String,
}

/// Answers to pending calls.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewAnswers {
    /// One answer for each call.
    #[schema(value_type = Vec<SubmittedAnswer>)]
    answers: Vec<Map<String, Value>>,
    /// The name of the answering person or program; the server stores it with the answer.
    actor: Option<String>,
    /// Whether the response streams the events that follow. `Accept: text/event-stream` does the same.
    #[serde(default)]
    stream: bool,
}

/// The answer to one call. An approval has `approved`, a result has `output`, a failure has `errorText`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what `SubmittedAnswers` reads")]
struct SubmittedAnswer {
    /// The id of the call.
    tool_call_id: String,
    /// The key of the thread that has the call: this one, or that of a sub-agent. Needed only if several
    /// threads have a call with this id.
    thread_key: Option<String>,
    /// Whether the tool may run.
    approved: Option<bool>,
    /// With `approved: true`: the arguments that replace those of the model.
    arguments: Option<Value>,
    /// With `approved: false`: the reason that the model reads.
    message: Option<String>,
    /// The result of a call that the client runs.
    output: Option<Value>,
    /// The error of a call that the client runs.
    error_text: Option<String>,
}

/// Lists the pending calls of a thread and of its sub-agents.
///
/// With `at`, the calls of sub-agents are those that waited when the thread began to wait for them.
#[utoipa::path(get, path = "/threads/{key}/pending", operation_id = "listPending", tag = "answers", security(("key" = [])), params(("key" = String, Path), AtQuery),
    responses((status = 200, body = PendingCalls), (status = "default", body = ErrorBody)))]
pub(crate) async fn pending(
    thread: ThreadKey,
    Query(query): Query<AtQuery>,
) -> Result<Json<PendingCalls>, ApiError> {
    Ok(Json(pending_calls(&thread, query).await?))
}

/// The pending calls of a thread and of its sub-agents, now or after an earlier event.
pub(crate) async fn pending_calls(
    thread: &ThreadKey,
    query: AtQuery,
) -> Result<PendingCalls, ApiError> {
    let (pending, seq) = match query.at.map(Seq) {
        Some(at) => (thread.pending_at(at).await.map_err(of_past)?, at),
        None => thread.pending().await?,
    };
    Ok(PendingCalls {
        calls: pending.into_iter().map(view).collect(),
        seq: seq.0,
    })
}

/// The pending calls that an execution ended with, on its thread and on those of its sub-agents; none if
/// they are no longer pending. Costs time proportional to their number.
pub(super) async fn left_by(
    thread: &ThreadKey,
    execution: &ExecutionId,
) -> Result<Option<Vec<Pending>>, RuntimeError> {
    let (pending, _) = thread.pending().await?;
    let is_own = |it: &Pending| it.path.is_empty() && it.execution_id == *execution;
    Ok(pending.iter().any(is_own).then_some(pending))
}

pub(super) fn view(pending: Pending) -> PendingView {
    let Pending {
        path,
        address: place,
        execution_id,
        call,
    } = pending;
    let tool = ToolPart::read(&call.part);
    let path = path.into_iter().map(|it| PathView {
        thread_key: it.key,
        tool_call_id: it.tool_call_id,
    });
    PendingView {
        thread_key: place.key,
        path: path.collect(),
        tool_name: tool
            .as_ref()
            .map(|tool| tool.tool_name().to_owned())
            .unwrap_or_default(),
        input: tool.and_then(|tool| tool.input),
        tool_call_id: call.tool_call_id,
        kind: call.kind,
        execution_id,
    }
}

/// Answers pending calls of the thread or of one of its sub-agents.
///
/// Approved calls run. When no call is pending, the agent continues, and then its parents. All answers
/// of one request must be for one thread. If one answer does not fit, the whole request is refused. A
/// repetition with the same `idempotency-key` gets the first answer.
#[utoipa::path(post, path = "/threads/{key}/answers", operation_id = "postAnswers", tag = "answers", security(("key" = [])),
    params(("key" = String, Path), TreeQuery, ("idempotency-key" = Option<String>, Header)), request_body = NewAnswers,
    responses((status = 202, body = AcceptedView), (status = 200, body = EventRecord, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(query): Query<TreeQuery>,
    headers: HeaderMap,
    KeyedBody(body, idempotency): KeyedBody<NewAnswers>,
) -> Result<Response, ApiError> {
    let token = idempotency.token("api")?;
    let given = SubmittedAnswers::read(&caller, body.answers, body.actor.as_deref(), "api")?;
    let open = wanted_stream(&api, &caller, &headers, body.stream)?;
    let answered = given.answer(&api, &thread, token).await?;
    let repeated = answered.accepted.repeated;
    let response = if let Some(open) = open {
        let (run, after) = answered.went_on(&thread).await?;
        streamed(&thread, run, after, query, open).await?
    } else {
        let view = accepted_view(&answered.target, answered.accepted);
        (StatusCode::ACCEPTED, Json(view)).into_response()
    };
    Ok(replayed(response, repeated))
}

/// The item of answers; its metadata names the answerer.
pub(super) fn item(id: String, content: Payload, metadata: Value) -> NewItem {
    NewItem {
        id: id.into(),
        item_type: ItemType::ActionResult,
        role: None,
        channel: None,
        content: Some(content),
        metadata: Some(metadata.into()),
    }
}
