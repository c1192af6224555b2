//! Tasks: looked up by their ids, and read as parts of their threads.

use super::pending::waiting;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::a2a::{
    ErrorKind, RequestError, TaskOptions, TaskRun, TaskState, TaskWait, continuation_id,
};
use interop::ids;
use runtime::{Filter, Landmark, PageRequest, Position};
use serde_json::Value;
use timeline::{Entry, ExecutionId, Item, ItemId, ThreadId, Transcript};

/// Maximum number of messages that continue one task.
pub(super) const MAX_PIECES: usize = 100;

/// A task and its thread.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) thread: ThreadRef,
    /// The message that started it.
    pub(super) item: ItemId,
}

/// A task in its current state.
pub(super) struct Read {
    pub(super) json: Value,
    pub(super) state: TaskState,
    /// The last execution, and whether it runs.
    pub(super) execution: Option<ExecutionId>,
    pub(super) is_executing: bool,
    /// The questions that it waits for.
    pub(super) waiting: TaskWait,
    /// The number of messages that continued it after its AITP requests were answered.
    pub(super) n_went_on: usize,
}

/// The options for reading a task.
#[derive(Clone, Copy, Default)]
pub(super) struct Wanted {
    pub(super) history_length: Option<usize>,
}

impl Task {
    /// A message's task.
    pub(super) fn of(thread: &ThreadRef, item: &ItemId) -> Result<Self, ApiError> {
        let id = ids::task_id(thread.id().as_str(), item.as_str());
        let no_id = || RequestError::new(ErrorKind::Internal, "this thread's tasks have no ids");
        Ok(Self {
            id: id.ok_or_else(no_id)?,
            thread: thread.clone(),
            item: item.clone(),
        })
    }

    /// The task with this id, if it exists and the caller may access it.
    pub(super) async fn find(api: &Api, caller: &Caller, id: &str) -> Result<Self, ApiError> {
        let none = || RequestError::no_task(id);
        let (thread, item) = ids::read_task_id(id).ok_or_else(none)?;
        let (thread, item) = (ThreadId::from(thread), ItemId::from(item));
        let found = ThreadRef::find_by_id(api, caller, &thread).await?;
        Self::of(&found.ok_or_else(none)?, &item)
    }

    /// The current state of the task. Costs time proportional to what the task has written.
    pub(super) async fn read(&self, api: &Api, wanted: Wanted) -> Result<Read, ApiError> {
        let mut filter = Filter::Facts;
        let (mut is_settled, mut is_sure) = (false, false);
        loop {
            let transcript = self.transcript(filter).await?;
            let Some(run) = TaskRun::find(&transcript, &self.item) else {
                // Its turn may have come, and its place with that have become another.
                if std::mem::replace(&mut is_sure, true) {
                    return Err(RequestError::no_task(&self.id).into());
                }
                continue;
            };
            let more = self.more(&run, filter).await?;
            let pointed = self.pointed(&run).await?;
            let run = run.with_continuations(&more).answering(pointed.as_ref());
            if run.wants_chunks() && filter == Filter::Facts {
                filter = Filter::All;
                continue;
            }
            let waiting = waiting(api, &self.thread, &run).await?;
            // What waits no longer may have been answered after it was read.
            if waiting.calls.is_none() && run.leaves_open().is_some() && !is_settled {
                is_settled = true;
                continue;
            }
            let shown = TaskOptions {
                id: &self.id,
                context_id: self.thread.key(),
                history_length: wanted.history_length,
                artifacts: true,
            };
            return Ok(Read {
                json: run.to_json(shown, &waiting),
                state: run.state(&waiting),
                execution: run.execution().cloned(),
                is_executing: run.is_executing(),
                waiting,
                n_went_on: more.len(),
            });
        }
    }

    /// The pages of the thread that continue the task. Each begins with an answer to one of the task's
    /// AITP requests, at any place of the thread.
    pub(super) async fn more(
        &self,
        run: &TaskRun<'_>,
        filter: Filter,
    ) -> Result<Vec<Transcript>, ApiError> {
        let (mut pieces, mut may_go_on) = (Vec::new(), run.may_ask());
        while may_go_on {
            let item = continuation_id(&self.item, pieces.len() + 1);
            let Some(piece) = self.page(&item, filter).await? else {
                break;
            };
            pieces.push(piece);
            may_go_on = pieces.len() < MAX_PIECES;
        }
        Ok(pieces)
    }

    /// The message that the task's trigger refers to, or else the message right before the trigger.
    /// Costs time proportional to the run at that message.
    pub(super) async fn pointed(&self, run: &TaskRun<'_>) -> Result<Option<Item>, ApiError> {
        if !run.is_pointer() {
            return Ok(None);
        }
        let Some(id) = run.points_to() else {
            return self.message_before().await;
        };
        let piece = self.page(&id, Filter::Facts).await?;
        let entries = piece.map(|piece| piece.entries).unwrap_or_default();
        Ok(entries.into_iter().find_map(|entry| match entry {
            Entry::Item(item) if item.id == id => Some(item),
            Entry::Item(_) | Entry::Reaction(_) => None,
        }))
    }

    /// The message right before the task's trigger, unless an agent has answered it.
    async fn message_before(&self) -> Result<Option<Item>, ApiError> {
        let landmark = Landmark::Item(&self.item);
        let place = self.thread.position_of(landmark).await?;
        let Some(before) = place else {
            return Ok(None);
        };
        let page = PageRequest::Before { before, n: 1 };
        let piece = self.thread.page(page, Filter::Facts);
        match piece.await?.transcript.entries.pop() {
            Some(Entry::Item(item)) => Ok(Some(item)),
            Some(Entry::Reaction(_)) | None => Ok(None),
        }
    }

    /// The part of the thread that begins with the task.
    async fn transcript(&self, filter: Filter) -> Result<Transcript, ApiError> {
        let piece = self.page(&self.item, filter).await?;
        Ok(piece.ok_or_else(|| RequestError::no_task(&self.id))?)
    }

    /// The part of the thread that begins with a message; none if the message does not exist.
    async fn page(&self, item: &ItemId, filter: Filter) -> Result<Option<Transcript>, ApiError> {
        let landmark = Landmark::Item(item);
        let place = self.thread.position_of(landmark).await?;
        let Some(place) = place else {
            return Ok(None);
        };
        let after = Position(place.0.saturating_sub(1));
        let page = PageRequest::After { after, n: 1 };
        let page = self.thread.page(page, filter);
        Ok(Some(page.await?.transcript))
    }
}
