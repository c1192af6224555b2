//! What `useChat` of the AI SDK talks to: a chat is a thread, its id the thread's key.

mod answers;

use super::check_named_key;
use super::threads::CancelledView;
use crate::auth::Caller;
use crate::body::{JsonBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::guard::Tenant;
use crate::run_events::RunEvents;
use crate::sse::{self, View};
use crate::state::{Api, OpenStream};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use interop::ai_sdk::{
    ChatRequest, ChatRequestError, ChatTrigger, StreamView, UserMessage, chunks, from_chat_request,
    to_ui_messages,
};
use runtime::{
    Filter, Follow, Logged, Policy, React, Run, RuntimeError, StoreError, TenantId, Until,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use timeline::{Event, ExecutionId, ItemId, ItemType, NewItem, Seq};
use utoipa::{IntoParams, ToSchema};

/// Why a client's stop ended a run.
const STOPPED: &str = "user_cancelled";
/// How many records are read at once to find where a run began.
const PAGE: u64 = 512;
/// The versions of `ai` whose streams are known.
const MAJORS: std::ops::RangeInclusive<u8> = 5..=7;

/// Who answers, and whom.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChatQuery {
    /// The agent that answers; the default one when absent.
    agent: Option<String>,
    /// The client's major version of `ai`, 5 to 7; 7 when absent.
    ai: Option<u8>,
}

/// The messages of a chat, as the AI SDK has them.
#[derive(Serialize, ToSchema)]
pub(crate) struct UiMessages {
    /// The messages.
    #[schema(value_type = Vec<Value>)]
    messages: Vec<Value>,
}

/// Shows one run as a UI message stream.
struct UiStream {
    run: RunEvents,
    view: StreamView,
}

impl UiStream {
    fn new(trigger: ItemId, major: u8) -> Self {
        Self {
            run: RunEvents::of(trigger.clone()),
            view: StreamView::new(major).answering(trigger),
        }
    }

    /// What follows goes on with this message.
    fn continuing(self, message_id: Option<String>) -> Self {
        Self {
            view: self.view.continuing(message_id),
            ..self
        }
    }

    fn response(self, follow: Follow, open: OpenStream) -> Response {
        let mut response = sse::response(follow, self, open);
        response.headers_mut().insert(
            "x-vercel-ai-ui-message-stream",
            HeaderValue::from_static("v1"),
        );
        response
    }
}

impl View for UiStream {
    fn write(&mut self, logged: &Logged, out: &mut String) -> ControlFlow<()> {
        for chunk in chunks(&logged.record, &mut self.view) {
            data_frame(&chunk.to_text(), out);
        }
        self.run.see(&logged.record.event).flow()
    }

    fn finish(&mut self, _: &mut String) {}

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        data_frame(
            &json!({ "type": "error", "errorText": error.failure().message }).to_string(),
            out,
        );
        data_frame("[DONE]", out);
    }
}

fn data_frame(data: &str, out: &mut String) {
    out.push_str("data: ");
    out.push_str(data);
    out.push_str("\n\n");
}

impl From<ChatRequestError> for ApiError {
    fn from(error: ChatRequestError) -> Self {
        let what = error.to_string();
        let pointer = match error {
            ChatRequestError::ChatId { .. } => "/id".to_owned(),
            ChatRequestError::Expected { pointer, .. }
            | ChatRequestError::TooLarge { pointer, .. }
            | ChatRequestError::Part { pointer, .. }
            | ChatRequestError::Url { pointer } => pointer,
        };
        Self::field(pointer, what)
    }
}

/// Says something in a chat, and streams the answer.
///
/// Takes what `DefaultChatTransport` sends. Only the last message is read, for the server keeps the
/// history; its id makes a repetition harmless. Where the last message is the agent's, answers in it
/// are taken to what the agent has asked. The answer is written whether or not anyone waits.
#[utoipa::path(post, path = "/api/chat", operation_id = "chatPost", tag = "ai-sdk", security(("key" = [])), params(ChatQuery), request_body = Object,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ChatQuery>,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let major = major(&query)?;
    let request = from_chat_request(&body)?;
    check_named_key(&caller, Some(&request.chat_id), "/id")?;
    let tenant = caller.tenant;
    if request.last_user.is_none() && request.trigger == ChatTrigger::SubmitMessage {
        let given = answers::recorded(&api, &tenant, &request).await?;
        if !given.is_empty() {
            return answers::answered(&api, tenant, request.chat_id, given, major).await;
        }
    }
    let said = said(&request)?;
    let open = api.open_stream()?;
    let mut item = NewItem::user(said.id.as_str(), said.content.clone());
    item.channel = Some("web".into());
    item.metadata.clone_from(&said.metadata);
    let react = React {
        tenant: tenant.clone(),
        key: request.chat_id.clone(),
        item,
        run: Run {
            agent: query.agent,
            ..Run::default()
        },
        policy: Policy::Queue,
        token: Some(format!("chat:{}", said.id)),
    };
    let accepted = api.runtime().react(react).await?;
    let follow = api
        .runtime()
        .follow(&tenant, &request.chat_id, accepted.after, Until::Forever)
        .await?;
    Ok(UiStream::new(accepted.item_id, major).response(follow, open))
}

