//! Messages: posting to an agent, and reading the conversation.

use super::events::EventRecord;
use super::page_query::{PageQuery, PieceQuery};
use super::tree::{TreeEvents, TreeQuery};
use super::view::{MessageView, PartView};
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::Query;
use crate::error::{ApiError, ErrorBody};
use crate::event_id::Incarnation;
use crate::idempotency::KeyedBody;
use crate::sse::{self, FrameBuffer, View};
use crate::state::{Api, OpenStream};
use crate::threads::{Replacement, ThreadKey, check_key};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode};
use interop::ag_ui::was_cut_off;
use interop::model::{part_without_text, unreadable_part};
use interop::revision::Revision;
use interop::run::RunSelector;
use runtime::{
    Accepted, Filter, FollowedRecord, Policy, ReactRequest, RequestToken, Rewind, Run,
    RuntimeError, Until,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::ControlFlow;
use timeline::{
    Entry, ExecutionId, ExecutionStatus, ItemId, NewItem, Payload, Seq, ThreadId, Transcript,
    check_parts,
};
use utoipa::ToSchema;

/// A message of a user.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// A text, or a list of parts such as `{"type": "input_text", "text": "…"}`.
    #[schema(value_type = MessageContent)]
    pub(in crate::routes) content: Payload,
    /// The agent that answers. Default: the configuration's default agent.
    pub(in crate::routes) agent: Option<String>,
    /// The policy if the thread is busy: `queue` (the default), `reject` or `interrupt`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(in crate::routes) policy: Policy,
    /// Maximum number of steps; unbounded when absent.
    #[schema(value_type = Option<u32>)]
    pub(in crate::routes) max_steps: Option<NonZeroU32>,
    /// Milliseconds after which the execution is stopped.
    #[schema(value_type = Option<u64>)]
    pub(in crate::routes) timeout_ms: Option<NonZeroU64>,
    /// The client's own fields.
    #[schema(value_type = Option<Value>)]
    pub(in crate::routes) metadata: Option<Payload>,
    /// The channel that it came through: `web`, `email` or another name.
    pub(in crate::routes) channel: Option<String>,
    /// Whether to stream the events of the answer; equal to `Accept: text/event-stream`.
    #[serde(default)]
    pub(in crate::routes) stream: bool,
}

/// The content of a message.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes what `content` reads")]
enum MessageContent {
    /// A text.
    Text(String),
    /// Texts, images and files.
    Parts(Vec<PartView>),
}

/// A message that passed the checks of its content.
pub(in crate::routes) struct ParsedMessage {
    item: NewItem,
    /// The JSON pointers of the content in the request body.
    place: BodyPointers,
    run: Run,
    policy: Policy,
    stream: bool,
}

impl NewMessage {
    /// Checks the message and makes an item of it.
    pub(in crate::routes) fn read(self, api: &Api) -> Result<ParsedMessage, ApiError> {
        let said = self.content.value();
        let place = if said.is_array() {
            BodyPointers::parts("/content")
        } else {
            BodyPointers::text("/content")
        };
        let mut item = NewItem::user(api.mint(), content(self.content, said)?);
        item.channel = self.channel;
        if self.metadata.as_ref().is_some_and(names_actor) {
            // Its role is its actor's.
            item.role = None;
        }
        item.metadata = self.metadata;
        let run = Run {
            agent: self.agent,
            max_steps: self.max_steps.map(NonZeroU32::get),
            timeout_ms: self.timeout_ms.map(NonZeroU64::get),
            ..Run::default()
        };
        Ok(ParsedMessage {
            item,
            place,
            run,
            policy: self.policy,
            stream: self.stream,
        })
    }
}

impl ParsedMessage {
    /// Posts the message to a thread; creates the thread if it does not exist. Refuses an actor that the
    /// caller may not speak as.
    pub(in crate::routes) async fn post(
        self,
        api: &Api,
        thread: &ThreadKey,
        token: Option<RequestToken>,
    ) -> Result<Accepted, ApiError> {
        Ok(self.react(api, thread, token, None).await?)
    }

    /// Posts a message in place of another one, and of everything after it.
    pub(super) async fn replace(
        mut self,
        api: &Api,
        thread: &ThreadKey,
        token: Option<RequestToken>,
        replaced: (&str, (ItemId, Revision)),
    ) -> Result<Accepted, RuntimeError> {
        let (id, from) = replaced;
        let Replacement { item, rewind } = Replacement::message(id, from, self.item);
        self.item = item;
        self.react(api, thread, token, Some(rewind)).await
    }

