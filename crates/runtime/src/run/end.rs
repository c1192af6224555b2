//! The end of a step, and of the execution with its last step.

use crate::children::StoppedChildren;
use crate::error::{RuntimeError, render_error};
use crate::live::{Live, Memory};
use crate::reactor::{Reacted, StepRun};
use crate::runtime::Runtime;
use crate::writer::substate;
use jiff::Timestamp;
use std::sync::Arc;
use store::StoreError;
use timeline::{Active, Command, Ending, ExecutionId, Interruption, OpenCall};

/// The reason of executions that end because a limit is reached.
const QUOTA_EXCEEDED: &str = "quota_exceeded";

fn is_limit(error: &RuntimeError) -> bool {
    matches!(
        error,
        RuntimeError::LimitReached(_) | RuntimeError::Store(StoreError::LimitReached(_))
    )
}

/// Commands at the time of their commit.
fn undated(commands: Vec<Command>) -> impl Iterator<Item = (Option<Timestamp>, Command)> {
    commands.into_iter().map(|command| (None, command))
}

impl Runtime {
    pub(super) async fn time_is_up(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
    ) -> Result<(), RuntimeError> {
        let why = Interruption::new("timeout", "the execution took longer than it may");
        self.ended(live, execution, Ending::Stopped(why)).await
    }

    /// Fails the execution, because the state or the store refused the step's writes and would
    /// refuse them again.
    pub(super) async fn refused(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
        error: RuntimeError,
    ) -> Result<(), RuntimeError> {
        if matches!(error, RuntimeError::Store(StoreError::Fenced { .. })) {
            return Err(error);
        }
        let why = if let RuntimeError::MessageTooLarge { .. } = error {
            Interruption::new("message_too_large", error.to_string())
        } else if is_limit(&error) {
            Interruption::new(QUOTA_EXCEEDED, render_error(&error))
        } else {
            let detail = format!(
                "the thread can't be read or written: {}",
                render_error(&error)
            );
            Interruption::new(Interruption::ERROR, detail)
        };
        self.ended(live, execution, Ending::Failed(why)).await
    }

    /// Fails the execution of a reactor that stopped without a request, as it would stop again.
    pub(super) async fn still_wanted(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
    ) -> Result<(), RuntimeError> {
        let why = Interruption::new(Interruption::ERROR, "the agent stopped by itself");
        self.ended(live, execution, Ending::Failed(why)).await
    }

    /// Ends the execution if it is still the running one.
    pub(super) async fn ended(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
        ending: Ending,
    ) -> Result<(), RuntimeError> {
        let mut held = live.hold_run().await?;
        if held
            .core()?
            .state
            .active()
            .is_none_or(|active| active.execution.id != *execution)
        {
            return Ok(());
        }
        self.end(live, &mut held, execution, ending).await
    }

    pub(super) async fn complete(
        &self,
        live: &Arc<Live>,
        step: &StepRun,
        mut reacted: Reacted,
    ) -> Result<(), RuntimeError> {
        let mut held = live.hold_step(&step.step.id).await?;
        let core = held.core()?;
        let mine = core.state.active().and_then(|active| active.step.as_ref());
        if mine.is_none_or(|mine| mine.step.id != step.step.id) {
            return Ok(());
        }
        let left = reacted.outcome.open_calls.clone();
        let began = (step.open_calls.as_slice(), &step.trigger);
        let Some(mut waiting) = self.waiting_children(left.as_ref(), began).await? else {
            // A sub-agent continues meanwhile: the step is taken up as it is.
            held.commit(undated(step.writer.take()), None).await?;
            return Ok(());
        };
        let n_steps = step.step.iteration.saturating_add(1);
        let exhausted = step.run.max_steps.is_some_and(|max| n_steps >= max);
        let transfer = self.transfer(reacted.handoff.take(), &step.run, &step.trigger)?;
        let next = (reacted.wants_more && !exhausted && transfer.is_none())
            .then(|| self.inner.ids.mint().into());
        let more = next.is_some();
        let mut commands = step.writer.take();
        let n_written = commands.len();
        if reacted.outcome.tool_calls.is_some() {
            commands.push(substate(false));
        }
        if let Some(transfer) = &transfer {
            reacted.memory = None;
            commands.extend(transfer.event.clone());
        }
        commands.push(Command::CompleteStep {
            outcome: reacted.outcome,
            next,
        });
        if !more {
            // An empty list is left where nobody can answer.
            let is_overtaken = core.state.active().is_some_and(Active::is_overtaken);
            let waits = !OpenCall::list(left.as_ref()).is_empty() && !is_overtaken;
            let goes_on = transfer.as_ref().is_some_and(|it| it.start.is_some());
            if !goes_on && !waits {
                self.wake_parents(live, step.run.parent.as_ref()).await?;
            }
            let ending = if let Some(transfer) = &transfer {
                transfer.ending.clone()
            } else if reacted.wants_more {
                let limit = step.run.max_steps.unwrap_or_default();
                let steps = if limit == 1 { "step" } else { "steps" };
                let detail = format!("the limit of {limit} {steps} is reached");
                Ending::Stopped(Interruption::new("max_steps", detail))
            } else {
                Ending::Completed
            };
            commands.push(Command::End { ending });
            if let Some(start) = transfer.and_then(|transfer| transfer.start) {
                commands.push(start);
            } else if core.state.waiting().len() > 0 {
                let parent = step.run.parent.clone().filter(|_| waits);
                commands.push(self.start_waiting(&core.state, parent)?);
            }
        }
        loop {
            // Only the logs of children can move.
            let again = if waiting.is_empty() {
                Vec::new()
            } else {
                commands.clone()
            };
            match held.commit_unmoved(undated(commands), waiting).await {
                Err(RuntimeError::Store(StoreError::Moved { .. })) => commands = again,
                committed => break committed.map(drop)?,
            }
            let Some(found) = self.waiting_children(left.as_ref(), began).await? else {
                commands.truncate(n_written);
                held.commit(undated(commands), None).await?;
                return Ok(());
            };
            waiting = found;
        }
        let core = held.core()?;
        let unwanted = StoppedChildren::left(left.as_ref(), &core.state);
        self.stop_children(unwanted);
        // What came to the history from elsewhere while the step ran is not in what it remembers.
        if core.generation == step.generation {
            let (agent, generation) = (step.run.agent.clone(), step.generation);
            held.remember(reacted.memory.map(|value| Memory {
                agent,
                generation,
                value,
            }))?;
        }
        Ok(())
    }
}
