//! Starts an execution for a request: on a new thread, on the continued thread, on a fork of that, or on
//! a thread that is not stored.

use super::continuation::{Continuation, StartedResponse};
use super::models::run_of;
use super::past::{StoredResponse, find};
use super::refused::refused;
use crate::aitp::MessagePost;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::{Ephemeral, ThreadKey, ThreadRef, delete_thread};
use interop::ids::CONVERSATION;
use interop::responses::{Continues, CreateRequest, Last, RequestError, transcript_until};
use jiff::Timestamp;
use runtime::{Import, RequestToken, Run, RuntimeError};
use std::collections::BTreeMap;
use timeline::{ExecutionId, Payload, Transcript};

/// A response that is not stored. It can be continued while this value exists.
pub(in crate::routes) struct LockedResponse {
    pub(super) id: String,
    pub(super) execution: ExecutionId,
    pub(super) ephemeral: Ephemeral,
}

/// Starts the requested response. Takes `held` if the request continues that response.
pub(in crate::routes) async fn begin(
    api: &Api,
    caller: &Caller,
    request: CreateRequest,
    token: Option<RequestToken>,
    held: &mut Option<LockedResponse>,
) -> Result<StartedResponse, ApiError> {
    let run = run_of(api.app(), request.options.clone());
    match request.continues.clone() {
        Continues::Nothing => {
            check_new(caller)?;
            start_new(api, caller, &request, run?, token).await
        }
        Continues::Response { id, .. } => {
            // One that can't be gone on with as it was asked is not gone on with at all.
            if let Some(held) = held.take_if(|held| held.id == id) {
                return after_locked(api, caller, request, run?, held).await;
            }
            let found = find(api, caller, &id).await?;
            let found = found.ok_or_else(|| RequestError::previous_response_not_found(&id))?;
            // By far the largest of these futures: on the heap, so that the others are small.
            Box::pin(after(api, caller, request, run?, token, &found, &id)).await
        }
        Continues::Conversation { id, .. } => {
            let found = ThreadRef::find(api, caller, CONVERSATION, &id).await?;
            let found = found.ok_or_else(|| RequestError::conversation_not_found(&id))?;
            let site = Continuation {
                thread: ThreadKey::clone(&found),
                speech: MessagePost::new(api, caller),
                continued_id: &id,
                must_exist: true,
                input_at: request.input_at,
            };
            if request.store {
                return site.continue_from(&request, run?, token).await;
            }
            site.check_rest()
                .await
                .map_err(|error| refused(error, &id))?;
            let past = site.transcript().await?;
            copied(api, caller, request, run?, &past).await
        }
    }
}

/// Refuses a new thread to a caller whose key is limited to some threads.
pub(super) fn check_new(caller: &Caller) -> Result<(), ApiError> {
    if caller.rights.threads.is_some() {
        return Err(ApiError::ForbiddenThread);
    }
    Ok(())
}

/// Continues a response: on its thread if it is the last one there, else on a fork.
async fn after(
    api: &Api,
    caller: &Caller,
    request: CreateRequest,
    run: Run,
    token: Option<RequestToken>,
    found: &StoredResponse,
    id: &str,
) -> Result<StartedResponse, ApiError> {
    let mut site = Continuation {
        thread: ThreadKey::clone(&found.thread),
        speech: MessagePost::new(api, caller),
        continued_id: id,
        must_exist: true,
        input_at: request.input_at,
    };
    // A repetition is answered before anything else is asked: the thread has gone on since.
    if request.store
        && let Some(begun) = site.repeated(token.as_ref()).await?
    {
        return Ok(begun);
    }
    let standing = found.state().await?;
    let standing = standing.ok_or_else(|| RequestError::previous_response_not_found(id))?;
    let Some(end) = standing.end else {
        return Err(RequestError::conversation_locked(id).into());
    };
    if !request.store {
        let past = found.past().await?;
        let past = past.ok_or_else(|| RequestError::previous_response_not_found(id))?;
        return copied(api, caller, request, run, &past).await;
    }
    let last = site.go_on_after(&request, run.clone(), token.clone(), end);
    if let Some(begun) = last.await? {
        return Ok(begun);
    }
    check_new(caller)?;
    let (forked, is_new) = site.fork(token.as_deref().map(str::to_owned), end).await?;
    site.thread = forked.clone();
    let begun = site.continue_from(&request, run, token).await;
    if begun.is_err() && is_new {
        give_up(api, &forked).await;
    }
    begun
}

