//! Calls that wait for somebody, and the answers.

pub(super) mod above;

use super::messages::{AcceptedView, accepted_view, replayed, streamed, token};
use super::tree::TreeQuery;
use crate::auth::Caller;
use crate::body::{JsonBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::guard::Tenant;
use crate::run_events::RunEvents;
use crate::sse;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use interop::parts::ToolPart;
use runtime::{Addressed, AnswerRequest, Pending, TenantId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use timeline::{ANSWER, Answer, ExecutionId, ItemType, NewItem, OpenKind, Payload};
use utoipa::ToSchema;

/// The most answers in one request.
const MAX_ANSWERS: usize = 256;
/// The longest name of who answers, in bytes.
const MAX_ACTOR_BYTES: usize = 255;

/// What a thread waits for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingCalls {
    /// The calls, each before those that its sub-agent asks. While an execution runs the thread
    /// itself asks nothing, but its sub-agents may.
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
    /// another call that waits, and can't be answered yet. `child`: its sub-agent waits, and goes on
    /// when what that asks is answered.
    #[schema(value_type = String)]
    kind: OpenKind,
    /// The arguments.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Payload>,
    /// The execution that left it.
    #[schema(value_type = String)]
    execution_id: ExecutionId,
    /// The key of the thread that has the call: this one, or that of a sub-agent.
    thread_key: String,
    /// The calls whose sub-agents led to it, this thread's own first; none for its own calls.
    path: Vec<PathView>,
}

/// A call on the way to another one.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PathView {
    /// The key of the thread that has the call.
    thread_key: String,
    /// The call's id.
    tool_call_id: String,
}

/// Answers to calls that wait.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewAnswers {
    /// One for each call: `{"toolCallId": …}` with `"approved": true` and perhaps `"arguments"`,
    /// or `"approved": false` and perhaps `"message"`, or `"output"`, or `"errorText"`. `"threadKey"`
    /// names the thread that has the call, which may be that of a sub-agent; it is found by the call
    /// where it is absent and only one has it.
    #[schema(value_type = Vec<Object>)]
    answers: Vec<Map<String, Value>>,
    /// Who answers; kept with the answer.
    actor: Option<String>,
    /// Whether the events of what follows are streamed; the same as `Accept: text/event-stream`.
    #[serde(default)]
    stream: bool,
}

/// Lists the calls that wait for an answer, of a thread and of the sub-agents beneath it.
#[utoipa::path(get, path = "/threads/{key}/pending", operation_id = "listPending", tag = "answers", security(("key" = [])), params(("key" = String, Path)),
    responses((status = 200, body = PendingCalls), (status = "default", body = ErrorBody)))]
pub(crate) async fn pending(
    State(api): State<Api>,
    Tenant(tenant): Tenant,
    PathOf(key): PathOf<String>,
) -> Result<Json<PendingCalls>, ApiError> {
    let (pending, seq) = api.runtime().pending(&tenant, &key).await?;
    Ok(Json(PendingCalls {
        calls: pending.into_iter().map(view).collect(),
        seq: seq.0,
    }))
}

