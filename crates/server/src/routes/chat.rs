//! What `useChat` of the AI SDK talks to: a chat is a thread, its id the thread's key.

mod answers;
mod begun;
mod nested;

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
use interop::ai_sdk::sse::write_event;
use interop::ai_sdk::{
    ChatRequest, ChatRequestError, ChatTrigger, StreamView, UserMessage, chunks, from_chat_request,
    to_ui_messages,
};
use nested::{Nested, Shown};
use runtime::{
    Below, Filter, Logged, Policy, React, Run, RuntimeError, StoreError, TenantId, Until,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use timeline::{ItemId, NewItem, Seq};
use utoipa::{IntoParams, ToSchema};

/// Why a client's stop ended a run.
const STOPPED: &str = "user_cancelled";
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
    /// What the stream shows of sub-agents, at any depth: `all` (the default) what they say so far as
    /// preliminary outputs of their calls, and each of their own chunks as transient `data-subagent`;
    /// `outputs` only the former; `none` neither.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    subagents: Shown,
}

/// The messages of a chat, as the AI SDK has them.
#[derive(Serialize, ToSchema)]
pub(crate) struct UiMessages {
    /// The messages.
    #[schema(value_type = Vec<Value>)]
    messages: Vec<Value>,
}

/// How a client wants its stream.
#[derive(Clone, Copy)]
struct Wanted {
    major: u8,
    subagents: Shown,
}

/// Shows one run as a UI message stream.
struct UiStream {
    run: RunEvents,
    view: StreamView,
    nested: Nested,
}

impl UiStream {
    fn new(trigger: ItemId, wanted: Wanted) -> Self {
        Self {
            run: RunEvents::of(trigger.clone()),
            view: StreamView::new(wanted.major).answering(trigger),
            nested: Nested::new(wanted.major, wanted.subagents),
        }
    }

    /// What follows goes on with this message.
    fn continuing(self, message_id: Option<String>) -> Self {
        Self {
            view: self.view.continuing(message_id),
            ..self
        }
    }

    /// The stream of what comes after an event.
    async fn response(
        self,
        api: &Api,
        tenant: &TenantId,
        key: &str,
        after: Seq,
        open: OpenStream,
    ) -> Result<Response, ApiError> {
        let (runtime, until) = (api.runtime(), Until::Forever);
        let mut response = if self.nested.is_wanted() {
            let tree = runtime.tree(tenant, key, after.into(), until).await?;
            sse::response(tree, self, open)
        } else {
            let follow = runtime.follow(tenant, key, after, until).await?;
            sse::response(follow, self, open)
        };
        response.headers_mut().insert(
            "x-vercel-ai-ui-message-stream",
            HeaderValue::from_static("v1"),
        );
        Ok(response)
    }
}

impl View<Below> for UiStream {
    fn write(&mut self, below: &Below, out: &mut String) -> ControlFlow<()> {
        if below.path.is_empty() {
            return self.write(&below.logged, out);
        }
        for chunk in self.nested.chunks(below) {
            // Before the run begins, what happens beneath is another run's.
            if self.run.has_begun() {
                write_event(&chunk.to_string(), out);
            }
        }
        ControlFlow::Continue(())
    }

    fn finish(&mut self, out: &mut String) {
        View::<Arc<Logged>>::finish(self, out);
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        View::<Arc<Logged>>::fail(self, error, out);
    }
}

impl View<Arc<Logged>> for UiStream {
    fn write(&mut self, logged: &Arc<Logged>, out: &mut String) -> ControlFlow<()> {
        for chunk in self.nested.taken_back(&logged.record) {
            write_event(&chunk.to_string(), out);
        }
        for chunk in chunks(&logged.record, &mut self.view) {
            write_event(&chunk.to_text(), out);
        }
        self.run.see(&logged.record.event).flow()
    }

    fn finish(&mut self, _: &mut String) {}

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        write_event(
            &json!({ "type": "error", "errorText": error.failure().message }).to_string(),
            out,
        );
        write_event("[DONE]", out);
    }
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
    let wanted = wanted(&query)?;
    let request = from_chat_request(&body)?;
    check_named_key(&caller, Some(&request.chat_id), "/id")?;
    let tenant = caller.tenant.clone();
    if request.last_user.is_none() && request.trigger == ChatTrigger::SubmitMessage {
        let given = answers::recorded(&api, &tenant, &request).await?;
        if !given.is_empty() {
            return answers::answered(&api, &caller, request.chat_id, given, wanted).await;
        }
    }
    let said = said(&request)?;
    let open = api.open_stream(&caller)?;
    let mut item = NewItem::user(said.id.as_str(), said.content.clone());
    item.channel = Some("web".into());
    item.metadata.clone_from(&said.metadata);
    let react = React {
        before: Vec::new(),
        rewind: None,
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
    let (key, after) = (&request.chat_id, accepted.after);
    let stream = UiStream::new(accepted.item_id, wanted);
    stream.response(&api, &tenant, key, after, open).await
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

fn wanted(query: &ChatQuery) -> Result<Wanted, ApiError> {
    let major = query.ai.unwrap_or(*MAJORS.end());
    let subagents = query.subagents;
    if MAJORS.contains(&major) {
        return Ok(Wanted { major, subagents });
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
    caller: Caller,
    PathOf(id): PathOf<String>,
    Query(query): Query<ChatQuery>,
) -> Result<Response, ApiError> {
    let wanted = wanted(&query)?;
    let tenant = &caller.tenant;
    // Clients ask on mount, also for a chat in which nothing was said yet.
    let (state, tail) = match api.runtime().state(tenant, &id).await {
        Err(RuntimeError::Store(StoreError::NotFound)) => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        found => found?,
    };
    let Some(active) = state.active() else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let open = api.open_stream(&caller)?;
    let begun = begun::begun(&api, tenant, &id, active, tail).await?;
    let message = if begun.is_answer {
        answers::message_id(&api, tenant, &id, &begun.execution).await?
    } else {
        None
    };
    let stream = UiStream::new(begun.trigger, wanted).continuing(message);
    stream.response(&api, tenant, &id, begun.after, open).await
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
