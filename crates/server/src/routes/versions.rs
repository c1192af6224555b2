//! Replacing messages and answers, and the versions that this leaves in the log.

use super::events::EventRecord;
use super::messages::{AcceptedView, NewMessage, ParsedMessage, accepted_response, wanted_stream};
use super::tree::TreeQuery;
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::{PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::{KeyedBody, KeyedOptionalBody};
use crate::state::Api;
use crate::threads::{Replacement, ThreadKey, stale};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use interop::revision::message_id;
use jiff::Timestamp;
use runtime::{Accepted, MessageVersion, MessageVersions, ReactRequest, RequestToken, Run};
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroU64};
use timeline::{ExecutionId, ItemId, ItemType, Payload, Role, Seq};
use utoipa::ToSchema;

/// How a message is answered again.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Regeneration {
    /// The agent that answers. Default: the agent of the last answer.
    agent: Option<String>,
    /// Maximum number of steps; unbounded when absent.
    #[schema(value_type = Option<u32>)]
    max_steps: Option<NonZeroU32>,
    /// Milliseconds after which the execution is stopped.
    #[schema(value_type = Option<u64>)]
    timeout_ms: Option<NonZeroU64>,
    /// Whether to stream the events of the answer; equal to `Accept: text/event-stream`.
    #[serde(default)]
    stream: bool,
}

impl Regeneration {
    /// A regeneration by an agent; by the agent of the last answer without one.
    #[cfg(feature = "web")]
    pub(crate) fn by(agent: Option<&str>) -> Self {
        Self {
            agent: agent.map(str::to_owned),
            ..Self::default()
        }
    }
}

/// The versions of a message or an answer, oldest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionList {
    /// The message that these answers are for; absent for versions of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<ItemId>,
    /// The versions.
    versions: Vec<VersionView>,
    /// Whether there may be more versions, because the search reached its limit.
    more: bool,
}

/// A version of a message or an answer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionView {
    /// The id of its message, or of the first item of its answer.
    id: ItemId,
    /// The event that created it; absent if it is in the log of the thread that this one was forked
    /// from.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<Seq>,
    /// The last event at which the conversation had it, for `at` of messages and of forks; absent for
    /// the current version.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seq: Option<Seq>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The role of its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    /// The agent that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The execution that wrote it first.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<ExecutionId>,
    /// Its content; absent for an answer.
    #[schema(value_type = Option<Value>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Payload>,
    /// Whether the conversation has it.
    current: bool,
}

impl From<MessageVersion> for VersionView {
    fn from(version: MessageVersion) -> Self {
        let item = version.item;
        Self {
            id: item.id,
            seq: version.seq,
            last_seq: version.removed.map(|seq| Seq(seq.0.saturating_sub(1))),
            created_at: item.created_at,
            role: item.role,
            agent: version.run.and_then(|run| run.agent),
            execution_id: item.execution_id,
            content: item.content,
            current: !version.is_removed,
        }
    }
}

