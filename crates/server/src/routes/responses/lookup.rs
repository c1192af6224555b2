//! Stored responses: read, follow again, cancel, delete.

use super::continuation::StartedResponse;
use super::past::{ResponseState, StoredResponse, find, hide};
use super::refused::refused;
use super::stream::followed;
use crate::auth::Caller;
use crate::body::{PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::{ThreadKey, delete_thread};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use interop::responses::{
    EventFraming, ListOptions, ListPage, RequestError, ResponseOf, ResponseStream, deleted_response,
};
use runtime::{RuntimeError, StoreError};
use serde_json::Value;
use timeline::Interruption;

/// The pairs of a query: of those that are lists, each element is one.
pub(super) type Pairs = Vec<(String, String)>;

/// The last value of this name.
pub(super) fn value<'a>(pairs: &'a Pairs, name: &str) -> Option<&'a str> {
    let mut values = pairs.iter().rev();
    let found = values.find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

/// The fields that a query's `include` adds to a list.
pub(super) fn list_options(pairs: &Pairs) -> Result<ListOptions, RequestError> {
    let wanted = pairs
        .iter()
        .filter(|(key, _)| matches!(key.as_str(), "include" | "include[]"));
    ListOptions::read(wanted.map(|(_, value)| value.as_str()))
}

/// The page that a query requests.
pub(super) fn page(pairs: &Pairs) -> Result<ListPage, RequestError> {
    ListPage::read(
        value(pairs, "limit"),
        value(pairs, "order"),
        value(pairs, "after"),
    )
}

async fn found(api: &Api, caller: &Caller, id: &str) -> Result<StoredResponse, ApiError> {
    let found = find(api, caller, id).await?;
    Ok(found.ok_or_else(|| RequestError::response_not_found(id))?)
}

async fn standing(found: &StoredResponse, id: &str) -> Result<ResponseState, ApiError> {
    let standing = found.state().await?;
    Ok(standing.ok_or_else(|| RequestError::response_not_found(id))?)
}

fn response_view(mut standing: ResponseState, id: &str) -> Result<Response, ApiError> {
    let object = standing.stream.object();
    let object = object.ok_or_else(|| RequestError::response_not_found(id))?;
    Ok(super::json(object.json))
}

/// Reads the current state of a response. With `stream=true` it streams the events instead, starting
/// with the first event at or after the one that `starting_after` names.
#[utoipa::path(get, path = "/v1/responses/{response_id}", operation_id = "readResponse", tag = "responses", security(("key" = [])),
    params(("response_id" = String, Path), ("stream" = Option<bool>, Query), ("starting_after" = Option<u64>, Query), ("include" = Option<Vec<String>>, Query)),
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    State(api): State<Api>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    Query(query): Query<Pairs>,
) -> Result<Response, ApiError> {
    let wrong = |name: &str, what: &str| {
        RequestError::at(
            format!("/{name}"),
            "invalid_value",
            format!("{name}: expected {what}."),
        )
    };
    let stream = match value(&query, "stream") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(wrong("stream", "true or false").into()),
    };
    let after = match value(&query, "starting_after") {
        None => None,
        Some(number) => match number.parse() {
            Ok(number) => Some(number),
            Err(_) => return Err(wrong("starting_after", "the number of an event").into()),
        },
    };
    let options = list_options(&query)?;
    let found = found(&api, &caller, &id).await?;
    if !stream {
        let standing = found.state_with(options).await?;
        let standing = standing.ok_or_else(|| RequestError::response_not_found(&id))?;
        return response_view(standing, &id);
    }
    let first = found.after().await?;
    let begun = StartedResponse {
        thread: ThreadKey::clone(&found.thread),
        of: ResponseOf::Execution(found.execution),
        after: first.ok_or_else(|| RequestError::response_not_found(&id))?,
        repeated: false,
        ephemeral: None,
    };
    let mut stream = ResponseStream::new(begun.of.clone(), EventFraming::Sse).including(options);
    if let Some(number) = after {
        stream = stream.starting_after(number);
    }
    followed(begun, stream, api.open_stream(&caller)?).await
}

/// Stops a response that is being made.
async fn stop(found: &StoredResponse, id: &str) -> Result<(), ApiError> {
    let before = standing(found, id).await?;
    if let Some(execution) = before.stream.execution().filter(|_| before.end.is_none()) {
        let why = Interruption::USER_CANCELLED;
        match found.thread.cancel(Some(execution), why).await {
            // It has ended meanwhile.
            Ok(_) | Err(RuntimeError::NotRunning(_)) => {}
            Err(error) => return Err(refused(error, id)),
        }
    }
    Ok(())
}

/// Deletes a response; if it is running, it is stopped first. If its thread has nothing else, the thread
/// is deleted too. If the conversation continues, the response's items stay in it.
#[utoipa::path(delete, path = "/v1/responses/{response_id}", operation_id = "deleteResponse", tag = "responses", security(("key" = [])),
    params(("response_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    let found = found(&api, &caller, &id).await?;
    stop(&found, &id).await?;
    let alone = found.is_alone().await?;
    let alone = alone.ok_or_else(|| RequestError::response_not_found(&id))?;
    if alone {
        match delete_thread(&api, &found.thread).await {
            Err(RuntimeError::Store(StoreError::HasForks { .. })) => {}
            deleted => {
                deleted.map_err(|error| refused(error, &id))?;
                return Ok(Json(deleted_response(&id)));
            }
        }
    }
    hide(&found, &id).await?;
    Ok(Json(deleted_response(&id)))
}

/// Stops a running response and returns it. A finished response is not changed.
#[utoipa::path(post, path = "/v1/responses/{response_id}/cancel", operation_id = "cancelResponse", tag = "responses", security(("key" = [])),
    params(("response_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Response, ApiError> {
    let found = found(&api, &caller, &id).await?;
    caller.check_read()?;
    stop(&found, &id).await?;
    response_view(standing(&found, &id).await?, &id)
}

/// Lists the input of a response: the messages since the previous response, and the history that its
/// request supplied.
#[utoipa::path(get, path = "/v1/responses/{response_id}/input_items", operation_id = "listInputItems", tag = "responses", security(("key" = [])),
    params(("response_id" = String, Path), ("limit" = Option<u8>, Query), ("order" = Option<String>, Query), ("after" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn input(
    State(api): State<Api>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    Query(query): Query<Pairs>,
) -> Result<Response, ApiError> {
    let page = page(&query)?;
    let found = found(&api, &caller, &id).await?;
    let items = found.input(list_options(&query)?).await?;
    let items = items.ok_or_else(|| RequestError::response_not_found(&id))?;
    Ok(super::json(page.list(items)?))
}