/// Deletes a fork that was made for a response that is not to be.
async fn give_up(api: &Api, thread: &ThreadKey) {
    let deleted = async { delete_thread(api, &thread.find().await?).await };
    if let Err(error) = deleted.await {
        tracing::warn!(%error, key = thread.key(), "a fork stays that nothing was said on");
    }
}

/// Continues a response that is not stored.
async fn after_locked(
    api: &Api,
    caller: &Caller,
    request: CreateRequest,
    run: Run,
    held: LockedResponse,
) -> Result<StartedResponse, ApiError> {
    let LockedResponse {
        id,
        execution,
        ephemeral: passing,
    } = held;
    let site = Continuation {
        thread: passing.thread().clone(),
        speech: MessagePost::ephemeral(api, caller),
        continued_id: &id,
        must_exist: true,
        input_at: request.input_at,
    };
    if request.store {
        let past = transcript_until(site.transcript().await?, &execution);
        let past = past.ok_or_else(|| RequestError::previous_response_not_found(&id))?;
        let request = request.with_past(&past)?;
        check_new(caller)?;
        return start_new(api, caller, &request, run, None).await;
    }
    let begun = site.continue_from(&request, run, None).await?;
    Ok(StartedResponse {
        ephemeral: Some(passing),
        ..begun
    })
}

/// Continues a copy of a whole conversation, on a thread that is not stored.
async fn copied(
    api: &Api,
    caller: &Caller,
    request: CreateRequest,
    run: Run,
    past: &Transcript,
) -> Result<StartedResponse, ApiError> {
    start_new(api, caller, &request.with_past(past)?, run, None).await
}

/// Starts a response on a new thread with the history that the request supplied.
///
/// The token is the thread's key, so that a repeated request finds the thread.
async fn start_new(
    api: &Api,
    caller: &Caller,
    request: &CreateRequest,
    run: Run,
    token: Option<RequestToken>,
) -> Result<StartedResponse, ApiError> {
    let (speech, token) = if request.store {
        (MessagePost::new(api, caller), token)
    } else {
        (MessagePost::ephemeral(api, caller), None)
    };
    let (runtime, tenant) = (speech.runtime(), &caller.tenant);
    let key = token.as_deref().map(str::to_owned);
    let key = key.unwrap_or_else(|| runtime.mint());
    let thread = if request.store {
        ThreadKey::new(api, caller, &key)?
    } else {
        ThreadKey::ephemeral(api, caller, &key)
    };
    let mut site = Continuation {
        thread,
        speech,
        continued_id: &key,
        must_exist: false,
        input_at: request.input_at,
    };
    if token.is_some()
        && let Some(begun) = site.repeated(token.as_ref()).await?
    {
        return Ok(begun);
    }
    let kept = Payload::write(&run).map_err(RuntimeError::from)?;
    let mut mint = || runtime.mint();
    let said = request.thread_input(&BTreeMap::new(), Some(&kept), Timestamp::now(), &mut mint)?;
    let passing = (!request.store).then(|| Ephemeral::new(site.thread.clone()));
    if let Last::Item(item) = &said.last {
        // Before the past is kept: who is refused has changed nothing.
        let position = site.position();
        site.speech.judge_after(&said.past, item, position)?;
    }
    if !said.past.is_empty() {
        let import = Import {
            commands: said.past.clone(),
            ..Import::default()
        };
        match runtime.import(tenant, Some(key.clone()), import).await {
            Ok(_) => {}
            // The same request has been here before.
            Err(RuntimeError::NotEmpty) if token.is_some() => {}
            Err(error) => return Err(refused(error, &key)),
        }
    }
    site.must_exist = !said.past.is_empty();
    let begun = site.begin(said, run, token).await?;
    Ok(StartedResponse {
        ephemeral: passing,
        ..begun
    })
}
