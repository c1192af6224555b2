//! Messages of a thread.

use super::find;
use super::{Pairs, attach, lookup, message_pointers, not_found, notes};
use crate::aitp::{BodyPointers, MessagePost};
use crate::body::{OptionalBody, PathOf, Query};
use crate::error::openai::Worded;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::{KeyedBody, check_made, note_made};
use crate::state::Api;
use crate::threads::unfollowed;
use crate::threads::{NamedThread, ThreadRef, id_for};
use axum::Json;
use axum::extract::State;
use interop::threads::{
    CreateMessage, Deleted, List, MessageObject, ObjectKind, Run, metadata_of, read_message_id,
};
use runtime::{RequestToken, RuntimeError};
use serde_json::Value;
use timeline::{NewItem, Rejected, Removed};

/// The member of a message's metadata that names the actor (AITP).
const ACTOR: &str = "actor";

/// Lists the messages, newest first unless `order=asc`.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/messages", operation_id = "openaiListMessages", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("limit" = Option<u32>, Query), ("order" = Option<String>, Query), ("after" = Option<String>, Query),
        ("before" = Option<String>, Query), ("run_id" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn list(
    State(api): State<Api>,
    named: NamedThread,
    Query(query): Query<Pairs>,
) -> Result<Json<List<MessageObject>>, ApiError> {
    let found = find(&api, &named).await?;
    lookup::messages(&found, &query).await.map(Json)
}

/// Posts a message without starting an agent; refused while a run is active.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/messages", operation_id = "openaiCreateMessage", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(api): State<Api>,
    named: NamedThread,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Json<MessageObject>, ApiError> {
    let found = find(&api, &named).await?;
    let mut asked = CreateMessage::read(&body)?;
    let token = idempotency.token("threads.messages")?;
    let id = id_for(&api, &[found.id().as_str()], token.as_deref());
    if let Some(token) = &token
        && let Some(said) = lookup::find_message(&found, &id).await?
    {
        check_made(&api, found.tenant(), &id, token).await?;
        return Ok(Json(said));
    }
    let messages = std::slice::from_mut(&mut asked);
    let n_bytes = attach::attach(
        &api,
        found.tenant(),
        found.caller().is_restricted(),
        messages,
    )
    .await?;
    let to_say = ToSay {
        item: asked.item(&id),
        place: message_pointers("", &body),
        n_bytes,
        token,
    };
    let runtime = found.runtime().clone();
    let said = runtime.run_to_completion(async move { to_say.post(&api, &found).await });
    said.await.map(Json)
}

/// A message to post.
struct ToSay {
    item: NewItem,
    /// The JSON pointers of its parts in the request.
    place: BodyPointers,
    /// Bytes of its attachments.
    n_bytes: u64,
    /// The idempotency token; a repetition finds the first message.
    token: Option<RequestToken>,
}

impl ToSay {
    /// Posts the message, and counts its attachments. Both happen even if the client disconnects.
    async fn post(self, api: &Api, found: &ThreadRef) -> Result<MessageObject, ApiError> {
        let _turn = api.turns().of(found.id()).await;
        unfollowed(async || self.post_once(api, found).await).await
    }

    async fn post_once(&self, api: &Api, found: &ThreadRef) -> Result<MessageObject, ApiError> {
        // The first of these may have come meanwhile.
        let id = self.item.id.to_string();
        if let Some(token) = &self.token
            && let Some(said) = lookup::find_message(found, &id).await?
        {
            check_made(api, found.tenant(), &id, token).await?;
            return Ok(said);
        }
        let free = lookup::check_free(found, Run::check_message).await?;
        let (tenant, thread) = (found.tenant(), found.id());
        let brought = attach::check(api, tenant, thread, self.n_bytes).await?;
        let speech = MessagePost::new(api, found.caller());
        let items = vec![self.item.clone()];
        let kept = speech.record(found, items, Some(free), |_| self.place.clone());
        let kept = kept.await?;
        if let Some(token) = &self.token {
            note_made(api, tenant, &id, token, Some(thread)).await?;
        }
        if let Some(brought) = brought {
            brought.count(api, tenant, kept).await?;
        }
        lookup::message_at(found, kept).await
    }
}

/// Reads a message.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/messages/{message_id}", operation_id = "openaiReadMessage", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("message_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, message_id)): PathOf<(String, String)>,
) -> Result<Json<MessageObject>, ApiError> {
    let found = find(&api, &named).await?;
    lookup::message(&found, &message_id).await.map(Json)
}

/// Changes the metadata of a message. AITP's `actor` can't be changed.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/messages/{message_id}", operation_id = "openaiModifyMessage", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("message_id" = String, Path)), request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn modify(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, message_id)): PathOf<(String, String)>,
    OptionalBody(body): OptionalBody<Option<Value>>,
) -> Result<Json<MessageObject>, ApiError> {
    let found = find(&api, &named).await?;
    found.caller().check_read()?;
    let mut message = lookup::message(&found, &message_id).await?;
    let body = body.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let Some(mut metadata) = metadata_of(&body, true)? else {
        return Ok(Json(message));
    };
    let members = metadata.map_mut();
    members.remove(ACTOR);
    let actor = message.metadata.map().get(ACTOR).cloned();
    members.extend(actor.map(|actor| (ACTOR.to_owned(), actor)));
    notes::put(&found, &message.id, &metadata).await?;
    message.metadata = metadata;
    Ok(Json(message))
}

/// Deletes a message. Clients and models no longer see it; it remains in the log until the thread is
/// deleted.
#[utoipa::path(delete, path = "/v1/threads/{thread_id}/messages/{message_id}", operation_id = "openaiDeleteMessage", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("message_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, message_id)): PathOf<(String, String)>,
) -> Result<Json<Deleted>, ApiError> {
    let found = find(&api, &named).await?;
    let message = lookup::message(&found, &message_id).await?;
    let own = read_message_id(&message.id);
    let what = match message.run_id {
        Some(_) => Removed::Step(own.as_str().into()),
        None => Removed::Item(own.as_str().into()),
    };
    match found.remove(what).await {
        Err(RuntimeError::Rejected(Rejected::StillNeeded(_) | Rejected::LeftOpen(_))) => {
            let refused = format!(
                "Can't delete the message {}: the calls of its run are still needed.",
                message.id
            );
            return Err(Worded::invalid(None, None, refused).into());
        }
        Err(RuntimeError::Rejected(Rejected::NotThere(_) | Rejected::RemovedAlready(_))) => {
            if lookup::position_of_attached(&found, &own).await?.is_some() {
                let refused = format!(
                    "Can't delete the message {}: it came with tool outputs, which are still needed.",
                    message.id
                );
                return Err(Worded::invalid(None, None, refused).into());
            }
            return Err(not_found(ObjectKind::Message, &message_id));
        }
        removed => removed?,
    };
    Ok(Json(Deleted::new("thread.message.deleted", message.id)))
}
