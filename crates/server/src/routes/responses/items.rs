//! `/v1/conversations/{id}/items`: the items of a conversation.

use super::conversations::found;
use super::lookup::{Pairs, list_options, page};
use super::page_items::Thread;
use super::refused::{not_removed, refused};
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::{JsonBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::unfollowed;
use crate::threads::{NamedThread, ThreadRef};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use interop::responses::{
    NewItems, RequestError, conversation, conversation_item, removal, stored_calls, stored_items,
    walk_items,
};
use jiff::Timestamp;
use runtime::{Filter, PageRequest, RuntimeError};
use serde_json::Value;
use timeline::{Seq, Transcript};

/// Maximum number of messages between a stored call and its result.
const AROUND: usize = 20;

/// Lists the items of a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/items", operation_id = "listConversationItems", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path), ("limit" = Option<u8>, Query), ("order" = Option<String>, Query), ("after" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(api): State<Api>,
    named: NamedThread,
    Query(query): Query<Pairs>,
) -> Result<Response, ApiError> {
    let (page, options) = (page(&query)?, list_options(&query)?);
    let thread = found(&api, &named).await?;
    let items = Thread::of(&thread);
    let from = match &page.after {
        Some(after) => {
            let place = items.position(after).await?;
            Some(place.ok_or_else(|| RequestError::item_not_found(after, "/after"))?)
        }
        None => None,
    };
    let mut walk = items.pages(page.newest_first, from);
    let mut listing = page.begin();
    while let Some(transcript) = walk.next().await? {
        let broke_off = listing.piece(walk_items(&transcript, options)).is_break();
        // The first piece has what it begins after, or nothing has.
        if broke_off || !listing.has_started() {
            break;
        }
    }
    Ok(super::json(listing.finish()?))
}

/// Refuses results of pending calls, and of calls that are neither in the request nor stored shortly
/// before. Returns the last event that was looked at; none if there are no results.
async fn check_results(thread: &ThreadRef, new: &NewItems) -> Result<Option<Seq>, ApiError> {
    let results = new.results_alone();
    if results.is_empty() {
        return Ok(None);
    }
    let head = thread.runtime().store().head(thread.id()).await?;
    let open = head.state.open().map(|open| open.calls.as_slice());
    let before = PageRequest::Before {
        before: runtime::Position::END,
        n: AROUND,
    };
    let late = thread.page(before, Filter::Facts);
    let mut kept = stored_calls(&late.await?.transcript);
    for (call, at) in results {
        let waits = open.unwrap_or_default().iter();
        if waits.into_iter().any(|open| open.tool_call_id == call) {
            return Err(RequestError::call_waits(call, at).into());
        }
        if !kept.remove(call) {
            return Err(RequestError::no_such_call_at(call, at).into());
        }
    }
    Ok(Some(head.tail))
}

/// Adds items to a conversation, all or none. No agent answers them.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}/items", operation_id = "createConversationItems", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let new = NewItems::read(&body)?;
    let thread = found(&api, &named).await?;
    let _turn = api.turns().of(thread.id()).await;
    let runtime = api.runtime(&caller.tenant);
    let records = new.records(&mut || runtime.mint())?.value;
    let shown = stored_items(&records, Timestamp::now());
    let speech = MessagePost::new(&api, &caller);
    // What is checked still holds when the items are stored.
    unfollowed(async || {
        let last = check_results(&thread, &new).await?;
        let kept = speech.record(&thread, records.clone(), last, |n| {
            BodyPointers::parts(format!("/items/{n}/content"))
        });
        let kept = kept.await;
        kept.map_err(|error| {
            if let RuntimeError::Followed(_) = error {
                error.into()
            } else {
                refused(error, named.id())
            }
        })
    })
    .await?;
    Ok(super::json(shown))
}

/// Reads one item of a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/items/{item_id}", operation_id = "readConversationItem", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path), ("item_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, item)): PathOf<(String, String)>,
    Query(query): Query<Pairs>,
) -> Result<Response, ApiError> {
    let thread = found(&api, &named).await?;
    let options = list_options(&query)?;
    let find = |transcript: &Transcript| conversation_item(transcript, &item, options);
    let items = Thread::of(&thread);
    let found = items.find(&item, find).await?;
    let found = found.ok_or_else(|| RequestError::item_not_found(&item, ""))?;
    Ok(super::json(found.json))
}

/// Deletes an item from a conversation and returns the conversation. All items of one agent's answer are
/// deleted together. Models no longer receive deleted items. The log has them until the conversation is
/// deleted.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}/items/{item_id}", operation_id = "deleteConversationItem", tag = "responses", security(("key" = [])),
    params(("conversation_id" = String, Path), ("item_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn delete(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, item)): PathOf<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let thread = found(&api, &named).await?;
    let items = Thread::of(&thread);
    let what = items.find(&item, |transcript| removal(transcript, &item));
    let what = what.await?;
    let what = what.ok_or_else(|| RequestError::item_not_found(&item, ""))?;
    let removed = thread.remove(what).await;
    removed.map_err(|error| not_removed(error, named.id(), &item))?;
    Ok(Json(conversation(&thread.row().thread)))
}
