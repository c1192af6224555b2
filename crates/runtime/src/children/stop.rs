//! Stops children whose answers are no longer needed.

use super::records::{Ended, Spawned};
use super::wake::waited_for;
use crate::error::{RuntimeError, render_error};
use crate::live::{Live, LockedThread};
use crate::runtime::Runtime;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::Run;
use store::StoreError;
use timeline::{Ending, Execution, ExecutionId, Interruption, OpenCall, Payload, State, ThreadId};
use tokio::runtime::Handle;

/// The default reason of a child's interruption, if its parent's interruption has none.
const UNWANTED: &str = Interruption::USER_CANCELLED;

/// Children to stop, because their answers are no longer needed.
pub(crate) struct StoppedChildren {
    parent: ThreadId,
    threads: Vec<ThreadId>,
    reason: String,
}

impl StoppedChildren {
    /// The children that have not ended: those of the running step, and those that the thread waits
    /// for.
    pub(crate) fn of(state: &State, reason: &str) -> Option<Self> {
        let step = state.active().and_then(|active| active.step.as_ref());
        let parts = step.map(|step| step.parts.as_slice()).unwrap_or_default();
        let ended: BTreeSet<ThreadId> = parts
            .iter()
            .filter_map(Ended::read)
            .map(|ended| ended.thread_id)
            .collect();
        let spawned = parts.iter().filter_map(Spawned::read);
        let spawned = spawned.map(|spawned| spawned.spawned_thread_id);
        let waited = waited_for(state).map(|(_, child)| child.thread_id.clone());
        let threads: BTreeSet<ThreadId> = spawned.chain(waited).collect();
        let threads = threads.difference(&ended).cloned();
        Self::some(&state.thread()?.id, threads.collect(), reason)
    }

    /// The children that the end of a step left waiting and that the thread does not wait for in
    /// its new state.
    pub(crate) fn left(left: Option<&Payload>, after: &State) -> Option<Self> {
        let wanted: BTreeSet<&ThreadId> = waited_for(after).map(|(_, it)| &it.thread_id).collect();
        let left = OpenCall::list(left);
        let children = left.iter().flat_map(|call| &call.children);
        let unwanted = children.filter(|it| !it.is_over && !wanted.contains(&it.thread_id));
        let unwanted = unwanted.map(|it| it.thread_id.clone());
        Self::some(&after.thread()?.id, unwanted.collect(), UNWANTED)
    }

    /// The children that a thread at rest waits for.
    pub(crate) fn waited(state: &State) -> Option<Self> {
        let waited = waited_for(state).filter(|_| state.active().is_none());
        let threads = waited.map(|(_, child)| child.thread_id.clone()).collect();
        Self::some(&state.thread()?.id, threads, UNWANTED)
    }

    /// Without the children that the thread waits for now.
    pub(crate) fn without(mut self, now: &State) -> Option<Self> {
        let is_wanted = |thread: &ThreadId| waited_for(now).any(|(_, it)| it.thread_id == *thread);
        self.threads.retain(|thread| !is_wanted(thread));
        (!self.threads.is_empty()).then_some(self)
    }

    /// One child of a thread.
    pub(super) fn one(parent: ThreadId, child: ThreadId) -> Self {
        Self {
            parent,
            threads: vec![child],
            reason: UNWANTED.to_owned(),
        }
    }

    fn some(parent: &ThreadId, threads: Vec<ThreadId>, reason: &str) -> Option<Self> {
        (!threads.is_empty()).then(|| Self {
            parent: parent.clone(),
            threads,
            reason: reason.to_owned(),
        })
    }
}

/// The reason of an execution's end.
pub(crate) fn reason_of(ending: &Ending) -> &str {
    match ending {
        Ending::Completed => UNWANTED,
        Ending::Failed(why) | Ending::Stopped(why) => &why.reason,
    }
}

/// Whether this execution runs.
pub(super) fn is_active(state: &State, execution: &ExecutionId) -> bool {
    state
        .active()
        .is_some_and(|active| active.execution.id == *execution)
}

/// Whether a thread still needs the answer of a child that one of its executions has started.
fn wants(state: &State, started_by: &ExecutionId, child: &ThreadId) -> bool {
    is_active(state, started_by) || waited_for(state).any(|(_, it)| it.thread_id == *child)
}

/// Whether an execution was started for this thread.
fn is_child_of(execution: &Execution, parent: &ThreadId) -> bool {
    let run = Run::of(execution.run.as_ref());
    run.parent.is_some_and(|it| it.thread_id == *parent)
}

fn unwanted(reason: &str) -> Interruption {
    Interruption::new(reason, "what asked for this run was stopped")
}

impl Runtime {
    /// Stops children in the background and records it on the thread of each. A child that can't be
    /// stopped now is stopped by the next recovery, if it still runs then.
    pub(crate) fn stop_children(&self, children: Option<StoppedChildren>) {
        // Outside of a runtime nothing runs any more that could be stopped.
        let (Some(children), Ok(handle)) = (children, Handle::try_current()) else {
            return;
        };
        let runtime = self.clone();
        let stopping = async move {
            for child in &children.threads {
                let done = runtime.stop_child(child, &children.parent, &children.reason);
                if let Err(error) = done.await {
                    tracing::error!(error = render_error(&error), thread = %child, "a sub-agent could not be stopped");
                }
            }
        };
        self.inner.tasks.spawn_on(stopping, &handle);
    }

    pub(super) async fn stop_child(
        &self,
        child: &ThreadId,
        parent: &ThreadId,
        reason: &str,
    ) -> Result<(), RuntimeError> {
        let live = self.live_by_id(child).await?;
        self.decided(&live, async || {
            let mut held = live.hold().await?;
            let why = unwanted(reason);
            let state = &held.core()?.state;
            if let Some(active) = state.active() {
                if !is_child_of(&active.execution, parent) {
                    return Ok(());
                }
                let id = active.execution.id.clone();
                return self.end(&live, &mut held, &id, Ending::Stopped(why)).await;
            }
            let waits = state.open().map(|open| &open.execution);
            if waits.is_some_and(|execution| is_child_of(execution, parent)) {
                self.withdraw(&live, &mut held, why).await?;
            }
            Ok(())
        })
        .await
    }

    /// After a crash, stops a run that was started for an execution that has ended since. A child
    /// whose parent still runs continues. This does not wait for the parent.
    pub(crate) async fn stop_orphan(
        &self,
        live: &Arc<Live>,
        held: &mut LockedThread<'_>,
    ) -> Result<(), RuntimeError> {
        let Some(active) = held.core()?.state.active() else {
            return Ok(());
        };
        let id = active.execution.id.clone();
        let Some(parent) = Run::of(active.execution.run.as_ref()).parent else {
            return Ok(());
        };
        let wanted = match self.inner.store.head(&parent.thread_id).await {
            Ok(found) => wants(&found.state, &parent.execution_id, &live.thread),
            Err(StoreError::NotFound) => false,
            Err(error) => {
                // Whatever is wrong there keeps nothing here from going on.
                tracing::error!(error = render_error(&error), thread = %parent.thread_id, "the thread that a sub-agent belongs to can't be read");
                true
            }
        };
        if wanted {
            return Ok(());
        }
        self.end(live, held, &id, Ending::Stopped(unwanted(UNWANTED)))
            .await
    }
}
