//! Calls that wait for somebody, and the answers.

use super::messages::{AcceptedView, accepted_view, streamed, token};
use crate::body::{JsonBody, PathOf};
use crate::error::{ApiError, ErrorBody};
use crate::guard::Tenant;
use crate::sse;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode};
use interop::parts::ToolPart;
use runtime::AnswerRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use timeline::{ANSWER, Answer, ExecutionId, ItemType, NewItem, OpenCall, OpenKind, Payload};
use utoipa::ToSchema;

/// The most answers in one request.
const MAX_ANSWERS: usize = 256;
/// The longest name of who answers, in bytes.
const MAX_ACTOR_BYTES: usize = 255;

/// What a thread waits for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingCalls {
    /// The calls, in order; none while an execution runs.
    calls: Vec<PendingView>,
    /// The last event of the thread.
    seq: u64,
}

/// A call that waits for an answer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingView {
    /// The call's id.
    tool_call_id: String,
    /// The tool's name.
    tool_name: String,
    /// `approval`: may the tool run? `external`: what is the result? `others`: it comes after
    /// another call that waits, and can't be answered yet.
    #[schema(value_type = String)]
    kind: OpenKind,
    /// The arguments.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Payload>,
    /// The execution that left it.
    #[schema(value_type = String)]
    execution_id: ExecutionId,
}

/// Answers to calls that wait.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewAnswers {
    /// One for each call: `{"toolCallId": …}` with `"approved": true` and perhaps `"arguments"`,
    /// or `"approved": false` and perhaps `"message"`, or `"output"`, or `"errorText"`.
    #[schema(value_type = Vec<Object>)]
    answers: Vec<Map<String, Value>>,
    /// Who answers; kept with the answer.
    actor: Option<String>,
    /// Whether the events of what follows are streamed; the same as `Accept: text/event-stream`.
    #[serde(default)]
    stream: bool,
}

/// Lists the calls of a thread that wait for an answer.
#[utoipa::path(get, path = "/threads/{key}/pending", operation_id = "listPending", tag = "answers", security(("key" = [])), params(("key" = String, Path)),
    responses((status = 200, body = PendingCalls), (status = "default", body = ErrorBody)))]
pub(crate) async fn pending(
    State(api): State<Api>,
    Tenant(tenant): Tenant,
    PathOf(key): PathOf<String>,
) -> Result<Json<PendingCalls>, ApiError> {
    let (open, seq) = api.runtime().open_calls(&tenant, &key).await?;
    let calls = open.into_iter().flat_map(|open| {
        let execution = open.execution.id;
        let calls = open.calls.into_iter();
        calls.map(move |call| view(call, execution.clone()))
    });
    Ok(Json(PendingCalls {
        calls: calls.collect(),
        seq: seq.0,
    }))
}

fn view(call: OpenCall, execution_id: ExecutionId) -> PendingView {
    let tool = ToolPart::read(&call.part);
    PendingView {
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

/// Answers calls that wait. What is allowed runs, and once nothing waits the agent goes on.
///
/// An answer that does not fit is refused, and then none of the request is taken. With
/// `idempotency-key` a repetition gets the first answer again.
#[utoipa::path(post, path = "/threads/{key}/answers", operation_id = "postAnswers", tag = "answers", security(("key" = [])),
    params(("key" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = NewAnswers,
    responses((status = 202, body = AcceptedView), (status = 200, body = String, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(api): State<Api>,
    Tenant(tenant): Tenant,
    PathOf(key): PathOf<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<NewAnswers>,
) -> Result<Response, ApiError> {
    let token = token(&headers)?;
    let content = content(body.answers)?;
    if body
        .actor
        .as_ref()
        .is_some_and(|actor| actor.len() > MAX_ACTOR_BYTES)
    {
        let what = format!("an actor has at most {MAX_ACTOR_BYTES} bytes");
        return Err(ApiError::field("/actor", what));
    }
    let open = (body.stream || sse::wants_stream(&headers))
        .then(|| api.open_stream())
        .transpose()?;
    let metadata = json!({"actor": body.actor, "tenant": tenant.as_str(), "via": "api"});
    let request = AnswerRequest {
        tenant: tenant.clone(),
        key: key.clone(),
        item: item(api.runtime().mint(), content, metadata),
        token,
    };
    let accepted = api.runtime().answer(request).await?;
    let repeated = accepted.repeated;
    let mut response = match open {
        Some(open) => streamed(&api, &tenant, &key, accepted, open).await?,
        None => (StatusCode::ACCEPTED, Json(accepted_view(key, accepted))).into_response(),
    };
    if repeated {
        response
            .headers_mut()
            .insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// The item of answers: who answered stands in its metadata.
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

fn content(answers: Vec<Map<String, Value>>) -> Result<Payload, ApiError> {
    if answers.is_empty() || answers.len() > MAX_ANSWERS {
        let what = format!("there are 1 to {MAX_ANSWERS} answers");
        return Err(ApiError::field("/answers", what));
    }
    let parts = answers.into_iter().map(|mut answer| {
        answer.insert("type".to_owned(), ANSWER.into());
        Value::Object(answer)
    });
    let content = Payload::from(Value::Array(parts.collect()));
    Answer::read(Some(&content)).map_err(|error| ApiError::content("/answers", &error))?;
    Ok(content)
}
