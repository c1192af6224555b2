//! Threads: creating, forking, closing, reopening, deleting.

use super::view::ThreadView;
use crate::auth::Caller;
use crate::body::{JsonBody, OptionalBody};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::{ThreadKey, check_new_key, delete_thread};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use runtime::{Cancelled, NewThreadRequest, ThreadRow};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use timeline::{ExecutionId, Interruption, Payload, Seq, ThreadUpdate};
use utoipa::ToSchema;

/// A thread to create.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewThread {
    /// The key. Default: a new one.
    key: Option<String>,
    /// For people.
    title: Option<String>,
    /// The application's own fields, an object. A few names are reserved for the server.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Payload>,
}

/// A change of a thread. An absent member stays, null removes it.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadChange {
    /// For people.
    #[serde(default, deserialize_with = "Member::present")]
    #[schema(value_type = Option<String>)]
    title: Member<String>,
    /// The application's own fields, an object that replaces the one before. A few names are reserved for
    /// the server, and `actors` and `parent_id` are changed by other requests.
    #[serde(default, deserialize_with = "Member::present")]
    #[schema(value_type = Option<Object>)]
    metadata: Member<Payload>,
}

/// A member of a change.
#[derive(Default)]
enum Member<T> {
    #[default]
    Absent,
    Present(Option<T>),
}

impl<T> Member<T> {
    fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>
    where
        T: Deserialize<'de>,
    {
        Option::deserialize(from).map(Self::Present)
    }
}

/// Where a fork begins.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// The key of the new thread. Default: a new one.
    key: Option<String>,
    /// The last event that the fork shares. Default: the last event of the thread.
    at: Option<u64>,
}

/// The execution to stop.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Cancel {
    /// Why; `user_cancelled` when absent.
    reason: Option<String>,
    /// Only if this execution runs.
    execution_id: Option<String>,
}

/// The end of a log after a change.
#[derive(Serialize, ToSchema)]
pub(crate) struct Changed {
    /// The last event.
    pub(super) seq: u64,
}

/// The result of a cancellation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelledView {
    /// The execution that was stopped; null if none ran.
    execution_id: Option<ExecutionId>,
    /// The last event.
    seq: Seq,
}

impl From<Cancelled> for CancelledView {
    fn from(Cancelled { execution_id, seq }: Cancelled) -> Self {
        Self { execution_id, seq }
    }
}

/// Checks an application's metadata: an object without names that the server reserves.
fn check_metadata(metadata: &Value, may_set: impl Fn(&str) -> bool) -> Result<(), ApiError> {
    let Value::Object(members) = metadata else {
        return Err(ApiError::field("/metadata", "expected an object"));
    };
    match members.keys().find(|key| !may_set(key)) {
        Some(own) => {
            let pointer = format!("/metadata/{own}");
            Err(ApiError::field(
                pointer,
                format!("expected {}", interop::metadata::EXPECTED),
            ))
        }
        None => Ok(()),
    }
}

/// Creates a thread, or finds the one with that key.
#[utoipa::path(post, path = "/threads", operation_id = "createThread", tag = "threads", security(("key" = [])), request_body = Option<NewThread>,
    responses((status = 201, description = "Made", body = ThreadView), (status = 200, description = "Found", body = ThreadView),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    OptionalBody(new): OptionalBody<NewThread>,
) -> Result<(StatusCode, Json<ThreadView>), ApiError> {
    let (row, created) = make(&api, &caller, new).await?;
    let status = if created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let view = ThreadView::made(row, created, caller.may_read());
    Ok((status, Json(view)))
}

/// Creates a thread, or finds the one with that key; the flag is true if it is new.
pub(super) async fn make(
    api: &Api,
    caller: &Caller,
    new: NewThread,
) -> Result<(ThreadRow, bool), ApiError> {
    check_new_key(caller, new.key.as_deref(), "/key")?;
    if let Some(metadata) = &new.metadata {
        check_metadata(&metadata.value(), |key| !interop::metadata::is_own(key))?;
    }
    let new = NewThreadRequest {
        key: new.key,
        title: new.title,
        metadata: new.metadata,
        fork: None,
    };
    Ok(api
        .runtime(&caller.tenant)
        .get_or_create(&caller.tenant, new)
        .await?)
}