    async fn react(
        self,
        api: &Api,
        thread: &ThreadKey,
        token: Option<RequestToken>,
        rewind: Option<Rewind>,
    ) -> Result<Accepted, RuntimeError> {
        let request = ReactRequest {
            run: self.run,
            policy: self.policy,
            token,
            rewind,
            ..ReactRequest::new(thread.tenant().clone(), thread.key(), self.item)
        };
        let speech = MessagePost::new(api, thread.caller());
        let place = |_| self.place.clone().by("/metadata/actor");
        speech.react(request, None, place).await
    }

    /// The stream of the answer, if the request wants one. Opened before anything is written: a client
    /// that can't be served has changed nothing.
    pub(super) fn stream(
        &self,
        api: &Api,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Option<OpenStream>, ApiError> {
        wanted_stream(api, caller, headers, self.stream)
    }
}

/// The stream that a request wants, if any.
pub(super) fn wanted_stream(
    api: &Api,
    caller: &Caller,
    headers: &HeaderMap,
    stream: bool,
) -> Result<Option<OpenStream>, ApiError> {
    (stream || sse::wants_stream(headers))
        .then(|| api.open_stream(caller))
        .transpose()
}

/// A stored message whose execution has started or is queued.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AcceptedView {
    /// The thread's key.
    key: String,
    /// The thread.
    thread_id: ThreadId,
    /// The message.
    item_id: ItemId,
    /// The execution that answers; absent while the message is queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<ExecutionId>,
    /// The event to follow the run from: later events show all of it.
    after: Seq,
    /// Whether it is queued.
    queued: bool,
}

/// The conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct MessageList {
    /// The messages, in order.
    messages: Vec<MessageView>,
    /// The last event of the thread's log that the list covers; follow the events after it. For a page
    /// before a cursor it is the thread's last event.
    seq: u64,
    /// The cursor of the previous page, for `before`; absent if this page begins with the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
}

/// Shows the events of one run.
struct OneRun {
    run: RunSelector,
    incarnation: Incarnation,
}

impl View<FollowedRecord> for OneRun {
    fn write(&mut self, followed: &FollowedRecord, out: &mut FrameBuffer) -> ControlFlow<()> {
        let seen = self.run.select(&followed.record.event);
        if seen.is_own() {
            sse::record_frame(followed, self.incarnation, out);
        }
        seen.flow()
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        sse::failure_frame(error, out);
    }
}

