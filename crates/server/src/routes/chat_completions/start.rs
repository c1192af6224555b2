//! From a request to a run, on a thread that is forgotten or on a durable one.

use super::super::responses::continuation::{Continuation, StartedResponse};
use super::super::responses::models::run_of;
use super::super::responses::start::begin;
use super::NamedAt;
use crate::aitp::MessagePost;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadKey;
use interop::ag_ui::was_cut_off;
use interop::chat_completions::{CompletionRequest, HistoryDifference, StoredMessages, added};
use interop::responses::RequestError;
use jiff::Timestamp;
use runtime::{Filter, PageRequest, Position, RequestToken, RuntimeError, StoreError, ThreadPage};
use std::collections::BTreeMap;
use timeline::Seq;

impl From<HistoryDifference> for ApiError {
    fn from(HistoryDifference { pointer, what }: HistoryDifference) -> Self {
        Self::HistoryDiffers { pointer, what }
    }
}

/// Starts a run on a thread that has the history of the request and is not stored.
pub(super) async fn forgotten(
    api: &Api,
    caller: &Caller,
    request: &CompletionRequest,
) -> Result<StartedResponse, ApiError> {
    Box::pin(begin(api, caller, request.create(), None, &mut None)).await
}

/// Starts a run on this thread after adding the new messages.
pub(super) async fn durable(
    api: &Api,
    caller: &Caller,
    request: &CompletionRequest,
    named: NamedAt,
    token: Option<RequestToken>,
) -> Result<StartedResponse, ApiError> {
    let run = run_of(api.app(), request.options.clone())?;
    let mut site = Continuation {
        thread: ThreadKey::named(api, caller, &named.key, named.pointer)?,
        speech: MessagePost::new(api, caller),
        continued_id: &named.key,
        must_exist: false,
        input_at: "/messages",
    };
    // A repetition is answered before anything else is asked: the thread has gone on since.
    if let Some(begun) = site.repeated(token.as_ref()).await? {
        return Ok(begun);
    }
    let last = last_event(&site).await?;
    let stored = match last {
        None => StoredMessages::default(),
        Some(_) => stored(&site.thread, request).await?,
    };
    let added = added(&request.messages, &stored)?;
    let added: Vec<_> = added.into_iter().cloned().collect();
    let input = request.create_on(&named.key, &added);
    let mut mint = || site.thread.runtime().mint();
    let input = input.thread_input(&BTreeMap::new(), None, Timestamp::now(), &mut mint)?;
    site.must_exist = last.is_some();
    // What was matched is what the thread still ends with, or nothing is written.
    let begun = site.start(input, run, token, last).await;
    begun.map_err(|error| site.refused(error))
}

/// The last event of an idle thread; `None` if the thread does not exist.
async fn last_event(site: &Continuation<'_>) -> Result<Option<Seq>, ApiError> {
    match site.thread.state().await {
        Err(RuntimeError::Store(StoreError::NotFound)) => Ok(None),
        Err(error) => Err(error.into()),
        Ok((state, last)) => match state.active() {
            Some(_) => Err(RequestError::conversation_locked(site.continued_id).into()),
            None => Ok(Some(last)),
        },
    }
}

/// The messages at the end of a thread, as many as a request has or more. A longer thread is read from its
/// beginning as well. The cost depends on what the request has sent, not on the thread.
async fn stored(
    thread: &ThreadKey,
    request: &CompletionRequest,
) -> Result<StoredMessages, ApiError> {
    let n = request.messages.len().saturating_add(1);
    let end = PageRequest::UpTo {
        place: Position::END,
        n,
    };
    let end = with_texts(thread, end).await?;
    if !end.more {
        return Ok(StoredMessages::whole(&end.transcript));
    }
    let beginning = PageRequest::After {
        after: Position::START,
        n,
    };
    let beginning = with_texts(thread, beginning).await?;
    Ok(StoredMessages::from_both_ends(
        &beginning.transcript,
        &end.transcript,
    ))
}

/// A page with the texts of its answers: chunks are read if an answer was cut off.
async fn with_texts(thread: &ThreadKey, request: PageRequest) -> Result<ThreadPage, ApiError> {
    let page = thread.page(request.clone(), Filter::Facts).await?;
    if was_cut_off(&page.transcript) {
        return Ok(thread.page(request, Filter::All).await?);
    }
    Ok(page)
}
