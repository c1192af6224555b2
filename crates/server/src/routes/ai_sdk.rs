//! The endpoints for `useChat` of the AI SDK: a chat is a thread, its id the thread's key.

mod answers;
mod lookup;
mod message_start;
mod nested;
mod routes;
mod start;
mod stream;

use super::page_query::PieceQuery;
use super::threads::CancelledView;
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::Query;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::KeyedBody;
use crate::state::Api;
use crate::threads::{ThreadKey, stale};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use interop::ai_sdk::{
    ChatRequestError, SentMessage, close_open_calls, from_chat_request, subagent, to_ui_messages,
};
use interop::run::RunSelector;
use lookup::Chat;
use nested::SubagentView;
pub(crate) use routes::PROTOCOL;
use runtime::{Filter, ReactRequest, Run, RuntimeError, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use stream::{UiStream, Wanted, questions};
use timeline::{Entry, Interruption, ItemId, NewItem, StepId, Transcript};
use utoipa::{IntoParams, ToSchema};

/// The supported major versions of `ai`.
const MAJORS: std::ops::RangeInclusive<u8> = 5..=7;

/// The agent that answers, and the form of its stream.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChatQuery {
    /// The agent that answers. Default: the configuration's default agent.
    agent: Option<String>,
    /// The client's major version of `ai`, 5 to 7; 7 when absent.
    ai: Option<u8>,
    /// How much the stream shows of sub-agents, at any depth. `all` (the default): their text so far as
    /// preliminary outputs of their calls, and their own chunks as transient `data-subagent`; `outputs`:
    /// only the preliminary outputs; `none`: neither.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    subagents: SubagentView,
    /// Whether the stream has all chunk types of Ekairos Thread: also `data-context-id`,
    /// `data-context-substate` and `data-thread-ping`, as transient data.
    #[serde(default)]
    ek: bool,
}

/// How a stream is resumed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResumeQuery {
    /// As for a message, but without effect: the run keeps its agent.
    agent: Option<String>,
    /// As of a message.
    ai: Option<u8>,
    /// As of a message.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    subagents: SubagentView,
    /// As of a message.
    #[serde(default)]
    ek: bool,
    /// Number of the stream's first chunks to leave out, because the client has them already. Text and
    /// questions of sub-agents are not counted.
    #[serde(rename = "startIndex")]
    #[param(rename = "startIndex")]
    start_index: Option<usize>,
}

impl ResumeQuery {
    fn into_chat(self) -> (ChatQuery, usize) {
        let query = ChatQuery {
            agent: self.agent,
            ai: self.ai,
            subagents: self.subagents,
            ek: self.ek,
        };
        (query, self.start_index.unwrap_or_default())
    }
}

/// The page of a chat to read, and the client's version.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessagesQuery {
    /// The client's major version of `ai`, 5 to 7; 7 when absent.
    ai: Option<u8>,
    /// As of the native messages.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// As of the native messages.
    before: Option<u64>,
}

/// The client that stops an answer.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StopQuery {
    /// The client's major version of `ai`, 5 to 7. It does not affect the response.
    ai: Option<u8>,
}

/// The messages of a chat, in the AI SDK's form.
#[derive(Serialize, ToSchema)]
pub(crate) struct UiMessages {
    /// The messages.
    #[schema(value_type = Vec<Value>)]
    messages: Vec<Value>,
    /// The cursor of the previous page, for `before`; absent if this page begins with the chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
}

impl From<ChatRequestError> for ApiError {
    fn from(error: ChatRequestError) -> Self {
        let what = error.to_string();
        let pointer = match error {
            ChatRequestError::ChatId { .. } => "/id".to_owned(),
            ChatRequestError::Expected { pointer, .. }
            | ChatRequestError::TooLarge { pointer, .. }
            | ChatRequestError::Part { pointer, .. }
            | ChatRequestError::Reserved { pointer, .. }
            | ChatRequestError::Url { pointer } => pointer,
        };
        Self::field(pointer, what)
    }
}