/// Reads a thread.
#[utoipa::path(get, path = "/threads/{key}", operation_id = "readThread", tag = "threads", security(("key" = [])), params(("key" = String, Path)),
    responses((status = 200, body = ThreadView), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(thread: ThreadKey) -> Result<Json<ThreadView>, ApiError> {
    let row = thread.find().await?.into_row();
    let compaction = thread.current_compaction().await?;
    Ok(Json(ThreadView::from(row).with_compaction(compaction)))
}

/// Changes the title or the metadata of a thread.
#[utoipa::path(patch, path = "/threads/{key}", operation_id = "changeThread", tag = "threads", security(("key" = [])), params(("key" = String, Path)), request_body = ThreadChange,
    responses((status = 200, body = ThreadView), (status = "default", body = ErrorBody)))]
pub(crate) async fn change(
    thread: ThreadKey,
    JsonBody(change): JsonBody<ThreadChange>,
) -> Result<Json<ThreadView>, ApiError> {
    if let Member::Present(Some(metadata)) = &change.metadata {
        check_metadata(&metadata.value(), interop::metadata::is_replaceable)?;
    }
    let found = thread.find().await?;
    let changed = found.change_thread(move |thread| {
        let mut update = ThreadUpdate::default();
        if let Member::Present(title) = &change.title {
            update.title = Some(title.clone());
        }
        if let Member::Present(metadata) = &change.metadata {
            let before = thread.metadata.as_ref();
            update.metadata = Some(interop::metadata::replaced(before, metadata.clone()));
        }
        update
    });
    changed.await?;
    let row = found.reread().await?.into_row();
    let may_read = thread.caller().may_read();
    Ok(Json(ThreadView::made(row, false, may_read)))
}

/// Deletes a thread with all its data.
#[utoipa::path(delete, path = "/threads/{key}", operation_id = "deleteThread", tag = "threads", security(("key" = [])), params(("key" = String, Path)),
    responses((status = 204, description = "Deleted"), (status = "default", body = ErrorBody)))]
pub(crate) async fn delete(
    State(api): State<Api>,
    thread: ThreadKey,
) -> Result<StatusCode, ApiError> {
    delete_thread(&api, &thread.find().await?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forks a thread: creates a thread that continues from this one.
#[utoipa::path(post, path = "/threads/{key}/fork", operation_id = "forkThread", tag = "threads", security(("key" = [])), params(("key" = String, Path)),
    request_body = Option<NewFork>, responses((status = 201, body = ThreadView), (status = "default", body = ErrorBody)))]
pub(crate) async fn fork(
    caller: Caller,
    thread: ThreadKey,
    OptionalBody(fork): OptionalBody<NewFork>,
) -> Result<(StatusCode, Json<ThreadView>), ApiError> {
    check_new_key(&caller, fork.key.as_deref(), "/key")?;
    let row = thread.fork(fork.key, fork.at.map(Seq)).await?;
    Ok((StatusCode::CREATED, Json(row.into())))
}

/// Closes a thread for good.
#[utoipa::path(post, path = "/threads/{key}/close", operation_id = "closeThread", tag = "threads", security(("key" = [])), params(("key" = String, Path)),
    responses((status = 200, body = Changed), (status = "default", body = ErrorBody)))]
pub(crate) async fn close(thread: ThreadKey) -> Result<Json<Changed>, ApiError> {
    let seq = thread.close().await?;
    Ok(Json(Changed { seq: seq.0 }))
}

/// Opens a failed thread again.
#[utoipa::path(post, path = "/threads/{key}/reopen", operation_id = "reopenThread", tag = "threads", security(("key" = [])), params(("key" = String, Path)),
    responses((status = 200, body = Changed), (status = "default", body = ErrorBody)))]
pub(crate) async fn reopen(thread: ThreadKey) -> Result<Json<Changed>, ApiError> {
    let seq = thread.reopen().await?;
    Ok(Json(Changed { seq: seq.0 }))
}

/// Stops the running execution; the next queued message starts.
#[utoipa::path(post, path = "/threads/{key}/cancel", operation_id = "cancelThread", tag = "threads", security(("key" = [])), params(("key" = String, Path)),
    request_body = Option<Cancel>, responses((status = 200, body = CancelledView), (status = "default", body = ErrorBody)))]
pub(crate) async fn cancel(
    thread: ThreadKey,
    OptionalBody(cancel): OptionalBody<Cancel>,
) -> Result<Json<CancelledView>, ApiError> {
    let execution = cancel.execution_id.as_deref().map(ExecutionId::from);
    let cancelled = thread
        .cancel(execution.as_ref(), reason_of(&cancel))
        .await?;
    Ok(Json(cancelled.into()))
}

/// The reason to record; `user_cancelled` if the request has none.
pub(super) fn reason_of(cancel: &Cancel) -> &str {
    cancel
        .reason
        .as_deref()
        .unwrap_or(Interruption::USER_CANCELLED)
}
