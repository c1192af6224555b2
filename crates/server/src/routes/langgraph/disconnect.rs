//! Runs that are cancelled when their reader disconnects.

use crate::state::Api;
use crate::threads::{ThreadKey, ThreadRef};
use futures_util::StreamExt as _;
use interop::run::RunSelector;
use runtime::{RuntimeError, Until};
use timeline::{ExecutionId, Interruption, Seq};

/// Cancels a run if it is dropped before the run is over.
pub(super) struct Disconnect {
    api: Api,
    thread: ThreadKey,
    run: RunSelector,
    /// The last event before the run.
    after: Seq,
    is_over: bool,
}

impl Disconnect {
    pub(super) fn new(api: &Api, found: &ThreadRef, (run, after): (RunSelector, Seq)) -> Self {
        Self {
            api: api.clone(),
            thread: ThreadKey::clone(found),
            run,
            after,
            is_over: false,
        }
    }

    /// Marks the run as over, so that a disconnect no longer stops it.
    pub(super) fn over(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Disconnect {
    fn drop(&mut self) {
        // A server that stops leaves what runs to its next start.
        if self.is_over || self.api.is_shutting_down() {
            return;
        }
        let Ok(tasks) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let thread = self.thread.clone();
        let (mut run, after) = (self.run.clone(), self.after);
        tasks.spawn(async move {
            let Ok(mut follow) = thread.follow(after, Until::Rest).await else {
                return;
            };
            let mut tried: Option<ExecutionId> = None;
            // One that waits for its turn is stopped when that has come, and one that has handed over in
            // whoever goes on with it.
            while let Some(Ok(logged)) = follow.next().await {
                if run.select(&logged.record.event).flow().is_break() {
                    return;
                }
                let Some(execution) = run.execution().filter(|it| tried.as_ref() != Some(it))
                else {
                    continue;
                };
                match thread
                    .cancel(Some(execution), Interruption::USER_CANCELLED)
                    .await
                {
                    Err(RuntimeError::NotRunning(_)) => tried = Some(execution.clone()),
                    Err(error) => {
                        tracing::warn!(%error, "a run that nobody reads can't be stopped");
                        return;
                    }
                    Ok(_) => return,
                }
            }
        });
    }
}
