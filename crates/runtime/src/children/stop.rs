//! A child does not outlive the wish for its answer.

use super::records::{Ended, Spawned};
use crate::error::{RuntimeError, told};
use crate::live::{Held, Live};
use crate::react::Runtime;
use crate::request::Run;
use crate::store::StoreError;
use std::collections::BTreeSet;
use std::sync::Arc;
use timeline::{Active, Ending, ExecutionId, Interruption, State, ThreadId};
use tokio::runtime::Handle;

/// What a child's interruption says, unless its parent's says more.
const UNWANTED: &str = "user_cancelled";

/// Children that are to be stopped, because the execution that started them has ended.
pub(crate) struct StoppedChildren {
    parent: ExecutionId,
    threads: Vec<ThreadId>,
    reason: String,
}

impl StoppedChildren {
    /// The children of the running step that have not ended, if there are any.
    pub(crate) fn of(state: &State, reason: &str) -> Option<Self> {
        let active = state.active()?;
        let parts = &active.step.as_ref()?.parts;
        let ended: BTreeSet<ThreadId> = parts
            .iter()
            .filter_map(Ended::read)
            .map(|ended| ended.thread_id)
            .collect();
        let threads: Vec<ThreadId> = parts
            .iter()
            .filter_map(Spawned::read)
            .map(|spawned| spawned.spawned_thread_id)
            .filter(|thread| !ended.contains(thread))
            .collect();
        (!threads.is_empty()).then(|| Self {
            parent: active.execution.id.clone(),
            threads,
            reason: reason.to_owned(),
        })
    }

    /// One child of an execution.
    pub(super) fn one(parent: ExecutionId, child: ThreadId) -> Self {
        Self {
            parent,
            threads: vec![child],
            reason: UNWANTED.to_owned(),
        }
    }
}

/// The word for why an execution ends.
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

fn is_child_of(active: &Active, parent: &ExecutionId) -> bool {
    let run = Run::of(active.execution.run.as_ref());
    run.parent.is_some_and(|it| it.execution_id == *parent)
}

fn unwanted(reason: &str) -> Ending {
    Ending::Stopped(Interruption {
        reason: reason.to_owned(),
        detail: Some("what asked for this run was stopped".to_owned()),
    })
}

impl Runtime {
    /// Stops children beside everything else; a recorded fact on the thread of each. One that can't
    /// be stopped now is stopped by the next recovery, if it still runs then.
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
                    tracing::error!(error = told(&error), thread = %child, "a sub-agent could not be stopped");
                }
            }
        };
        self.inner.tasks.spawn_on(stopping, &handle);
    }

    async fn stop_child(
        &self,
        child: &ThreadId,
        parent: &ExecutionId,
        reason: &str,
    ) -> Result<(), RuntimeError> {
        let live = self.live_by_id(child).await?;
        let mut held = live.hold().await?;
        let active = held.core()?.state.active();
        let Some(active) = active.filter(|active| is_child_of(active, parent)) else {
            return Ok(());
        };
        let id = active.execution.id.clone();
        self.end(&live, &mut held, &id, unwanted(reason)).await
    }

    /// After a crash: stops what runs on a thread for an execution that has ended by now. A child
    /// whose parent still runs goes on by itself; nothing waits for the parent here.
    pub(crate) async fn stop_orphan(
        &self,
        live: &Arc<Live>,
        held: &mut Held<'_>,
    ) -> Result<(), RuntimeError> {
        let Some(active) = held.core()?.state.active() else {
            return Ok(());
        };
        let id = active.execution.id.clone();
        let Some(parent) = Run::of(active.execution.run.as_ref()).parent else {
            return Ok(());
        };
        let wanted = match self.inner.store.head(&parent.thread_id).await {
            Ok(found) => is_active(&found.state, &parent.execution_id),
            Err(StoreError::NotFound) => false,
            Err(error) => {
                // Whatever is wrong there keeps nothing here from going on.
                tracing::error!(error = told(&error), thread = %parent.thread_id, "the thread that a sub-agent belongs to can't be read");
                true
            }
        };
        if wanted {
            return Ok(());
        }
        self.end(live, held, &id, unwanted(UNWANTED)).await
    }
}
