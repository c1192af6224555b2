//! One execution: step after step, until it is over (EK §7).

use crate::error::RuntimeError;
use crate::live::{Held, Live};
use crate::react::Runtime;
use crate::reactor::{Reacted, ReactorError, Resumed, StepRun};
use crate::request::Run;
use crate::writer::{StepWriter, Stopped, substate};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use timeline::{Command, Ending, Execution, ExecutionId, Interruption, Item, Step, Trigger};
use tokio_util::sync::CancellationToken;

/// How long a step waits before it tries again to go on after its store failed.
const REVIVE_AFTER: Duration = Duration::from_millis(500);

/// What the next step needs of the thread's state.
struct Turn {
    execution: Execution,
    trigger: Item,
    step: Step,
    resumed: Option<Resumed>,
    memory: Option<Box<dyn std::any::Any + Send + Sync>>,
}

/// What follows a step.
enum Next {
    Step,
    Over,
}

impl Runtime {
    /// Goes on with what the state says is unfinished: the running execution, else what waits.
    pub(crate) async fn resume(
        &self,
        live: &Arc<Live>,
        held: &mut Held<'_>,
    ) -> Result<(), RuntimeError> {
        let state = &held.core()?.state;
        let command = match state.active() {
            None if state.waiting().len() > 0 => Some(self.start(Trigger::Waiting, None)),
            // The attempt that died may have shown half an answer: it is void (ruling 10).
            Some(active)
                if active
                    .step
                    .as_ref()
                    .is_some_and(|step| step.response.is_none()) =>
            {
                Some(Command::ResetStep)
            }
            Some(_) | None => None,
        };
        if let Some(command) = command {
            held.commit([(None, command)], None).await?;
        }
        self.ensure_runner(live, held)
    }

    /// Sees to it that the active execution has exactly one task in this process.
    pub(crate) fn ensure_runner(
        &self,
        live: &Arc<Live>,
        held: &mut Held<'_>,
    ) -> Result<(), RuntimeError> {
        let core = held.core()?;
        let Some(active) = core.state.active() else {
            return Ok(());
        };
        let id = active.execution.id.clone();
        if core.runner.as_ref().is_some_and(|(of, _)| *of == id)
            || self.inner.shutdown.is_cancelled()
        {
            return Ok(());
        }
        let signal = self.inner.shutdown.child_token();
        if let Some((_, old)) = core.runner.replace((id.clone(), signal.clone())) {
            old.cancel();
        }
        let (runtime, live) = (self.clone(), Arc::clone(live));
        self.inner
            .tasks
            .spawn(async move { runtime.execute(live, id, signal).await });
        Ok(())
    }

    async fn execute(self, live: Arc<Live>, execution: ExecutionId, signal: CancellationToken) {
        let timeout = {
            let Ok(mut held) = live.hold().await else {
                return;
            };
            let Ok(core) = held.core() else { return };
            Self::run_of(&core.state)
                .timeout_ms
                .map(Duration::from_millis)
                .or(self.inner.options.run_timeout)
        };
        let steps = async {
            while let Next::Step = self.one_step(&live, &execution, &signal).await? {}
            Ok::<(), RuntimeError>(())
        };
        let result = match timeout {
            None => steps.await,
            Some(limit) => match tokio::time::timeout(limit, steps).await {
                Ok(result) => result,
                Err(_) => {
                    self.stop(
                        &live,
                        &execution,
                        "timeout",
                        format!("no end after {limit:?}"),
                    )
                    .await
                }
            },
        };
        if let Err(error) = result {
            tracing::error!(%error, thread = %live.thread, %execution, "an execution could not go on; it resumes at the next start");
        }
    }

    async fn stop(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
        reason: &str,
        detail: String,
    ) -> Result<(), RuntimeError> {
        let mut held = live.hold().await?;
        if !is_active(&mut held, execution)? {
            return Ok(());
        }
        let why = Interruption {
            reason: reason.to_owned(),
            detail: Some(detail),
        };
        self.end(live, &mut held, execution, Ending::Stopped(why))
            .await
    }

    async fn one_step(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
        signal: &CancellationToken,
    ) -> Result<Next, RuntimeError> {
        let Some(turn) = self.turn(live, execution).await? else {
            return Ok(Next::Over);
        };
        let run = Run::of(turn.execution.run.as_ref());
        let writer = StepWriter::new(Arc::clone(live), execution.clone(), turn.step.id.clone());
        let result = match self.inner.reactors.find(run.agent.as_deref()) {
            Some(reactor) => {
                let step = StepRun {
                    tenant: &live.tenant,
                    thread: &live.thread,
                    key: &live.key,
                    execution: &turn.execution,
                    trigger: &turn.trigger,
                    step: &turn.step,
                    run: &run,
                    resumed: turn.resumed,
                    memory: turn.memory,
                    writer: &writer,
                    signal: signal.clone(),
                };
                driven(
                    AssertUnwindSafe(reactor.react(step)).catch_unwind(),
                    &writer,
                    signal,
                )
                .await
            }
            None => Err(ReactorError::Failed {
                reason: "error".into(),
                detail: format!(
                    "there is no agent named {:?}",
                    run.agent.as_deref().unwrap_or_default()
                ),
            }),
        };
        match result {
            Ok(reacted) => {
                self.complete(live, &writer, &turn.step, &run, reacted)
                    .await
            }
            Err(ReactorError::Stopped) => {
                self.revive(live, execution, signal).await?;
                Ok(Next::Over)
            }
            Err(ReactorError::Failed { reason, detail }) => {
                // What the model had said before it failed is shown and kept.
                let flushed: Result<(), Stopped> = writer.flush().await;
                if flushed.is_ok() {
                    self.fail(live, execution, reason, detail).await?;
                }
                Ok(Next::Over)
            }
        }
    }

