//! The end of a step, and of the execution with its last step.

use crate::children::StoppedChildren;
use crate::error::{RuntimeError, render_error};
use crate::handoff::Transfer;
use crate::live::{Live, Memory};
use crate::reactor::{Reacted, StepRun};
use crate::runtime::Runtime;
use crate::writer::substate;
use jiff::Timestamp;
use std::sync::Arc;
use store::StoreError;
use timeline::{Active, Command, Ending, ExecutionId, Interruption, OpenCall, StepId, StepOutcome};

/// The reason of executions that end because a limit is reached.
const QUOTA_EXCEEDED: &str = "quota_exceeded";

fn is_limit(error: &RuntimeError) -> bool {
    matches!(
        error,
        RuntimeError::LimitReached(_) | RuntimeError::Store(StoreError::LimitReached(_))
    )
}

/// Commands at the time of their commit.
fn undated(
    commands: impl IntoIterator<Item = Command>,
) -> impl Iterator<Item = (Option<Timestamp>, Command)> {
    commands.into_iter().map(|command| (None, command))
}

/// The result of a step, as it is appended.
struct StepEnd {
    /// The commands of the step's writer, and those that belong to the step's end.
    commands: Vec<Command>,
    /// How many of them the writer holds.
    n_written: usize,
    /// The next step, if there is one.
    next: Option<StepId>,
    transfer: Option<Transfer>,
    outcome: StepOutcome,
    wants_more: bool,
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
        live.decided_by_owner(async || {
            let mut held = live.hold_run().await?;
            let active = held.core()?.state.active();
            if active.is_none_or(|active| active.execution.id != *execution) {
                return Ok(());
            }
            self.end(live, &mut held, execution, ending.clone()).await
        })
        .await
    }

    /// Ends a step, and the execution with its last step. If another node has appended meanwhile, the end is decided
    /// again on the state after that.
    pub(super) async fn complete(
        &self,
        live: &Arc<Live>,
        step: &StepRun,
        mut reacted: Reacted,
    ) -> Result<(), RuntimeError> {
        let transfer = self.transfer(reacted.handoff.take(), &step.run, &step.trigger)?;
        if transfer.is_some() {
            reacted.memory = None;
        }
        let mut commands = step.writer.take();
        let n_written = commands.len();
        if reacted.outcome.tool_calls.is_some() {
            commands.push(substate(false));
        }
        commands.extend(transfer.as_ref().and_then(|it| it.event.clone()));
        let n_steps = step.step.iteration.saturating_add(1);
        let exhausted = step.run.max_steps.is_some_and(|max| n_steps >= max);
        let more = reacted.wants_more && !exhausted && transfer.is_none();
        let done = StepEnd {
            n_written,
            commands,
            next: more.then(|| self.inner.ids.mint().into()),
            transfer,
            outcome: reacted.outcome,
            wants_more: reacted.wants_more,
        };
        let completed = live.decided_by_owner(async || {
            loop {
                match self.complete_once(live, step, &done).await {
                    // A sub-agent continues or waits since its log was read.
                    Err(RuntimeError::Store(StoreError::Moved { .. })) => {}
                    completed => return completed,
                }
            }
        });
        if !completed.await? {
            return Ok(());
        }
        let mut held = live.hold_cached().await?;
        // A reactor's memory lacks changes of the history from elsewhere while the step ran.
        if held.core()?.generation == step.generation {
            let (agent, generation) = (step.run.agent.clone(), step.generation);
            held.remember(reacted.memory.map(|value| Memory {
                agent,
                generation,
                value,
            }))?;
        }
        Ok(())
    }

    /// Whether the step is complete. It is not if it was stopped, or if a sub-agent continues meanwhile.
    async fn complete_once(
        &self,
        live: &Arc<Live>,
        step: &StepRun,
        done: &StepEnd,
    ) -> Result<bool, RuntimeError> {
        let mut held = live.hold_step(&step.step.id).await?;
        let core = held.core()?;
        let mine = core.state.active().and_then(|active| active.step.as_ref());
        if mine.is_none_or(|mine| mine.step.id != step.step.id) {
            return Ok(false);
        }
        let left = done.outcome.open_calls.as_ref();
        let began = (step.open_calls.as_slice(), &step.trigger);
        let Some(waiting) = self.waiting_children(left, began).await? else {
            // The step is taken up as it is.
            let written = done.commands.iter().take(done.n_written).cloned();
            held.commit(undated(written), None).await?;
            return Ok(false);
        };
        let mut commands = done.commands.clone();
        commands.push(Command::CompleteStep {
            outcome: done.outcome.clone(),
            next: done.next.clone(),
        });
        if done.next.is_none() {
            // An empty list is left where nobody can answer.
            let is_overtaken = core.state.active().is_some_and(Active::is_overtaken);
            let waits = !OpenCall::list(left).is_empty() && !is_overtaken;
            let transfer = done.transfer.as_ref();
            let goes_on = transfer.is_some_and(|it| it.start.is_some());
            if !goes_on && !waits {
                self.wake_parents(live, step.run.parent.as_ref(), Some(&step.trigger))
                    .await?;
            }
            let ending = if let Some(transfer) = transfer {
                transfer.ending.clone()
            } else if done.wants_more {
                let limit = step.run.max_steps.unwrap_or_default();
                let steps = if limit == 1 { "step" } else { "steps" };
                let detail = format!("the limit of {limit} {steps} is reached");
                Ending::Stopped(Interruption::new("max_steps", detail))
            } else {
                Ending::Completed
            };
            commands.push(Command::End { ending });
            if let Some(start) = transfer.and_then(|transfer| transfer.start.clone()) {
                commands.push(start);
            } else if core.state.waiting().len() > 0 {
                let parent = step.run.parent.clone().filter(|_| waits);
                commands.push(self.start_waiting(&core.state, parent)?);
            }
        }
        held.commit_unmoved(undated(commands), waiting).await?;
        let unwanted = StoppedChildren::left(left, &held.core()?.state);
        self.stop_children(unwanted);
        Ok(true)
    }
}
