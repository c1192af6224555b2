//! Threads: made, read, changed, deleted.

use super::find;
use super::{attach, lookup, message_pointers, not_found};
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::OptionalBody;
use crate::error::openai::Worded;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::{IdempotencyKey, KeyedOptionalBody, check_made, note_made};
use crate::state::Api;
use crate::threads::{
    NamedThread, ThreadKey, ThreadRef, check_new_key, delete_thread_locked, id_for,
};
use axum::Json;
use axum::extract::State;
use interop::aitp::{
    Actor, MessageViolation, ParticipantChange, Participants, ThreadMetadata, read_actors,
};
use interop::ids::{RUN, THREAD};
use interop::threads::{
    CreateThread, Deleted, ModifyThread, ObjectKind, RequestError, Run, ThreadObject, thread_object,
};
use jiff::Timestamp;
use runtime::{Import, RuntimeError, StoreError};
use serde_json::Value;
use std::collections::BTreeSet;
use timeline::{Command, Fork, NewItem, Seq, ThreadUpdate};

/// Creates a thread, with messages if the body has any. A repetition with the same `idempotency-key`
/// finds the thread of the first request.
#[utoipa::path(post, path = "/v1/threads", operation_id = "openaiCreateThread", tag = "threads-api", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    KeyedOptionalBody(body, idempotency): KeyedOptionalBody<Option<Value>>,
) -> Result<Json<ThreadObject>, ApiError> {
    let (found, _) = made(&api, caller, idempotency, body.as_ref()).await?;
    thread_view(&api, &found).await.map(Json)
}

/// Creates a thread in AITP-T01's form: the path is singular, and the response has the messages.
#[utoipa::path(post, path = "/v1/thread", operation_id = "aitpCreateThread", tag = "threads-api", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create_aitp(
    State(api): State<Api>,
    caller: Caller,
    KeyedOptionalBody(body, idempotency): KeyedOptionalBody<Option<Value>>,
) -> Result<Json<ThreadObject>, ApiError> {
    let (found, is_new) = made(&api, caller, idempotency, body.as_ref()).await?;
    if !is_new && !found.caller().may_read() {
        // Others may have said something since.
        return thread_view(&api, &found).await.map(Json);
    }
    with_messages(&api, &found).await.map(Json)
}

async fn made(
    api: &Api,
    caller: Caller,
    idempotency: IdempotencyKey,
    body: Option<&Value>,
) -> Result<(ThreadRef, bool), ApiError> {
    let mut asked = CreateThread::read(body)?;
    check_new_key(&caller, None, "")?;
    let token = idempotency.token("threads")?;
    let (tenant, runtime) = (&caller.tenant, api.runtime(&caller.tenant));
    let key = token.as_deref();
    let key = key.map(|token| id_for(api, &[tenant.as_str()], Some(token)));
    // A repetition needs no file: those of the first may be gone by now.
    if let Some(found) = known(api, &caller, key.as_deref()).await? {
        if let Some(token) = &token {
            check_made(api, tenant, found.key(), token).await?;
        }
        return Ok((found, false));
    }
    let n_bytes = attach::attach(api, tenant, false, &mut asked.messages).await?;
    let (now, metadata) = (Timestamp::now(), asked.stored());
    let fork = parent(api, &caller, &asked).await?;
    let items = items(api, asked.messages).into_iter();
    let commands = items.map(|item| (now, Command::Record { item }));
    let mut commands: Vec<_> = commands.collect();
    let body = body.unwrap_or(&Value::Null);
    MessagePost::new(api, &caller)
        .begin(metadata.clone(), fork.as_ref(), &mut commands, |n| {
            message_pointers(&format!("/messages/{n}"), body)
        })
        .await?;
    let import = Import {
        title: None,
        metadata,
        fork,
        created_at: Some(now),
        commands,
    };
    let own = api.clone();
    let imported = runtime.run_to_completion(async move {
        let made = imported(&own, &caller, key, (import, n_bytes)).await?;
        if let Some(token) = &token {
            note_made(&own, &caller.tenant, made.key(), token, Some(made.id())).await?;
        }
        Ok((made, true))
    });
    imported.await
}

