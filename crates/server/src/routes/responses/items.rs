//! `/v1/conversations/{id}/items`: what was said in a conversation.

use super::conversations::found;
use super::refused::refused;
use super::stored::{Pairs, list_options, page};
use crate::aitp::{Place, Speech};
use crate::auth::Caller;
use crate::body::{JsonBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::protocol::key_of;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use interop::responses::{
    ListOptions, NewItems, RequestError, conversation, conversation_item, kept_items, removal,
    walk_items,
};
use jiff::Timestamp;
use runtime::{Filter, ThreadRow};
use serde_json::Value;
use timeline::Transcript;

async fn transcript(api: &Api, caller: &Caller, row: &ThreadRow) -> Result<Transcript, ApiError> {
    // With the chunks: an answer that was cut off keeps what it had said.
    let runtime = api.runtime();
    let read = runtime.transcript(&caller.tenant, key_of(row), Filter::All);
    Ok(read.await?)
}

/// Lists the items of a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/items", operation_id = "listConversationItems", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path), ("limit" = Option<u8>, Query), ("order" = Option<String>, Query), ("after" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    Query(query): Query<Pairs>,
) -> Result<Response, ApiError> {
    let page = page(&query)?;
    let row = found(&api, &caller, &id).await?;
    let transcript = transcript(&api, &caller, &row).await?;
    let items = walk_items(&transcript, list_options(&query));
    Ok(super::json(page.list(items)?))
}

/// Keeps items in a conversation, all or none. Nobody answers them.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}/items", operation_id = "createConversationItems", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let new = NewItems::read(&body)?;
    let row = found(&api, &caller, &id).await?;
    let runtime = api.runtime();
    let records = new.records(&mut || runtime.mint())?.value;
    let shown = kept_items(&records, Timestamp::now());
    let (speech, thread) = (Speech::new(&api, &caller), (&row.thread.id, key_of(&row)));
    let kept = speech.record(thread, records, |n| {
        Place::parts(format!("/items/{n}/content"))
    });
    kept.await.map_err(|error| refused(error, &id))?;
    Ok(super::json(shown))
}

/// Reads one item of a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/items/{item_id}", operation_id = "readConversationItem", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path), ("item_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    State(api): State<Api>,
    caller: Caller,
    PathOf((id, item)): PathOf<(String, String)>,
    Query(query): Query<Pairs>,
) -> Result<Response, ApiError> {
    let row = found(&api, &caller, &id).await?;
    let options: ListOptions = list_options(&query);
    let transcript = transcript(&api, &caller, &row).await?;
    let found = conversation_item(&transcript, &item, options);
    let found = found.ok_or_else(|| RequestError::item_not_found(&item, ""))?;
    Ok(super::json(found.json))
}

/// Has a conversation have an item no longer, and reads the conversation. What an agent has said and
/// done in one answer goes together. Models are not shown what was deleted; the log keeps it until the
/// conversation is deleted.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}/items/{item_id}", operation_id = "deleteConversationItem", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path), ("item_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    PathOf((id, item)): PathOf<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let row = found(&api, &caller, &id).await?;
    let what = removal(&transcript(&api, &caller, &row).await?, &item);
    let what = what.ok_or_else(|| RequestError::item_not_found(&item, ""))?;
    let removed = api
        .runtime()
        .remove(&caller.tenant, key_of(&row), what)
        .await;
    removed.map_err(|error| refused(error, &id))?;
    Ok(Json(conversation(&row.thread)))
}
