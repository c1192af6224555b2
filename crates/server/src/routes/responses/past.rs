//! Earlier responses: whether one exists, and its position in its thread.

use super::page_items::{ItemPages, Thread};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::ids::{THREAD, read_response_id};
use interop::responses::{
    ListOptions, ListedItem, ResponseOf, ResponseStream, input_items, is_alone, is_brought,
    list_before, transcript_until,
};
use runtime::objects::NewObject;
use runtime::{
    Filter, Landmark, PageRequest, Position, Runtime, RuntimeError, Side, StoreError, TenantId,
};
use timeline::{Event, ExecutionId, Seq, Transcript};

/// Number of records per read.
const PAGE: usize = 512;
/// Kind of the sidecar object that marks a deleted response on a thread that continues.
const DELETED: &str = "responses.deleted";

/// A stored response.
pub(super) struct StoredResponse {
    pub(super) thread: ThreadRef,
    /// Its first execution.
    pub(super) execution: ExecutionId,
}

/// A response as its thread's log has it.
pub(super) struct ResponseState {
    /// The state after its records.
    pub(super) stream: ResponseStream,
    /// Its last event, if it is over.
    pub(super) end: Option<Seq>,
}

/// The response with this id; `None` if it does not exist or the caller may not see it.
pub(super) async fn find(
    api: &Api,
    caller: &Caller,
    id: &str,
) -> Result<Option<StoredResponse>, ApiError> {
    let Some((thread, execution)) = read_response_id(id) else {
        return Ok(None);
    };
    let Some(thread) = ThreadRef::find(api, caller, THREAD, &thread).await? else {
        return Ok(None);
    };
    if is_deleted(api.runtime(&caller.tenant), &caller.tenant, id).await? {
        return Ok(None);
    }
    Ok(Some(StoredResponse {
        thread,
        execution: execution.as_str().into(),
    }))
}

/// Whether this response was deleted without its thread.
pub(super) async fn is_deleted(
    runtime: &Runtime,
    tenant: &TenantId,
    id: &str,
) -> Result<bool, StoreError> {
    let mark = runtime.objects().get(tenant, DELETED, id).await?;
    Ok(mark.is_some())
}

/// Marks a response as deleted without deleting its thread.
pub(super) async fn hide(found: &StoredResponse, id: &str) -> Result<(), ApiError> {
    let object = NewObject {
        kind: DELETED.to_owned(),
        id: id.to_owned(),
        created_at: jiff::Timestamp::now(),
        json: "{}".to_owned(),
        content: None,
        thread: Some(found.thread.id().clone()),
        is_limited: false,
    };
    let objects = found.thread.runtime().objects();
    Ok(objects.put(found.thread.tenant(), object).await?)
}

impl StoredResponse {
    /// Its state; `None` if its thread has no such execution. Reads all records of the execution.
    pub(super) async fn state(&self) -> Result<Option<ResponseState>, RuntimeError> {
        self.state_with(ListOptions::default()).await
    }

    /// The state of the response with additional fields.
    pub(super) async fn state_with(
        &self,
        options: ListOptions,
    ) -> Result<Option<ResponseState>, RuntimeError> {
        let Some(after) = self.after().await? else {
            return Ok(None);
        };
        let mut standing = ResponseState {
            stream: ResponseStream::quiet(ResponseOf::Execution(self.execution.clone()))
                .including(options),
            end: None,
        };
        let mut seen = after;
        loop {
            let page = self.thread.read(seen, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(Some(standing));
            };
            seen = last.record.seq;
            for logged in &page {
                standing.stream.apply(&logged.record, &mut String::new());
                if standing.stream.is_over()
                    && let Event::ThreadFinished { execution_id, .. } = &logged.record.event
                    && standing.stream.execution() == Some(execution_id)
                {
                    standing.end = Some(logged.record.seq);
                    return Ok(Some(standing));
                }
            }
        }
    }

    /// The conversation up to the response's end, or up to the last event while it is running. `None` if
    /// its thread has no such execution. Reads the conversation up to there.
    pub(super) async fn past(&self) -> Result<Option<Transcript>, RuntimeError> {
        let Some(standing) = self.state().await? else {
            return Ok(None);
        };
        let landmark = Landmark::Execution(&self.execution);
        let first = self.thread.position_of(landmark).await?;
        let after = self.after().await?;
        let before = match (first, after, standing.end) {
            // Counted through, as far after its first event as in its own log.
            (Some(Position(first)), Some(after), Some(end)) => {
                Position(first.saturating_add(end.0.saturating_sub(after.0)))
            }
            (_, _, Some(_) | None) => Position::END,
        };
        let n = usize::MAX;
        let read = self
            .thread
            .page(PageRequest::Before { before, n }, Filter::All);
        let transcript = read.await?.transcript;
        Ok(transcript_until(transcript, &self.execution))
    }

    /// Its input, the oldest item first; `None` if its thread has no such execution. Reads the execution
    /// and one page before its input.
    pub(super) async fn input(
        &self,
        options: ListOptions,
    ) -> Result<Option<Vec<ListedItem>>, RuntimeError> {
        let page = PageRequest::Execution(self.execution.clone());
        let own = self.thread.page(page, Filter::Facts).await;
        let own = match own {
            Err(RuntimeError::UnknownExecution(_)) => return Ok(None),
            own => own?,
        };
        let Some(items) = input_items(&own.transcript, &self.execution, options) else {
            return Ok(None);
        };
        let mut walk = ItemPages::before(Thread::of(&self.thread), own.first);
        let mut pieces = vec![items.value];
        while let Some(transcript) = walk.next().await? {
            let (before, has_more) = list_before(&transcript, options);
            pieces.push(before);
            if !has_more {
                break;
            }
        }
        Ok(Some(pieces.into_iter().rev().flatten().collect()))
    }

    /// Whether its thread was created for it and has only the history that its request supplied. `None`
    /// if its thread has no such execution. Reads all records of the execution.
    pub(super) async fn is_alone(&self) -> Result<Option<bool>, RuntimeError> {
        let (store, thread) = (self.thread.runtime().store(), self.thread.id());
        let Some(standing) = self.state().await? else {
            return Ok(None);
        };
        if let Some(end) = standing.end
            && (store.nearest_run(thread, Side::After(end)).await?.is_some()
                || !store
                    .nearest_triggers(thread, Side::After(end), 1)
                    .await?
                    .is_empty())
        {
            return Ok(Some(false));
        }
        let Some(after) = self.after().await? else {
            return Ok(None);
        };
        // Where the last one before it was brought, all of them were.
        if let Some(former) = store
            .nearest_run(thread, Side::Before(after.next()))
            .await?
        {
            let former = former.execution_id;
            let piece = self.transcript_of(&former).await?;
            if !is_brought(&piece, &former) {
                return Ok(Some(false));
            }
        }
        Ok(is_alone(
            &self.transcript_of(&self.execution).await?,
            &self.execution,
        ))
    }

    async fn transcript_of(&self, execution: &ExecutionId) -> Result<Transcript, RuntimeError> {
        let page = PageRequest::Execution(execution.clone());
        let read = self.thread.page(page, Filter::Facts);
        Ok(read.await?.transcript)
    }

    /// The event before its first; `None` if its thread has no such execution.
    pub(super) async fn after(&self) -> Result<Option<Seq>, StoreError> {
        let landmark = Landmark::Execution(&self.execution);
        let store = self.thread.runtime().store();
        let place = store.position_of(self.thread.id(), landmark);
        let before = |first: Seq| Seq(first.0.saturating_sub(1));
        Ok(place.await?.map(before))
    }
}