/// What the user has just said.
fn said(request: &ChatRequest) -> Result<&UserMessage, ApiError> {
    if request.trigger == ChatTrigger::RegenerateMessage {
        return Err(ApiError::RegenerateUnsupported);
    }
    let place = request.n_messages.saturating_sub(1);
    let Some(said) = &request.last_user else {
        return Err(ApiError::field(
            format!("/messages/{place}"),
            "the last message is the user's, and there is one",
        ));
    };
    if said.content.text() == "[]" {
        return Err(ApiError::field(
            format!("/messages/{place}/parts"),
            "a message has at least one part",
        ));
    }
    // The client names the message only if it has changed one that was sent before.
    if request.message_id.as_ref() == Some(&said.id) {
        return Err(ApiError::EditUnsupported);
    }
    Ok(said)
}

fn major(query: &ChatQuery) -> Result<u8, ApiError> {
    let major = query.ai.unwrap_or(*MAJORS.end());
    if MAJORS.contains(&major) {
        return Ok(major);
    }
    Err(ApiError::InvalidQuery {
        what: format!("ai is {major}, expected 5 to 7"),
    })
}

/// Streams the running answer of a chat from its first event; 204 if none runs.
#[utoipa::path(get, path = "/api/chat/{id}/stream", operation_id = "chatResume", tag = "ai-sdk", security(("key" = [])),
    params(("id" = String, Path), ChatQuery),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 204, description = "None runs"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn resume(
    State(api): State<Api>,
    Tenant(tenant): Tenant,
    PathOf(id): PathOf<String>,
    Query(query): Query<ChatQuery>,
) -> Result<Response, ApiError> {
    let major = major(&query)?;
    // Clients ask on mount, also for a chat in which nothing was said yet.
    let (state, tail) = match api.runtime().state(&tenant, &id).await {
        Err(RuntimeError::Store(StoreError::NotFound)) => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        found => found?,
    };
    let Some(active) = state.active() else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let open = api.open_stream()?;
    let execution = &active.execution;
    let after = begun_after(&api, &tenant, &id, &execution.id, tail).await?;
    let follow = api
        .runtime()
        .follow(&tenant, &id, after, Until::Execution(execution.id.clone()))
        .await?;
    let answers = active
        .trigger
        .as_ref()
        .is_some_and(|item| item.item_type == ItemType::ActionResult);
    let message = if answers {
        answers::message_id(&api, &tenant, &id, &execution.id).await?
    } else {
        None
    };
    let stream = UiStream::new(execution.trigger_item_id.clone(), major).continuing(message);
    Ok(stream.response(follow, open))
}

/// The event before an execution's first. It is searched from the end, so that it costs what the
/// execution has written.
async fn begun_after(
    api: &Api,
    tenant: &TenantId,
    key: &str,
    execution: &ExecutionId,
    tail: Seq,
) -> Result<Seq, ApiError> {
    let mut end = tail.0;
    while end > 0 {
        let after = end.saturating_sub(PAGE);
        let page = api
            .runtime()
            .read(
                tenant,
                key,
                Seq(after),
                usize::try_from(end - after).unwrap_or(usize::MAX),
            )
            .await?;
        let begins = |logged: &&Logged| matches!(&logged.record.event, Event::ExecutionCreated { execution: begun } if begun.id == *execution);
        if let Some(found) = page.iter().find(begins) {
            return Ok(Seq(found.record.seq.0.saturating_sub(1)));
        }
        end = after;
    }
    Ok(Seq::ZERO)
}

/// Reads the messages of a chat; the answer that is being written is not among them.
#[utoipa::path(get, path = "/api/chat/{id}/messages", operation_id = "chatMessages", tag = "ai-sdk", security(("key" = [])), params(("id" = String, Path)),
    responses((status = 200, body = UiMessages), (status = "default", body = ErrorBody)))]
pub(crate) async fn messages(
    State(api): State<Api>,
    Tenant(tenant): Tenant,
    PathOf(id): PathOf<String>,
) -> Result<Json<UiMessages>, ApiError> {
    // With the chunks: an answer that was cut off keeps what it had said.
    let transcript = api.runtime().transcript(&tenant, &id, Filter::All).await?;
    Ok(Json(UiMessages {
        messages: to_ui_messages(&transcript).value,
    }))
}

/// Stops the running answer of a chat.
#[utoipa::path(post, path = "/api/chat/{id}/stop", operation_id = "chatStop", tag = "ai-sdk", security(("key" = [])), params(("id" = String, Path)),
    responses((status = 200, body = CancelledView), (status = "default", body = ErrorBody)))]
pub(crate) async fn stop(
    State(api): State<Api>,
    Tenant(tenant): Tenant,
    PathOf(id): PathOf<String>,
) -> Result<Json<CancelledView>, ApiError> {
    let cancelled = api.runtime().cancel(&tenant, &id, None, STOPPED).await?;
    Ok(Json(cancelled.into()))
}