fn view(pending: Pending) -> PendingView {
    let Pending {
        path,
        place,
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

/// Answers calls that wait, of the thread or of one sub-agent beneath it. What is allowed runs, and
/// once nothing waits the agent goes on, and those above it with it.
///
/// The answers of one request are for calls of one thread. An answer that does not fit is refused,
/// and then none of the request is taken. With
/// `idempotency-key` a repetition gets the first answer again.
#[utoipa::path(post, path = "/threads/{key}/answers", operation_id = "postAnswers", tag = "answers", security(("key" = [])),
    params(("key" = String, Path), TreeQuery, ("idempotency-key" = Option<String>, Header)), request_body = NewAnswers,
    responses((status = 202, body = AcceptedView), (status = 200, body = String, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(api): State<Api>,
    caller: Caller,
    PathOf(key): PathOf<String>,
    Query(query): Query<TreeQuery>,
    headers: HeaderMap,
    JsonBody(mut body): JsonBody<NewAnswers>,
) -> Result<Response, ApiError> {
    let token = token(&headers)?;
    let named = named(&mut body.answers)?;
    let content = content(body.answers)?;
    check_actor(&caller, body.actor.as_deref())?;
    let open = (body.stream || sse::wants_stream(&headers))
        .then(|| api.open_stream(&caller))
        .transpose()?;
    let tenant = caller.tenant;
    let metadata = json!({"actor": body.actor, "tenant": tenant.as_str(), "via": "api"});
    let asked = (&content, named.as_slice(), token.as_deref());
    let target = target(&api, &tenant, &key, asked).await?;
    // A sub-agent is answered, and what was asked goes on with it: what runs by now, or what runs next.
    let (state, before) = api.runtime().state(&tenant, &key).await?;
    let running = state.active().map(|active| active.execution.id.clone());
    let request = AnswerRequest {
        run: None,
        tenant: tenant.clone(),
        key: target.clone(),
        item: item(api.runtime().mint(), content, metadata),
        token,
    };
    let accepted = api.runtime().answer(request).await?;
    let repeated = accepted.repeated;
    let response = match open {
        Some(open) => {
            let (run, after) = if target == key {
                (RunEvents::of(accepted.item_id), accepted.after)
            } else if repeated {
                above::went_on(&api, &tenant, &key, &target, &accepted).await?
            } else {
                (RunEvents::running(running), before)
            };
            streamed(&api, &tenant, &key, run, after, query, open).await?
        }
        None => (StatusCode::ACCEPTED, Json(accepted_view(target, accepted))).into_response(),
    };
    Ok(replayed(response, repeated))
}

/// Refuses who can't have answered, or whom the key may not speak as.
fn check_actor(caller: &Caller, actor: Option<&str>) -> Result<(), ApiError> {
    let Some(actor) = actor else { return Ok(()) };
    if actor.len() > MAX_ACTOR_BYTES {
        let what = format!("an actor has at most {MAX_ACTOR_BYTES} bytes");
        return Err(ApiError::field("/actor", what));
    }
    caller.check_actor(actor, "/actor")
}

/// Takes from each answer the key of the thread that has its call.
fn named(answers: &mut [Map<String, Value>]) -> Result<Vec<Option<String>>, ApiError> {
    let named =
        (0..).zip(answers).map(
            |(at, answer): (usize, _)| match answer.remove("threadKey") {
                None => Ok(None),
                Some(Value::String(key)) => Ok(Some(key)),
                Some(_) => {
                    let pointer = format!("/answers/{at}/threadKey");
                    Err(ApiError::field(pointer, "a thread's key is a string"))
                }
            },
        );
    named.collect()
}

/// The key of the thread that the answers are for.
async fn target(
    api: &Api,
    tenant: &TenantId,
    key: &str,
    (content, named, token): (&Payload, &[Option<String>], Option<&str>),
) -> Result<String, ApiError> {
    let answers =
        Answer::read(Some(content)).map_err(|error| ApiError::content("/answers", &error))?;
    let mut target = None;
    for (at, (answer, named)) in answers.iter().zip(named).enumerate() {
        let pointer = format!("/answers/{at}/threadKey");
        let call = answer.tool_call_id.as_str();
        let named = named.as_deref();
        let found = api.runtime().addressed(tenant, key, call, named, token);
        let found = match found.await? {
            Addressed::To(found) => found,
            Addressed::Ambiguous => {
                let what = "several sub-agents have a call of this id: name the thread";
                return Err(ApiError::field(pointer, what));
            }
            Addressed::Elsewhere => {
                let what = "this thread is not one of a sub-agent beneath the other";
                return Err(ApiError::field(pointer, what));
            }
        };
        match &target {
            None => target = Some(found),
            Some(known) if *known == found => {}
            Some(_) => {
                let what = "the answers of one request are for calls of one thread";
                return Err(ApiError::field(pointer, what));
            }
        }
    }
    Ok(target.unwrap_or_else(|| key.to_owned()))
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
