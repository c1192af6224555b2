//! Rollback: removes a run from its thread, with its input and its output.

use super::run::newest_first;
use crate::error::ApiError;
use crate::threads::ThreadRef;
use interop::langgraph::{RunRecord, RunStatus};
use runtime::{Filter, PageRequest, RuntimeError};
use timeline::{Entry, Interruption, Rejected, Removed};

/// Stops the running run, and removes it from the thread. Does nothing if none runs.
pub(super) async fn roll_back_active(found: &ThreadRef) -> Result<(), ApiError> {
    let mut active = None;
    newest_first(found, |record, _| {
        if record.status == RunStatus::Running {
            active = Some(record);
            return false;
        }
        record.status == RunStatus::Pending
    })
    .await?;
    let Some(run) = active else {
        return Ok(());
    };
    let stopped = found.cancel(run.last.as_ref(), Interruption::USER_CANCELLED);
    match stopped.await {
        // It has ended by itself meanwhile, and stays.
        Err(RuntimeError::NotRunning(_)) => Ok(()),
        stopped => {
            stopped?;
            take_out(found, &run).await
        }
    }
}

/// Removes a stopped run from its thread. It remains in the log.
pub(super) async fn take_out(found: &ThreadRef, run: &RunRecord) -> Result<(), ApiError> {
    let page = PageRequest::Execution(run.id.clone());
    let piece = found.page(page, Filter::Facts).await?;
    let items = run.before().chain([run.trigger.clone()]).map(Removed::Item);
    let mut goes: Vec<Removed> = items.collect();
    for entry in piece.transcript.entries {
        if let Entry::Reaction(reaction) = entry {
            let steps = reaction.steps.into_iter();
            goes.extend(steps.map(|step| Removed::Step(step.step.id)));
        }
    }
    for what in goes {
        match found.remove(what).await {
            // Somebody else has taken it out.
            Err(RuntimeError::Rejected(Rejected::RemovedAlready(_))) => {}
            removed => drop(removed?),
        }
    }
    Ok(())
}