/// Posts a message to a chat, or answers pending calls, and streams the answer.
///
/// Takes what `DefaultChatTransport` sends. The server stores the history: it posts the messages that
/// are new, and refuses others that differ from the stored ones. `messageId` replaces the message with
/// that id, and `regenerate-message` asks for another answer; both remove what came after and stop a
/// running answer. Answers in an agent's message go to the agent's pending calls. The run continues if
/// the client disconnects.
#[utoipa::path(post, path = "/api/chat", operation_id = "chatPost", tag = "ai-sdk", security(("key" = [])),
    params(ChatQuery, ("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ChatQuery>,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    let wanted = wanted(&query)?;
    let token = idempotency.token("chat-request")?;
    let request = from_chat_request(body)?;
    let thread = ThreadKey::named(&api, &caller, &request.chat_id, "/id")?;
    let chat = Chat {
        api: &api,
        thread: &thread,
    };
    if let Some(message) = request.answering() {
        let given = answers::client_answers(chat, message, token.as_ref()).await?;
        if !given.is_empty() {
            chat.check(&request.messages).await?;
            return answers::reply(chat, (message, given), token, wanted).await;
        }
    }
    let saying = start::plan(chat, &request).await?;
    let open = api.open_stream(&caller)?;
    if let Some(message) = request.answered_before() {
        answers::first(chat, message, token.as_ref()).await?;
    }
    let react = ReactRequest {
        run: Run {
            agent: query.agent,
            ..Run::default()
        },
        token,
        ..ReactRequest::new(
            caller.tenant.clone(),
            request.chat_id.clone(),
            NewItem::reference(ItemId::from(""), None),
        )
    };
    let speech = MessagePost::new(&api, &caller);
    let first = request
        .messages
        .len()
        .saturating_sub(saying.message_count());
    let place = |index| BodyPointers::parts(format!("/messages/{}/parts", first + index));
    let react = saying.into_react(react);
    let rewinds = react.rewind.is_some();
    let accepted = speech.react(react, None, place).await;
    let accepted = accepted.map_err(|error| {
        if !rewinds {
            return error.into();
        }
        let last = request.messages.last();
        stale(error, || {
            last.map_or_else(|| "/messageId".to_owned(), SentMessage::pointer)
        })
    })?;
    let stream = UiStream::new(RunSelector::answering(accepted.item_id), wanted);
    stream.response(&thread, accepted.after, open).await
}

fn wanted(query: &ChatQuery) -> Result<Wanted, ApiError> {
    Ok(Wanted {
        major: major(query.ai)?,
        subagents: query.subagents,
        ek: query.ek,
    })
}

/// The major version of `ai` that the client names, or the newest one.
fn major(named: Option<u8>) -> Result<u8, ApiError> {
    let major = named.unwrap_or(*MAJORS.end());
    if MAJORS.contains(&major) {
        return Ok(major);
    }
    Err(ApiError::InvalidQuery {
        what: format!("ai is {major}, expected 5 to 7"),
    })
}

/// Streams the running answer of a chat from the beginning of its message; 204 if none runs.
#[utoipa::path(get, path = "/api/chat/{id}/stream", operation_id = "chatResume", tag = "ai-sdk", security(("key" = [])),
    params(("id" = String, Path), ResumeQuery),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 204, description = "None runs"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn resume(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(query): Query<ResumeQuery>,
) -> Result<Response, ApiError> {
    let (query, start) = query.into_chat();
    let wanted = wanted(&query)?;
    // Clients ask on mount, also for a chat in which nothing was said yet.
    let (state, tail) = match thread.state().await {
        Err(RuntimeError::Store(StoreError::NotFound)) => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        found => found?,
    };
    let Some(active) = state.active() else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let open = api.open_stream(&caller)?;
    let begun = message_start::message_start(&thread, active, tail).await?;
    let run = RunSelector::answering(begun.trigger).through(begun.goes_on);
    let stream = UiStream::new(run, wanted);
    let stream = stream.from(start);
    stream.response(&thread, begun.after, open).await
}

/// Reads the messages of a chat, or of a page of it; an answer that is being written is left out.
///
/// If sub-agents have pending calls, the last message ends with a step that contains all pending calls.
#[utoipa::path(get, path = "/api/chat/{id}/messages", operation_id = "chatMessages", tag = "ai-sdk", security(("key" = [])), params(("id" = String, Path), MessagesQuery),
    responses((status = 200, body = UiMessages), (status = "default", body = ErrorBody)))]
pub(crate) async fn messages(
    thread: ThreadKey,
    Query(query): Query<MessagesQuery>,
) -> Result<Json<UiMessages>, ApiError> {
    let major = major(query.ai)?;
    let query = PieceQuery::new(query.limit, query.before);
    // What opens or is answered while the messages are read is not left.
    let mut open = open_calls(&thread).await?;
    // With the chunks: an answer that was cut off keeps what it had said.
    let piece = query.read(&thread, Filter::All).await?;
    open.extend(open_calls(&thread).await?);
    let mut messages = to_ui_messages(&piece.transcript).value;
    close_open_calls(&mut messages, &open);
    if query.is_tail() {
        let (pending, _) = thread.pending().await?;
        if let Some(step) = last_step(&piece.transcript) {
            subagent::ask(&mut messages, questions(&pending, step, major));
        }
    }
    Ok(Json(UiMessages {
        messages,
        before: piece.before,
    }))
}

/// The last step of a thread.
fn last_step(transcript: &Transcript) -> Option<&StepId> {
    let mut entries = transcript.entries.iter().rev();
    entries.find_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(&reaction.steps.last()?.step.id),
        Entry::Item(_) => None,
    })
}

/// The pending calls of a chat, including those that a running execution has answered or may leave
/// pending.
async fn open_calls(thread: &ThreadKey) -> Result<BTreeSet<String>, RuntimeError> {
    let (state, _) = thread.state().await?;
    let active = state.active().map(|active| active.open_calls.as_slice());
    let open = state.open().map(|open| open.calls.as_slice());
    let calls = active.into_iter().chain(open).flatten();
    Ok(calls.map(|call| call.tool_call_id.clone()).collect())
}

/// Stops the running answer of a chat.
#[utoipa::path(post, path = "/api/chat/{id}/stop", operation_id = "chatStop", tag = "ai-sdk", security(("key" = [])), params(("id" = String, Path), StopQuery),
    responses((status = 200, body = CancelledView), (status = "default", body = ErrorBody)))]
pub(crate) async fn stop(
    thread: ThreadKey,
    Query(query): Query<StopQuery>,
) -> Result<Json<CancelledView>, ApiError> {
    major(query.ai)?;
    let cancelled = thread.cancel(None, Interruption::USER_CANCELLED).await?;
    Ok(Json(cancelled.into()))
}
