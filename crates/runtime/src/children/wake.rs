//! A parent waits while its child waits for an outside answer, and continues when the child does.
//!
//! The parent's execution is over then. Its log names the calls it left open, and their children.
//! Two rules ensure that the parent is woken after any crash:
//!
//! 1. No run of a child ends before its parent's log has the wake-up.
//! 2. No parent goes to sleep over a child that continues, unless that child answers the call by an item of its
//!    own. Its append is refused if the log of a child has grown since the parent has read it.
//!
//! An execution takes up only calls that it was started for or that were opened after its start. So
//! the child's item is queued behind it, or wakes the parent once it sleeps. A child first records
//! that it continues and then checks whether its parent sleeps. Locks are taken upwards only.

use super::wake_reports::waker;
use crate::answer::waiting_run;
use crate::error::{RuntimeError, render_error};
use crate::live::Live;
use crate::react::started_execution;
use crate::runtime::Runtime;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::StoreError;
use store::{ParentRun, Run};
use timeline::{
    ANSWER, Answer, Command, Item, ItemId, ItemType, NewItem, OpenCall, OpenChild, Payload, Seq,
    State, ThreadId, Trigger,
};

/// The metadata of the item that wakes a parent: the child.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Woken {
    /// The origin of the item: always `subagent`.
    via: String,
    /// The child.
    #[serde(flatten)]
    pub(super) child: OpenChild,
    /// The call that started it.
    pub(super) tool_call_id: String,
}

impl Woken {
    /// Reads the child's metadata from an item, if the item reports that a child continues.
    pub(super) fn read(item: &Item) -> Option<Self> {
        let is_answer = item.item_type == ItemType::ActionResult;
        let metadata = item.metadata.as_ref().filter(|_| is_answer)?;
        let woken: Self = metadata.read().ok()?;
        (woken.via == "subagent").then_some(woken)
    }
}

/// The open calls of a thread.
pub(super) fn open_calls(state: &State) -> &[OpenCall] {
    match (state.active(), state.open()) {
        (Some(active), _) => &active.open_calls,
        (None, Some(open)) => &open.calls,
        (None, None) => &[],
    }
}

/// The children that a thread waits for, and their calls.
pub(super) fn waited_for(state: &State) -> impl Iterator<Item = (&OpenCall, &OpenChild)> {
    open_calls(state).iter().flat_map(|call| {
        let children = call.children.iter().filter(|child| !child.is_over);
        children.map(move |child| (call, child))
    })
}

/// The parent execution that waits for this thread, if this thread waits for answers.
pub(crate) fn waiting_parent(state: &State) -> Option<ParentRun> {
    let open = state.open()?;
    Run::of(open.execution.run.as_ref()).parent
}

impl Runtime {
    /// The children that the end of a step must wait for, and where their logs end. `None` if one of them does not
    /// wait. `before` are the calls that were open when the execution started. Of those, the step runs only the ones
    /// that its trigger answers. The child of another one wakes the parent by an answer of its own, which is queued
    /// already or comes later.
    pub(crate) async fn waiting_children(
        &self,
        left: Option<&Payload>,
        (before, trigger): (&[OpenCall], &Item),
    ) -> Result<Option<Vec<(ThreadId, Seq)>>, RuntimeError> {
        let left = OpenCall::list(left);
        let answers = Some(trigger).filter(|item| item.item_type == ItemType::ActionResult);
        let answers = answers.and_then(|item| Answer::read(item.content.as_ref()).ok());
        let answers = answers.unwrap_or_default();
        let is_run = |call: &&OpenCall| {
            let id = &call.tool_call_id;
            answers.iter().any(|answer| answer.tool_call_id == *id)
                || !before.iter().any(|open| open.tool_call_id == *id)
        };
        let children = left.iter().filter(is_run).flat_map(|call| &call.children);
        let mut waiting = Vec::new();
        for child in children.filter(|child| !child.is_over) {
            let head = match self.inner.store.head(&child.thread_id).await {
                Err(StoreError::NotFound) => return Ok(None),
                head => head?,
            };
            if head.state.open().is_none() || head.state.waiting().len() > 0 {
                return Ok(None);
            }
            waiting.push((child.thread_id.clone(), head.tail));
        }
        Ok(Some(waiting))
    }

    /// Starts the executions of all threads that wait for this child, directly or not; durable when
    /// this returns. If none waits, the only cost is a look-up of the parent.
    /// If the child's run answers an item, the items that wake the parents have the ids of that answer.
    pub(crate) async fn wake_parents(
        &self,
        child: &Live,
        parent: Option<&ParentRun>,
        trigger: Option<&Item>,
    ) -> Result<(), RuntimeError> {
        let answer = trigger.filter(|item| item.item_type == ItemType::ActionResult);
        self.wake_all(child, parent, answer.map(|item| &item.id))
            .await
    }

