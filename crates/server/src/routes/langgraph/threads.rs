//! Threads: creating, reading, changing, copying, deleting.

use super::Standing;
use super::resent::leave_out_of;
use super::{find, found};
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::{JsonBody, OptionalBody};
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::{KeyedOptionalBody, check_made, note_made};
use crate::state::Api;
use crate::threads::unfollowed;
use crate::threads::{NamedThread, ThreadRef, check_key, check_new_key, delete_thread, id_for};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use interop::langgraph::{
    ErrorKind, InputMessage, RequestError, ThreadCreate, ThreadOptions, ThreadPatch,
    merged_metadata, shown_id, thread_object, values_of,
};
use interop::model::unreadable_part;
use runtime::{Filter, NewThreadRequest, Runtime, StoreError};
use serde_json::Value;
use timeline::{ContentError, NewItem, Rejected, Thread, ThreadUpdate, check_parts};

/// The object of a thread with its values. Costs time proportional to the thread.
pub(super) async fn object(found: &ThreadRef) -> Result<Value, ApiError> {
    let transcript = found.transcript(Filter::Facts).await?;
    let standing = Standing::of(found).await?;
    let values = Some(values_of(&transcript));
    Ok(with(&found.row().thread, &standing, values))
}

/// The object of a thread with these values.
pub(super) fn with(thread: &Thread, standing: &Standing, values: Option<Value>) -> Value {
    let shown = ThreadOptions {
        status: standing.status,
        interrupted: standing.interrupted(),
        values,
    };
    thread_object(thread, shown)
}

/// Creates a thread, with the client's id or a new one.
#[utoipa::path(post, path = "/threads", operation_id = "langgraphCreateThread", tag = "langgraph", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    KeyedOptionalBody(body, idempotency): KeyedOptionalBody<Value>,
) -> Result<Json<Value>, ApiError> {
    let mut token = None;
    let mut asked = ThreadCreate::read(&super::object(body))?;
    check_new_key(&caller, asked.thread_id.as_deref(), "/thread_id")?;
    if asked.thread_id.is_none()
        && let Some(named) = idempotency.token("langgraph.threads")?
    {
        asked.takes_existing = true;
        asked.thread_id = Some(id_for(&api, &[caller.tenant.as_str()], Some(&named)));
        token = Some(named);
    }
    let (found, is_new) = made(&api, &caller, &asked).await?;
    if let Some(token) = &token {
        let (tenant, key) = (found.tenant(), found.key());
        if is_new {
            note_made(&api, tenant, key, token, Some(found.id())).await?;
        } else {
            check_made(&api, tenant, key, token).await?;
        }
    }
    if !is_new && !asked.takes_existing {
        let id = shown_id(&found.row().thread);
        let what = format!("Thread {id:?} exists already");
        return Err(RequestError::new(ErrorKind::Conflict, what).into());
    }
    if is_new || caller.may_read() {
        return Ok(Json(object(&found).await?));
    }
    let standing = Standing {
        asked: Vec::default(),
        ..Standing::of(&found).await?
    };
    let thread = Thread {
        metadata: None,
        ..found.row().thread.clone()
    };
    Ok(Json(with(&thread, &standing, None)))
}

/// The thread to create, or the one that exists already; the flag is true if it is new.
pub(super) async fn made(
    api: &Api,
    caller: &Caller,
    asked: &ThreadCreate,
) -> Result<(ThreadRef, bool), ApiError> {
    if let Some(id) = &asked.thread_id {
        check_key(id, "/thread_id")?;
        if let Some(found) = find(api, caller, id).await? {
            return Ok((found, false));
        }
    }
    let new = NewThreadRequest {
        key: asked.thread_id.clone(),
        metadata: (!asked.metadata.is_empty())
            .then(|| Value::Object(asked.metadata.clone()).into()),
        ..NewThreadRequest::default()
    };
    let runtime = api.runtime(&caller.tenant);
    let (row, is_new) = runtime.get_or_create(&caller.tenant, new).await?;
    let made = ThreadRef::authorise(runtime, caller, row)?;
    Ok((made, is_new))
}

/// Reads a thread with its values: all of its messages.
#[utoipa::path(get, path = "/threads/{thread_id}", operation_id = "langgraphReadThread", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path)), responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
) -> Result<Json<Value>, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    Ok(Json(object(&found).await?))
}

/// Changes the metadata of a thread, and appends messages without starting an agent.
#[utoipa::path(patch, path = "/threads/{thread_id}", operation_id = "langgraphChangeThread", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path)), request_body = Object,
    responses((status = 200, body = Object), (status = 204, description = "As `Prefer: return=minimal` asks"), (status = "default", body = ErrorBody)))]