/// Creates a thread whose messages have this many bytes of attachments, and stores the count. Both
/// happen even if the client disconnects.
async fn imported(
    api: &Api,
    caller: &Caller,
    key: Option<String>,
    (import, n_bytes): (Import, u64),
) -> Result<ThreadRef, ApiError> {
    let (runtime, tenant) = (api.runtime(&caller.tenant), &caller.tenant);
    match (runtime.import(tenant, key.clone(), import).await, key) {
        // It was made before.
        (Err(RuntimeError::NotEmpty), Some(key)) => {
            Ok(ThreadKey::new(api, caller, &key)?.find().await?)
        }
        (made, _) => {
            let made = ThreadRef::authorise(runtime, caller, made?)?;
            let _turn = api.turns().of(made.id()).await;
            // Less than a thread may have: it is new.
            if let Some(brought) = attach::check(api, tenant, made.id(), n_bytes).await? {
                // Wherever it is forked: its messages are there from the beginning.
                brought.count(api, tenant, Seq::ZERO.next()).await?;
            }
            Ok(made)
        }
    }
}

/// The thread that an earlier request with the same token created.
pub(super) async fn known(
    api: &Api,
    caller: &Caller,
    key: Option<&str>,
) -> Result<Option<ThreadRef>, ApiError> {
    let Some(key) = key else {
        return Ok(None);
    };
    match ThreadKey::new(api, caller, key)?.find().await {
        Ok(found) => Ok(Some(found)),
        Err(RuntimeError::Store(StoreError::NotFound)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The fork point of the new thread, if AITP's `parent_id` names a parent.
pub(super) async fn parent(
    api: &Api,
    caller: &Caller,
    asked: &CreateThread,
) -> Result<Option<Fork>, ApiError> {
    let metadata = ThreadMetadata::read_parent(asked.metadata.map());
    let Some(id) = metadata.map_err(|wrong| unreadable(&wrong))? else {
        return Ok(None);
    };
    let found = ThreadRef::find(api, caller, THREAD, &id).await?;
    let found = found.ok_or_else(|| not_found(ObjectKind::Thread, &id))?;
    // The answer has who takes part in the parent, and may have its messages.
    caller.check_read()?;
    Ok(Some(
        api.runtime(&caller.tenant)
            .fork_point(found.into_row(), None)
            .await?,
    ))
}

/// The error of invalid AITP metadata.
fn unreadable(wrong: &MessageViolation) -> ApiError {
    let what = format!("expected {}", wrong.expected);
    ApiError::field(format!("/metadata{}", wrong.pointer), what)
}

/// The thread with its current participants and its parent.
pub(super) async fn thread_view(api: &Api, found: &ThreadRef) -> Result<ThreadObject, ApiError> {
    let speech = MessagePost::new(api, found.caller());
    let held = speech.locked_state(found.row()).await?;
    let mut thread = found.row().thread.clone();
    let roster = held.get().map(|desk| desk.participants().metadata(&thread));
    let mut metadata = roster.unwrap_or_default();
    if let Some(fork) = &thread.fork {
        let parent = THREAD.write(fork.thread_id.as_str());
        metadata.insert("parent_id".to_owned(), parent.into());
    }
    if !metadata.is_empty() {
        thread.metadata = Some(Value::Object(metadata).into());
    }
    Ok(thread_object(&thread).value)
}

/// The messages of a request, as items.
pub(super) fn items(api: &Api, messages: Vec<interop::threads::CreateMessage>) -> Vec<NewItem> {
    let messages = messages.into_iter();
    messages.map(|message| message.item(&api.mint())).collect()
}

async fn with_messages(api: &Api, found: &ThreadRef) -> Result<ThreadObject, ApiError> {
    Ok(ThreadObject {
        messages: Some(lookup::all_messages(found).await?),
        ..thread_view(api, found).await?
    })
}

/// Reads a thread.
#[utoipa::path(get, path = "/v1/threads/{thread_id}", operation_id = "openaiReadThread", tag = "threads-api", security(("key" = [])), params(("thread_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    named: NamedThread,
) -> Result<Json<ThreadObject>, ApiError> {
    let found = find(&api, &named).await?;
    thread_view(&api, &found).await.map(Json)
}

/// Changes the metadata of a thread.
///
/// Without a change this is the way in which AITP-T01 retrieves a thread; the response then has its
/// messages.
#[utoipa::path(post, path = "/v1/threads/{thread_id}", operation_id = "openaiModifyThread", tag = "threads-api", security(("key" = [])), params(("thread_id" = String, Path)),
    request_body = Option<Object>, responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn modify(
    State(api): State<Api>,
    named: NamedThread,
    OptionalBody(body): OptionalBody<Option<Value>>,
) -> Result<Json<ThreadObject>, ApiError> {
    let found = find(&api, &named).await?;
    found.caller().check_read()?;
    let mut asked = ModifyThread::read(body.as_ref())?;
    if asked.is_empty() {
        return with_messages(&api, &found).await.map(Json);
    }
    let _turn = api.turns().of(found.id()).await;
    if let Some(actors) = asked.take_actors() {
        let actors = read_actors(&actors, "/actors").map_err(|wrong| unreadable(&wrong))?;
        take_part(&api, &found, actors).await?;
    }
    let changed = found.change_thread(move |thread| ThreadUpdate {
        title: None,
        metadata: Some(Some(asked.clone().stored(thread.metadata.as_ref()))),
    });
    changed.await?;
    thread_view(&api, &found.reread().await?).await.map(Json)
}

/// Makes the participants equal to a list: new actors join, missing ones leave, and changed ones declare
/// their capabilities.
async fn take_part(api: &Api, found: &ThreadRef, actors: Vec<Actor>) -> Result<(), ApiError> {
    let speech = MessagePost::new(api, found.caller());
    let held = speech.locked_state(found.row()).await?;
    let changes = held.get().map(|desk| changes(desk.participants(), actors));
    drop(held);
    let changes = changes.unwrap_or_default().into_iter();
    let changes = changes.map(|change| (change, api.mint()));
    let changes: Vec<_> = changes.collect();
    if changes.is_empty() {
        return Ok(());
    }
    let place = |_| BodyPointers::text("/metadata/actors").by("/metadata/actors");
    speech.change(found, changes, place).await?;
    Ok(())
}

fn changes(roster: &Participants, actors: Vec<Actor>) -> Vec<ParticipantChange> {
    let listed: BTreeSet<&str> = actors.iter().map(|actor| actor.id.as_str()).collect();
    let present = roster.present().map(|member| member.actor.id.as_str());
    let leave = |id: &str| ParticipantChange::Leave {
        actor_id: id.to_owned(),
    };
    let leave = present.filter(|id| !listed.contains(id)).map(leave);
    let mut changes: Vec<ParticipantChange> = leave.collect();
    for actor in actors {
        match roster.member(&actor.id) {
            None => changes.push(ParticipantChange::Join {
                actor,
                principal: None,
                initiator: false,
            }),
            Some(known) if known.actor.capabilities != actor.capabilities => {
                changes.push(ParticipantChange::Declare {
                    actor_id: actor.id,
                    capabilities: actor.capabilities,
                });
            }
            Some(_) => {}
        }
    }
    changes
}

/// Deletes a thread with all its data; refused while one of its runs is active.
#[utoipa::path(delete, path = "/v1/threads/{thread_id}", operation_id = "openaiDeleteThread", tag = "threads-api", security(("key" = [])), params(("thread_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    named: NamedThread,
) -> Result<Json<Deleted>, ApiError> {
    let found = find(&api, &named).await?;
    let (own, id) = (api.clone(), THREAD.write(found.id().as_str()));
    let runtime = found.runtime().clone();
    let deleted = runtime.run_to_completion(async move { deleted(&own, &found).await });
    deleted.await?;
    Ok(Json(Deleted::new("thread.deleted", id)))
}

/// Deletes a thread without an active run, and its sidecar objects. Both happen even if the client
/// disconnects.
async fn deleted(api: &Api, found: &ThreadRef) -> Result<(), ApiError> {
    let _turn = api.turns().of(found.id()).await;
    lookup::check_free(found, Run::check_delete).await?;
    match delete_thread_locked(api, found).await {
        Err(RuntimeError::Busy(execution)) => {
            // It has begun since, by another protocol.
            let (thread, run) = (
                THREAD.write(found.id().as_str()),
                RUN.write(execution.as_str()),
            );
            Err(RequestError::DeletionLocked { thread, run }.into())
        }
        Err(RuntimeError::Store(StoreError::HasForks { .. })) => {
            // No conflict: OpenAI's packages would repeat it.
            let refused = format!(
                "Can't delete {}: other threads are forked from it. Delete them first.",
                THREAD.write(found.id().as_str())
            );
            Err(Worded::invalid(None, None, refused).into())
        }
        deleted => Ok(deleted?),
    }
}