    /// A step that stopped although it is still wanted, because the store failed under it, goes on
    /// as after a crash.
    async fn revive(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
        signal: &CancellationToken,
    ) -> Result<(), RuntimeError> {
        if signal.is_cancelled() {
            return Ok(());
        }
        tokio::time::sleep(REVIVE_AFTER).await;
        let mut held = live.hold().await?;
        if is_active(&mut held, execution)? && !self.inner.shutdown.is_cancelled() {
            held.core()?.runner = None;
            self.resume(live, &mut held).await?;
        }
        Ok(())
    }

    async fn turn(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
    ) -> Result<Option<Turn>, RuntimeError> {
        let mut held = live.hold().await?;
        let core = held.core()?;
        let memory = core.memory.take();
        let Some(active) = core
            .state
            .active()
            .filter(|active| active.execution.id == *execution)
        else {
            return Ok(None);
        };
        let (Some(step), Some(trigger)) = (&active.step, &active.trigger) else {
            return Ok(None);
        };
        let resumed = step.response.clone().map(|response| Resumed {
            parts: step.parts.clone(),
            response,
            started: step.started.clone(),
        });
        Ok(Some(Turn {
            execution: active.execution.clone(),
            trigger: trigger.clone(),
            step: step.step.clone(),
            resumed,
            memory,
        }))
    }

    async fn complete(
        &self,
        live: &Arc<Live>,
        writer: &StepWriter,
        step: &Step,
        run: &Run,
        reacted: Reacted,
    ) -> Result<Next, RuntimeError> {
        let mut held = live.hold().await?;
        if !is_active(&mut held, &step.execution_id)? {
            return Ok(Next::Over);
        }
        let core = held.core()?;
        let n_steps = step.iteration.saturating_add(1);
        let exhausted = run.max_steps.is_some_and(|max| n_steps >= max);
        let acted = reacted.outcome.tool_calls.is_some();
        let next = (reacted.wants_more && !exhausted).then(|| self.inner.ids.mint().into());
        let more = next.is_some();
        let mut commands = writer.take();
        if acted {
            commands.push(substate(false));
        }
        commands.push(Command::CompleteStep {
            outcome: reacted.outcome,
            next,
        });
        if !more {
            let ending = if reacted.wants_more {
                let detail = format!(
                    "the limit of {} steps is reached",
                    run.max_steps.unwrap_or_default()
                );
                Ending::Stopped(Interruption {
                    reason: "max_steps".into(),
                    detail: Some(detail),
                })
            } else {
                Ending::Completed
            };
            commands.push(Command::End { ending });
            if core.state.waiting().len() > 0 {
                commands.push(self.start(Trigger::Waiting, None));
            }
        }
        held.commit(commands.into_iter().map(|command| (None, command)), None)
            .await?;
        let core = held.core()?;
        core.memory = reacted.memory;
        if more {
            return Ok(Next::Step);
        }
        core.runner = None;
        self.ensure_runner(live, &mut held)?;
        Ok(Next::Over)
    }

    async fn fail(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
        reason: String,
        detail: String,
    ) -> Result<(), RuntimeError> {
        let mut held = live.hold().await?;
        if !is_active(&mut held, execution)? {
            return Ok(());
        }
        let why = Interruption {
            reason,
            detail: Some(detail),
        };
        self.end(live, &mut held, execution, Ending::Failed(why))
            .await
    }
}

fn is_active(held: &mut Held<'_>, execution: &ExecutionId) -> Result<bool, RuntimeError> {
    Ok(held
        .core()?
        .state
        .active()
        .is_some_and(|active| active.execution.id == *execution))
}

/// Drives the reactor, and beside it the window in which its chunks are gathered.
async fn driven(
    react: impl Future<Output = std::thread::Result<Result<Reacted, ReactorError>>>,
    writer: &StepWriter,
    signal: &CancellationToken,
) -> Result<Reacted, ReactorError> {
    let mut react = std::pin::pin!(react);
    loop {
        tokio::select! {
            biased;
            () = signal.cancelled() => return Err(ReactorError::Stopped),
            result = &mut react => {
                return result.unwrap_or_else(|_| {
                    let detail = "the agent panicked; the server's log says where".to_owned();
                    Err(ReactorError::Failed { reason: "error".into(), detail })
                });
            }
            () = writer.window() => writer.flush().await?,
        }
    }
}