pub(super) async fn change(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    let asked = ThreadPatch::read(&body)?;
    let mut wanted = headers.get_all("prefer").iter();
    let is_minimal = wanted.any(|it| it == "return=minimal");
    if !is_minimal {
        caller.check_read()?;
    }
    let _turn = api.turns().of(found.id()).await;
    let speech = MessagePost::new(&api, &caller);
    unfollowed(async || {
        let mut input = asked.input.clone();
        leave_out_of(&found, &caller, &mut input).await?;
        post_message(&speech, &found, input.messages_only()?).await
    })
    .await?;
    if !asked.metadata.is_empty() {
        let new = asked.metadata;
        let changed = found.change_thread(move |thread| ThreadUpdate {
            title: None,
            metadata: Some(Some(merged_metadata(thread.metadata.as_ref(), new.clone()))),
        });
        changed.await?;
    }
    if is_minimal {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let found = found.reread().await?;
    Ok(Json(object(&found).await?).into_response())
}

/// Appends messages without starting an agent, and returns the last one's id. Refused while the thread
/// is busy, and while calls are pending, because a message would abandon them.
pub(super) async fn post_message(
    speech: &MessagePost<'_>,
    found: &ThreadRef,
    said: Vec<InputMessage>,
) -> Result<Option<String>, ApiError> {
    if said.is_empty() {
        return Ok(None);
    }
    let (state, tail) = found.state().await?;
    let refused = |what: &str| Err(RequestError::new(ErrorKind::Conflict, what).into());
    if state.active().is_some() || state.waiting().len() > 0 {
        return refused("the thread is busy: wait for its run, or cancel it");
    }
    if state.open().is_some() {
        return refused("calls of the thread wait for answers: resume it, or cancel its run");
    }
    let Words {
        items,
        positions: places,
    } = Words::read(found.runtime(), said)?;
    let last = items.last().map(|item| item.id.to_string());
    let recorded = speech.record(found, items, Some(tail), |n| position(&places, n));
    recorded.await.map_err(known_already)?;
    Ok(last)
}

/// The messages of a request as items, each with its JSON pointers in the body.
#[derive(Clone, Default)]
pub(super) struct Words {
    pub(super) items: Vec<NewItem>,
    pub(super) positions: Vec<BodyPointers>,
}

impl Words {
    /// Checks the contents of messages, and makes items of them.
    pub(super) fn read(runtime: &Runtime, said: Vec<InputMessage>) -> Result<Self, ApiError> {
        let mut words = Self::default();
        for said in said {
            let at = said.pointer.as_str();
            let Value::Array(parts) = said.content.value() else {
                return Err(RequestError::at(at, ContentError::NotAList).into());
            };
            check_parts(&parts).map_err(|error| RequestError::at(at, error))?;
            if let Some(place) = unreadable_part(&parts) {
                let what = "this file is neither base64 nor at an address";
                return Err(RequestError::at(format!("{at}/{place}"), what).into());
            }
            words.positions.push(if said.has_parts {
                BodyPointers::parts(at)
            } else {
                BodyPointers::text(at)
            });
            words.items.push(said.item(|| runtime.mint()));
        }
        Ok(words)
    }
}

/// The JSON pointers of the message with this index.
pub(super) fn position(places: &[BodyPointers], n: usize) -> BodyPointers {
    places.get(n).cloned().unwrap_or_default()
}

/// Maps errors to these protocols. A message is identified by its id: sending it again does not change
/// the stored one.
pub(super) fn known_already(error: runtime::RuntimeError) -> ApiError {
    if let runtime::RuntimeError::Store(StoreError::Duplicate(id)) = &error {
        let what = format!("the thread has a message {id:?} already: send only what is new");
        return RequestError::new(ErrorKind::Conflict, what).into();
    }
    if let runtime::RuntimeError::Busy(execution) = &error {
        let what = format!(
            "the thread is busy with run {execution}: wait for it, or say \"enqueue\" or \"interrupt\""
        );
        return RequestError::conflict("/multitask_strategy", what).into();
    }
    if let runtime::RuntimeError::Rejected(Rejected::Role) = &error {
        return RequestError::at("", "a message of this role can't be said here").into();
    }
    error.into()
}

/// Copies a thread; the copy then changes independently.
#[utoipa::path(post, path = "/threads/{thread_id}/copy", operation_id = "langgraphCopyThread", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path)), request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn copy(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    _: OptionalBody<Value>,
) -> Result<Json<Value>, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    check_new_key(&caller, None, "")?;
    caller.check_read()?;
    let row = found.fork(None, None).await?;
    let copied = ThreadRef::authorise(found.runtime(), &caller, row)?;
    let noted = found.row().thread.metadata.as_ref();
    if let Some(noted) = noted {
        let metadata = interop::langgraph::copied_metadata(noted);
        let noted = copied.change_thread(move |_| ThreadUpdate {
            title: None,
            metadata: Some(Some(metadata.clone())),
        });
        noted.await?;
    }
    Ok(Json(object(&copied.reread().await?).await?))
}

/// Deletes a thread with all its data; refused while an agent is running.
#[utoipa::path(delete, path = "/threads/{thread_id}", operation_id = "langgraphDeleteThread", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path)), responses((status = 204), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
) -> Result<StatusCode, ApiError> {
    let found = found(&api, &caller, named.id()).await?;
    delete_thread(&api, &found).await?;
    Ok(StatusCode::NO_CONTENT)
}
