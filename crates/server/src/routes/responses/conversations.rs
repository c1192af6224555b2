//! `/v1/conversations`: threads, as `OpenAI`'s API sees them.

use super::refused::refused;
use super::start::check_new;
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::{JsonBody, OptionalBody};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::{NamedThread, ThreadRef, delete_thread_stopping};
use axum::Json;
use axum::extract::State;
use interop::responses::{
    CreateConversation, RequestError, conversation, deleted_conversation, read_conversation_update,
    updated_metadata,
};
use jiff::Timestamp;
use runtime::Import;
use serde_json::{Map, Value};
use timeline::ThreadUpdate;

/// The thread of a conversation.
pub(super) async fn found(api: &Api, named: &NamedThread) -> Result<ThreadRef, ApiError> {
    let found = named.find(api).await?;
    Ok(found.ok_or_else(|| RequestError::conversation_not_found(named.id()))?)
}

/// Makes a conversation.
#[utoipa::path(post, path = "/v1/conversations", operation_id = "createConversation", tag = "responses", security(("key" = [])),
    request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    OptionalBody(body): OptionalBody<Option<Value>>,
) -> Result<Json<Value>, ApiError> {
    let body = body.unwrap_or_else(|| Map::new().into());
    let new = CreateConversation::read(&body)?;
    check_new(&caller)?;
    let runtime = api.runtime(&caller.tenant);
    let mut commands = new.commands(Timestamp::now(), &mut || runtime.mint())?;
    let metadata = Some(Value::from(new.metadata).into());
    let speech = MessagePost::new(&api, &caller);
    let place = |_| BodyPointers::text("/items");
    speech
        .begin(metadata.clone(), None, &mut commands, place)
        .await?;
    let import = Import {
        commands,
        metadata,
        ..Import::default()
    };
    let made = runtime.import(&caller.tenant, None, import).await;
    let row = made.map_err(|error| refused(error, ""))?;
    Ok(Json(conversation(&row.thread)))
}

/// Reads a conversation. Any thread is one, by its id or its key.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}", operation_id = "readConversation", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    State(api): State<Api>,
    named: NamedThread,
) -> Result<Json<Value>, ApiError> {
    let found = found(&api, &named).await?;
    Ok(Json(conversation(&found.row().thread)))
}

/// Replaces the metadata of a conversation.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}", operation_id = "updateConversation", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn update(
    State(api): State<Api>,
    named: NamedThread,
    JsonBody(body): JsonBody<Value>,
) -> Result<Json<Value>, ApiError> {
    let texts = read_conversation_update(&body)?;
    let before = found(&api, &named).await?;
    let updated = before.change_thread(move |thread| ThreadUpdate {
        title: None,
        metadata: Some(Some(updated_metadata(
            thread.metadata.as_ref(),
            texts.clone(),
        ))),
    });
    let updated = updated.await;
    updated.map_err(|error| refused(error, named.id()))?;
    let now = before.find().await?;
    Ok(Json(conversation(&now.row().thread)))
}

/// Deletes a conversation with its items and responses. A running response is stopped, and queued ones
/// never start.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}", operation_id = "deleteConversation", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn delete(
    State(api): State<Api>,
    named: NamedThread,
) -> Result<Json<Value>, ApiError> {
    let found = found(&api, &named).await?;
    let deleted = delete_thread_stopping(&api, &found).await;
    deleted.map_err(|error| refused(error, named.id()))?;
    Ok(Json(deleted_conversation(named.id())))
}