/// Reads the conversation, or a page of it.
#[utoipa::path(get, path = "/threads/{key}/messages", operation_id = "listMessages", tag = "messages", security(("key" = [])), params(("key" = String, Path), PieceQuery),
    responses((status = 200, body = MessageList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    thread: ThreadKey,
    Query(query): Query<PieceQuery>,
) -> Result<Json<MessageList>, ApiError> {
    Ok(Json(conversation(&thread, query).await?))
}

/// The conversation, or a page of it, now or after an earlier event.
pub(crate) async fn conversation(
    thread: &ThreadKey,
    query: PieceQuery,
) -> Result<MessageList, ApiError> {
    // What goes before a place is past, and may be in the log of the thread that this one was forked off.
    let head = match query.at() {
        Some(at) => Some(at),
        None if query.is_tail() => None,
        None => Some(thread.find().await?.row().tail),
    };
    let mut piece = query.read(thread, Filter::Facts).await?;
    // No stream shows the rest of an answer that was written at an earlier event.
    let is_past = query.at().is_some();
    if was_cut_off(&piece.transcript) || is_past && is_running(&piece.transcript) {
        piece = query.read(thread, Filter::All).await?;
    }
    let PageQuery { transcript, before } = piece;
    let seq = head.unwrap_or(transcript.seq).0;
    let entries = transcript.entries.into_iter();
    let messages = entries.filter_map(|entry| MessageView::of_entry(entry, is_past));
    Ok(MessageList {
        messages: messages.collect(),
        seq,
        before,
    })
}

/// Whether the last execution of a transcript runs.
pub(crate) fn is_running(transcript: &Transcript) -> bool {
    transcript.entries.iter().any(|entry| match entry {
        Entry::Reaction(reaction) => reaction.execution.status == ExecutionStatus::Executing,
        Entry::Item(_) => false,
    })
}

/// Posts a message to an agent; creates the thread if it does not exist.
///
/// The run continues if the client disconnects. With `Accept: text/event-stream` or `"stream": true` the
/// server streams the run's events until it ends, including handoffs. The stream of a queued message is
/// silent until its execution starts.
#[utoipa::path(post, path = "/threads/{key}/messages", operation_id = "postMessage", tag = "messages", security(("key" = [])),
    params(("key" = String, Path), TreeQuery, ("idempotency-key" = Option<String>, Header)), request_body = NewMessage,
    responses((status = 202, body = AcceptedView), (status = 200, body = EventRecord, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(query): Query<TreeQuery>,
    headers: HeaderMap,
    KeyedBody(message, idempotency): KeyedBody<NewMessage>,
) -> Result<Response, ApiError> {
    check_key(thread.key(), "")?;
    let token = idempotency.token("api")?;
    let new = message.read(&api)?;
    let open = new.stream(&api, &caller, &headers)?;
    let accepted = new.post(&api, &thread, token).await?;
    accepted_response(&thread, accepted, query, open).await
}

/// The response to an accepted message: the stream of its run, or its ids.
pub(super) async fn accepted_response(
    thread: &ThreadKey,
    accepted: Accepted,
    query: TreeQuery,
    open: Option<OpenStream>,
) -> Result<Response, ApiError> {
    let repeated = accepted.repeated;
    let response = match open {
        Some(open) => {
            let run = RunSelector::answering(accepted.item_id);
            streamed(thread, run, accepted.after, query, open).await?
        }
        None => (
            StatusCode::ACCEPTED,
            Json(accepted_view(thread.key(), accepted)),
        )
            .into_response(),
    };
    Ok(replayed(response, repeated))
}

/// Whether a message's metadata names an actor (AITP).
fn names_actor(metadata: &Payload) -> bool {
    match metadata.value() {
        Value::Object(members) => members.get("actor").is_some_and(|actor| !actor.is_null()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            false
        }
    }
}

/// Marks the response if it repeats an earlier one.
pub(super) fn replayed(mut response: Response, repeated: bool) -> Response {
    if repeated {
        let headers = response.headers_mut();
        headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

/// Streams the events of a run.
pub(super) async fn streamed(
    thread: &ThreadKey,
    run: RunSelector,
    after: Seq,
    query: TreeQuery,
    open: OpenStream,
) -> Result<Response, ApiError> {
    let until = Until::Forever;
    let incarnation = Incarnation::of(thread.find().await?.id());
    if query.subagents {
        let tree = thread.tree(after.into(), until).await?;
        let view = TreeEvents::of(run, after, incarnation);
        return Ok(sse::response(tree, view, open));
    }
    let follow = thread.follow(after, until).await?;
    Ok(sse::response(follow, OneRun { run, incarnation }, open))
}

pub(super) fn accepted_view(key: &str, accepted: Accepted) -> AcceptedView {
    let Accepted {
        thread_id,
        item_id,
        execution_id,
        after,
        queued,
        repeated: _,
    } = accepted;
    AcceptedView {
        key: key.to_owned(),
        thread_id,
        item_id,
        execution_id,
        after,
        queued,
    }
}

/// Turns a text into a part; checks parts and returns them unchanged. `said` is the parsed `content`.
fn content(content: Payload, said: Value) -> Result<Payload, ApiError> {
    match said {
        Value::String(text) => Ok(json!([{ "type": "input_text", "text": text }]).into()),
        Value::Array(parts) if parts.is_empty() => Err(ApiError::field(
            "/content",
            "a message has at least one part",
        )),
        Value::Array(parts) => {
            check_parts(&parts).map_err(|error| ApiError::content("/content", &error))?;
            if let Some(place) = part_without_text(&parts) {
                return Err(ApiError::field(
                    format!("/content/{place}/type"),
                    "only agents say this, expected input_text, input_image, input_file or a type with a namespace",
                ));
            }
            if let Some(place) = unreadable_part(&parts) {
                return Err(ApiError::field(
                    format!("/content/{place}"),
                    "a file is a data: URL with base64, an http: or https: URL, or base64",
                ));
            }
            Ok(content)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(ApiError::field(
            "/content",
            "the content is a text or a list of parts",
        )),
    }
}