    async fn wake_all(
        &self,
        child: &Live,
        parent: Option<&ParentRun>,
        answer: Option<&ItemId>,
    ) -> Result<(), RuntimeError> {
        let mut child = child.thread.clone();
        let mut parent = parent.map(|parent| parent.thread_id.clone());
        while let Some(above) = parent {
            parent = match self.wake(&above, &child, answer).await {
                Err(RuntimeError::Store(StoreError::NotFound)) => None,
                // It would refuse the same again, and the child must not wait for that.
                Err(RuntimeError::Rejected(refused)) => {
                    tracing::warn!(%refused, thread = %above, "a thread can't continue with its sub-agent");
                    None
                }
                next => next?,
            };
            child = above;
        }
        Ok(())
    }

    /// Wakes the parents after the child has continued. A failure has no effect on other runs,
    /// because the parents are woken in any case before the child's run ends. If the child has
    /// taken an `answer`, its id determines the ids of the items that wake them; see
    /// [`Runtime::has_continuation`].
    pub(crate) async fn wake_later(
        &self,
        child: &Live,
        parent: Option<&ParentRun>,
        answer: Option<&ItemId>,
    ) {
        if let Err(error) = self.wake_all(child, parent, answer).await {
            tracing::warn!(error = render_error(&error), thread = %child.thread, "a parent is woken later");
        }
    }

    /// Starts the oldest queued trigger. If calls are open, the queued messages continue the run
    /// that opened them, so `parent` waits for that run.
    pub(crate) fn start_waiting(
        &self,
        state: &State,
        parent: Option<ParentRun>,
    ) -> Result<Command, RuntimeError> {
        let mut run = Run::of(state.waiting().next().map(|waiting| &waiting.run));
        run.parent = run.parent.or(parent);
        self.start(Trigger::Waiting, run)
    }

    /// Continues a thread that waits for this child. Returns the next thread above, which may wait
    /// for that one.
    async fn wake(
        &self,
        parent: &ThreadId,
        child: &ThreadId,
        answer: Option<&ItemId>,
    ) -> Result<Option<ThreadId>, RuntimeError> {
        let live = self.live_by_id(parent).await?;
        let woken = self
            .decided(&live, async || self.wake_once(&live, child, answer).await)
            .await;
        match woken {
            // The same answer has woken it before, and it waits again.
            Err(RuntimeError::Store(StoreError::Duplicate(_))) if answer.is_some() => {
                self.decided(&live, async || self.wake_once(&live, child, None).await)
                    .await
            }
            woken => woken,
        }
    }

    async fn wake_once(
        &self,
        live: &Arc<Live>,
        child: &ThreadId,
        answer: Option<&ItemId>,
    ) -> Result<Option<ThreadId>, RuntimeError> {
        let mut held = live.hold().await?;
        let state = &held.core()?.state;
        let found = {
            let mut waited = waited_for(state);
            let found = waited.find(|(_, it)| it.thread_id == *child);
            found.map(|(call, known)| (call.tool_call_id.clone(), known.clone()))
        };
        let Some((tool_call_id, known)) = found else {
            return Ok(None);
        };
        let woken = Woken {
            via: "subagent".to_owned(),
            child: known,
            tool_call_id,
        };
        let id = answer.map_or_else(|| self.mint().into(), |answer| waker(answer, &live.thread));
        let item = resumed(id, &woken)?;
        let state = &held.core()?.state;
        if state.check_answers(&item).is_err() {
            // It goes on already, or something else was said and nobody wants the answer.
            return Ok(None);
        }
        let (mut run, _) = waiting_run(state);
        let above = run.parent.clone();
        let model = self.inner.reactors.model(&run);
        let command = if state.active().is_some() || state.waiting().len() > 0 {
            // Whoever has answered the child can name the run that it is heard in.
            run.execution_id = Some(self.mint().into());
            let run = Payload::write(&run)?;
            Command::Enqueue { item, run }
        } else {
            self.start(Trigger::New(item), run)?
        };
        let begins = started_execution(&command).is_some() && above.is_none();
        held.commit([(None, command)], None).await?;
        if begins && !live.occupied.has_slot() {
            let slot = self.inner.runs.take_beyond(&live.tenant, model.as_deref());
            live.occupied.occupy(slot);
        }
        self.ensure_worker(live, &mut held)?;
        Ok(above.map(|above| above.thread_id))
    }
}

fn resumed(id: ItemId, woken: &Woken) -> Result<NewItem, RuntimeError> {
    let answer = serde_json::json!([
        {"type": ANSWER, "toolCallId": woken.tool_call_id, "resumed": true}
    ]);
    Ok(NewItem {
        id,
        item_type: ItemType::ActionResult,
        role: None,
        channel: None,
        content: Some(answer.into()),
        metadata: Some(Payload::write(woken)?),
    })
}