/// Replaces a message and everything after it; an agent answers the new message.
///
/// The new message has an id of its own: the first replacement of `m` is `m~2`. The log keeps the
/// replaced events. A running execution is stopped, queued messages are never answered, and `policy` has
/// no effect. If another request has replaced or removed the message, the request fails with
/// `history_differs`.
#[utoipa::path(post, path = "/threads/{key}/messages/{id}/replace", operation_id = "replaceMessage", tag = "messages", security(("key" = [])),
    params(("key" = String, Path), ("id" = String, Path), TreeQuery, ("idempotency-key" = Option<String>, Header)), request_body = NewMessage,
    responses((status = 202, body = AcceptedView), (status = 200, body = EventRecord, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn replace(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    PathOf((_thread, id)): PathOf<(String, String)>,
    Query(query): Query<TreeQuery>,
    headers: HeaderMap,
    KeyedBody(message, idempotency): KeyedBody<NewMessage>,
) -> Result<Response, ApiError> {
    let token = idempotency.token("api")?;
    let new = message.read(&api)?;
    let open = new.stream(&api, &caller, &headers)?;
    let accepted = replace_message(&api, &thread, &id, (new, token)).await?;
    accepted_response(&thread, accepted, query, open).await
}

/// Posts a message in place of the message `id` and of everything after it.
pub(in crate::routes) async fn replace_message(
    api: &Api,
    thread: &ThreadKey,
    id: &str,
    (new, token): (ParsedMessage, Option<RequestToken>),
) -> Result<Accepted, ApiError> {
    let item = thread.item(&ItemId::from(id)).await?;
    if item.item_type != ItemType::Message || item.execution_id.is_some() {
        return Err(ApiError::InvalidPath {
            what: format!("{id:?} is not a posted message"),
        });
    }
    // Its first revision, unless its own id only looks like one of a revision.
    let mut base = message_id(id);
    let mut last = thread.last_revision(base).await?;
    if last.is_none() {
        base = id;
        last = thread.last_revision(base).await?;
    }
    let last = last.unwrap_or(interop::revision::Revision::FIRST);
    let replaced = (base, (item.id, last));
    let accepted = new.replace(api, thread, token, replaced).await;
    accepted.map_err(|error| stale(error, String::new))
}

/// Answers a message again, or replaces an answer; everything after the message is removed.
///
/// The id is that of the message, or of an item of the answer. The log keeps the replaced events. A
/// running execution is stopped, and queued messages are never answered. If another request has replaced
/// or removed the item, the request fails with `history_differs`.
#[utoipa::path(post, path = "/threads/{key}/messages/{id}/regenerate", operation_id = "regenerateMessage", tag = "messages", security(("key" = [])),
    params(("key" = String, Path), ("id" = String, Path), TreeQuery, ("idempotency-key" = Option<String>, Header)), request_body = Option<Regeneration>,
    responses((status = 202, body = AcceptedView), (status = 200, body = EventRecord, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn regenerate(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    PathOf((_thread, id)): PathOf<(String, String)>,
    Query(query): Query<TreeQuery>,
    headers: HeaderMap,
    KeyedOptionalBody(body, idempotency): KeyedOptionalBody<Regeneration>,
) -> Result<Response, ApiError> {
    let token = idempotency.token("api")?;
    let open = wanted_stream(&api, &caller, &headers, body.stream)?;
    let accepted = answer_again(&api, &thread, id.into(), (body, token)).await?;
    accepted_response(&thread, accepted, query, open).await
}

/// Answers a message again, or replaces an answer, by the id of the message or of an item of the answer.
pub(in crate::routes) async fn answer_again(
    api: &Api,
    thread: &ThreadKey,
    id: ItemId,
    (options, token): (Regeneration, Option<RequestToken>),
) -> Result<Accepted, ApiError> {
    let MessageVersions {
        message,
        named,
        list,
        ..
    } = thread.answers(&id).await?;
    let runtime = thread.runtime();
    let replacement = if message.as_ref() == Some(&id) {
        Replacement::after(runtime, id, message.as_ref())
    } else {
        Replacement::answer(runtime, named, message.as_ref())
    };
    let last = list.into_iter().next_back().and_then(|last| last.run);
    let request = ReactRequest {
        run: Run {
            agent: options.agent.or_else(|| last.and_then(|run| run.agent)),
            max_steps: options.max_steps.map(NonZeroU32::get),
            timeout_ms: options.timeout_ms.map(NonZeroU64::get),
            ..Run::default()
        },
        token,
        rewind: Some(replacement.rewind),
        ..ReactRequest::new(thread.tenant().clone(), thread.key(), replacement.item)
    };
    let speech = MessagePost::new(api, thread.caller());
    let accepted = speech.react(request, None, |_| BodyPointers::default());
    accepted.await.map_err(|error| stale(error, String::new))
}

/// Reads the versions of a message or of an answer, those that edits and regenerations removed included.
#[utoipa::path(get, path = "/threads/{key}/messages/{id}/versions", operation_id = "listVersions", tag = "messages", security(("key" = [])),
    params(("key" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = VersionList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    thread: ThreadKey,
    PathOf((_thread, id)): PathOf<(String, String)>,
) -> Result<Json<VersionList>, ApiError> {
    Ok(Json(versions(&thread, &id.into()).await?))
}

/// The versions of a message, or of the answer that an item is a part of.
pub(crate) async fn versions(thread: &ThreadKey, id: &ItemId) -> Result<VersionList, ApiError> {
    let MessageVersions {
        message,
        list,
        more,
        named: _,
    } = thread.versions(id).await?;
    Ok(VersionList {
        message_id: message,
        versions: list.into_iter().map(Into::into).collect(),
        more,
    })
}
