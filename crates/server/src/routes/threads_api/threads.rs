//! Threads: made, read, changed, deleted.

use super::{Found, attach, id_for, look, notes, token};
use crate::auth::Caller;
use crate::body::{OptionalBody, PathOf};
use crate::error::{ApiError, ErrorBody};
use crate::routes::check_named_key;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use http::HeaderMap;
use interop::ids::{RUN, THREAD};
use interop::threads::{
    CreateThread, Deleted, ModifyThread, RequestError, Run, ThreadObject, thread_object,
};
use jiff::Timestamp;
use runtime::{Import, RuntimeError, ThreadRow};
use serde_json::Value;
use timeline::{Command, NewItem, ThreadUpdate};

/// Makes a thread, with messages if the body has some. With `idempotency-key` a repetition finds the
/// thread that was made.
#[utoipa::path(post, path = "/v1/threads", operation_id = "openaiCreateThread", tag = "threads-api", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    OptionalBody(body): OptionalBody<Option<Value>>,
) -> Result<Json<ThreadObject>, ApiError> {
    let found = made(&api, caller, &headers, body.as_ref()).await?;
    Ok(Json(thread_object(&found.row.thread).value))
}

/// Makes a thread as AITP-T01 has it: the path in the singular, and the answer with its messages.
#[utoipa::path(post, path = "/v1/thread", operation_id = "aitpCreateThread", tag = "threads-api", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create_aitp(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    OptionalBody(body): OptionalBody<Option<Value>>,
) -> Result<Json<ThreadObject>, ApiError> {
    let found = made(&api, caller, &headers, body.as_ref()).await?;
    with_messages(&api, &found).await.map(Json)
}

async fn made(
    api: &Api,
    caller: Caller,
    headers: &HeaderMap,
    body: Option<&Value>,
) -> Result<Found, ApiError> {
    let mut asked = CreateThread::read(body)?;
    check_named_key(&caller, None, "")?;
    let n_bytes = attach::attach(api, &caller.tenant, false, &mut asked.messages).await?;
    let token = token(headers, "threads")?;
    let metadata = asked.kept();
    let (now, mut commands) = (Timestamp::now(), Vec::new());
    for message in asked.messages {
        let item = message.item(&api.runtime().mint());
        caller.check_speaker(item.metadata.as_ref(), "/messages/metadata")?;
        commands.push((now, Command::Record { item }));
    }
    let import = Import {
        title: None,
        metadata,
        created_at: Some(now),
        commands,
    };
    let tenant = &caller.tenant;
    let key = token.map(|token| id_for(api, &[tenant.as_str()], Some(&token)));
    let runtime = api.runtime();
    let row: ThreadRow = match (runtime.import(tenant, key.clone(), import).await, key) {
        // It was made before.
        (Err(RuntimeError::NotEmpty), Some(key)) => runtime.find(tenant, &key).await?,
        (made, _) => {
            let row = made?;
            let _turn = api.turns().of(&row.thread.id).await;
            attach::count(api, tenant, &row.thread.id, n_bytes).await?;
            row
        }
    };
    Ok(Found { caller, row })
}

/// The messages that a request brings, as items.
pub(super) fn items(api: &Api, messages: Vec<interop::threads::CreateMessage>) -> Vec<NewItem> {
    let messages = messages.into_iter();
    messages
        .map(|message| message.item(&api.runtime().mint()))
        .collect()
}

async fn with_messages(api: &Api, found: &Found) -> Result<ThreadObject, ApiError> {
    Ok(ThreadObject {
        messages: Some(look::all_messages(api, found).await?),
        ..thread_object(&found.row.thread).value
    })
}

/// Reads a thread.
#[utoipa::path(get, path = "/v1/threads/{thread_id}", operation_id = "openaiReadThread", tag = "threads-api", security(("key" = [])), params(("thread_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    caller: Caller,
    PathOf(thread_id): PathOf<String>,
) -> Result<Json<ThreadObject>, ApiError> {
    let found = Found::of(&api, caller, &thread_id).await?;
    Ok(Json(thread_object(&found.row.thread).value))
}

/// Changes what is noted on a thread. Without a change it is how AITP-T01 retrieves a thread: then
/// the answer has its messages.
#[utoipa::path(post, path = "/v1/threads/{thread_id}", operation_id = "openaiModifyThread", tag = "threads-api", security(("key" = [])), params(("thread_id" = String, Path)),
    request_body = Option<Object>, responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn modify(
    State(api): State<Api>,
    caller: Caller,
    PathOf(thread_id): PathOf<String>,
    OptionalBody(body): OptionalBody<Option<Value>>,
) -> Result<Json<ThreadObject>, ApiError> {
    let found = Found::of(&api, caller, &thread_id).await?;
    let asked = ModifyThread::read(body.as_ref())?;
    if asked.is_empty() {
        return with_messages(&api, &found).await.map(Json);
    }
    let runtime = api.runtime();
    let thread = &found.row.thread.id;
    let _turn = api.turns().of(thread).await;
    let before = runtime.find_by_id(&found.caller.tenant, thread).await?;
    let update = ThreadUpdate {
        title: None,
        metadata: Some(Some(asked.kept(before.thread.metadata.as_ref()))),
    };
    let key = found.key();
    runtime
        .update_thread(&found.caller.tenant, key, update)
        .await?;
    let changed = runtime.find_by_id(&found.caller.tenant, thread).await?;
    Ok(Json(thread_object(&changed.thread).value))
}

/// Deletes a thread and everything of it; refused while a run of it is active.
#[utoipa::path(delete, path = "/v1/threads/{thread_id}", operation_id = "openaiDeleteThread", tag = "threads-api", security(("key" = [])), params(("thread_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    PathOf(thread_id): PathOf<String>,
) -> Result<Json<Deleted>, ApiError> {
    let found = Found::of(&api, caller, &thread_id).await?;
    let id = THREAD.write(found.id());
    let _turn = api.turns().of(&found.row.thread.id).await;
    look::check_free(&api, &found, Run::check_delete).await?;
    match api
        .runtime()
        .delete(&found.caller.tenant, found.key())
        .await
    {
        Err(RuntimeError::Busy(execution)) => {
            // It has begun since, by another protocol.
            let run = RUN.write(execution.as_str());
            return Err(RequestError::DeletionLocked { thread: id, run }.into());
        }
        deleted => deleted?,
    }
    notes::forget(&api, &found.caller.tenant, found.id()).await?;
    Ok(Json(Deleted::new("thread.deleted", id)))
}
