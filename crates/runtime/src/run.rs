//! The work on a thread: execution after execution, step after step, until it is at rest (EK §7).

mod end;
mod step;
mod take_up;

use crate::attempt_note::AttemptNote;
use crate::children::{StepChildren, waiting_parent};
use crate::error::{RuntimeError, log_failure};
use crate::live::{Live, LockedThread};
use crate::planted::{self, Bug};
use crate::reactor::{Resumed, StepRun};
use crate::runtime::Runtime;
use crate::writer::StepWriter;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use step::origin;
use store::{Run, StoreError};
use take_up::must_take_up;
pub(crate) use take_up::next_run;
use timeline::{Command, Ending, ExecutionId, Interruption, State, StepId, ThreadId};

/// Pause after the first failure of the store during the work.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between retries of a store that still fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The thread is deleted or closed, or another node owns its run, so there is no work here.
fn is_elsewhere(error: &RuntimeError) -> bool {
    matches!(
        error,
        RuntimeError::Store(StoreError::NotFound | StoreError::Closed | StoreError::Fenced { .. })
    )
}

/// Releases the thread for another worker on drop, however this worker ends.
struct Worked {
    live: Arc<Live>,
    /// Whether the thread is still marked as this worker's. At rest the worker clears the mark
    /// itself.
    mine: bool,
}

impl Drop for Worked {
    fn drop(&mut self) {
        if self.mine {
            self.live.release();
        }
    }
}

/// The next action of a worker.
enum Next {
    /// Nothing: the thread is at rest.
    Rests,
    /// An execution must be taken up first, or a slot must be acquired.
    TakeUp,
    Step(Box<StepRun>),
}

/// Paces a step that is taken up again because a sub-agent continues: the first time at once,
/// repeated times with pauses.
#[derive(Default)]
struct Again {
    step: Option<StepId>,
    pause: Duration,
}

impl Again {
    async fn paused(&mut self, step: &StepRun) {
        if self.step.as_ref() != Some(&step.step.id) {
            self.step = Some(step.step.id.clone());
            self.pause = Duration::ZERO;
            return;
        }
        let sleep = tokio::time::sleep(self.pause);
        let _ = step.signal.run_until_cancelled(sleep).await;
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

/// Whether a bug is planted that takes runs of living nodes.
fn takes_owned_runs() -> bool {
    planted::has(Bug::RetakesWhenFenced) || begins_owned_runs()
}

fn begins_owned_runs() -> bool {
    planted::has(Bug::WorksOnOwnedRuns) || planted::has(Bug::TakesThreadsOfLiving)
}

/// An execution that can't run, because its step or its trigger is missing.
fn broken(state: &State) -> Option<ExecutionId> {
    let active = state.active()?;
    let is_broken = active.step.is_none() || active.trigger.is_none();
    is_broken.then(|| active.execution.id.clone())
}

impl Runtime {
    /// Ensures that a thread with pending work has exactly one task of this process, unless another
    /// living node owns its run. A caller that writes calls this before it releases the lock.
    pub(crate) fn ensure_worker(
        &self,
        live: &Arc<Live>,
        held: &mut LockedThread<'_>,
    ) -> Result<(), RuntimeError> {
        let core = held.core()?;
        let state = &core.state;
        let idle = state.active().is_none() && state.waiting().len() == 0;
        if idle
            || (core.owner.is_some() && !begins_owned_runs())
            || self.inner.shutdown.is_cancelled()
            || live.worked.swap(true, Ordering::AcqRel)
        {
            return Ok(());
        }
        let (runtime, worked) = (
            self.clone(),
            Worked {
                live: Arc::clone(live),
                mine: true,
            },
        );
        self.inner.running.fetch_add(1, Ordering::Relaxed);
        self.inner.tasks.spawn(async move {
            // Named whole, so that the whole of it lives here and is dropped here.
            let mut worked = worked;
            let rests = runtime.work(&worked.live).await;
            worked.mine = !rests;
            runtime.inner.running.fetch_sub(1, Ordering::Relaxed);
            drop(worked);
        });
        Ok(())
    }

    /// Works until the thread is at rest or the process stops. A store that fails is retried.
    /// Returns whether the thread is at rest and free for another worker.
    async fn work(&self, live: &Arc<Live>) -> bool {
        let mut pause = FIRST_PAUSE;
        let mut again = Again::default();
        while !self.inner.shutdown.is_cancelled() {
            let done = match self.turn(live).await {
                Ok(Next::Rests) => return true,
                Ok(Next::TakeUp) => self.take_up(live).await,
                Ok(Next::Step(mut step)) => {
                    again.paused(&step).await;
                    self.step(live, &mut step).await
                }
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => pause = FIRST_PAUSE,
                Err(RuntimeError::Store(StoreError::Fenced { .. })) => {
                    match self.let_go(live).await {
                        Ok(true) => return true,
                        Ok(false) => {}
                        Err(error) if is_elsewhere(&error) => return false,
                        Err(error) => pause = self.paused(&live.thread, &error, pause).await,
                    }
                }
                Err(error) if is_elsewhere(&error) => return false,
                // Another node has appended: the next turn reads what.
                Err(RuntimeError::Store(StoreError::Conflict { .. })) => {}
                Err(error) => pause = self.paused(&live.thread, &error, pause).await,
            }
        }
        self.park(live).await;
        false
    }

    /// Frees a thread for another worker if another process owns its run. Otherwise this worker takes up the run. A store
    /// that is not shared knows no owners.
    async fn let_go(&self, live: &Live) -> Result<bool, RuntimeError> {
        let mut held = live.hold_cached().await?;
        let core = held.core()?;
        // A store of one process does not name another owner.
        let is_owned = core.owner.is_some() || !self.inner.store.is_shared();
        let is_free = !core.owns && is_owned && !planted::has(Bug::RetakesWhenFenced);
        if is_free {
            live.release();
        }
        Ok(is_free)
    }

    /// Ensures that a thread has a worker if the store has the thread and it has pending work.
    pub(crate) fn look_after(&self, thread: ThreadId) {
        let runtime = self.clone();
        self.inner.tasks.spawn(async move {
            let mut pause = FIRST_PAUSE;
            while !runtime.inner.shutdown.is_cancelled() {
                match runtime.recover_one(&thread, None).await {
                    Ok(()) => return,
                    Err(error) if is_elsewhere(&error) => return,
                    Err(error) => pause = runtime.paused(&thread, &error, pause).await,
                }
            }
        });
    }

    /// Decides and appends for a request, as [`Live::decided`] does. An append with an unknown result may have started
    /// a run, so the thread is looked after.
    pub(crate) async fn decided<T, F>(
        &self,
        live: &Live,
        decide: impl FnMut() -> F,
    ) -> Result<T, RuntimeError>
    where
        F: Future<Output = Result<T, RuntimeError>>,
    {
        let done = live.decided(decide).await;
        if live.take_unknown_start() && !planted::has(Bug::ForgetsUnknownStarts) {
            self.look_after(live.thread.clone());
        }
        done
    }

    async fn paused(&self, thread: &ThreadId, error: &RuntimeError, pause: Duration) -> Duration {
        let what = "the work on a thread failed and goes on after a pause";
        log_failure(error, thread.as_str(), what);
        let sleep = tokio::time::sleep(pause);
        let _ = self.inner.shutdown.run_until_cancelled(sleep).await;
        (pause * 2).min(LONGEST_PAUSE)
    }

    /// Determines the next action. If the previous attempt died, its partial output is reset first
    /// (ruling 10).
    async fn turn(&self, live: &Arc<Live>) -> Result<Next, RuntimeError> {
        let mut held = live.hold_cached().await?;
        let core = held.core()?;
        if core.owner.is_some() && !takes_owned_runs() {
            let thread = live.thread.clone();
            return Err(StoreError::Fenced { thread }.into());
        }
        if let Some(broken) = broken(&core.state) {
            let detail = "the log has no step or no trigger for this execution";
            let why = Interruption::new(Interruption::ERROR, detail);
            self.end(live, &mut held, &broken, Ending::Failed(why))
                .await?;
            drop(held);
            return Box::pin(self.turn(live)).await;
        }
        if must_take_up(live, core) {
            return Ok(Next::TakeUp);
        }
        if held.core()?.state.active().is_none() && held.core()?.state.waiting().len() > 0 {
            let state = &held.core()?.state;
            let start = self.start_waiting(state, waiting_parent(state))?;
            held.commit([(None, start)], None).await?;
        }
        let core = held.core()?;
        if core.state.active().is_none() {
            live.release();
            return Ok(Next::Rests);
        }
        if core.is_void() {
            held.commit([(None, Command::ResetStep)], None).await?;
        }
        let core = held.core()?;
        core.fresh = None;
        let generation = core.generation;
        let memory = core.memory.take();
        let Some(active) = core.state.active() else {
            return Ok(Next::Rests);
        };
        let run = Run::of(active.execution.run.as_ref());
        let (Some(step), Some(trigger)) = (&active.step, &active.trigger) else {
            drop(held);
            return Box::pin(self.turn(live)).await;
        };
        let memory =
            memory.filter(|memory| memory.generation == generation && memory.agent == run.agent);
        let resumed = step.response.clone().map(|response| Resumed {
            parts: step.parts.clone(),
            response,
            started: if planted::has(Bug::RepeatsEffects) {
                Vec::new()
            } else {
                step.started.clone()
            },
        });
        let n_parts = resumed.as_ref().map_or(0, |it| it.parts.len());
        let (execution, id) = (active.execution.clone(), step.step.id.clone());
        let signal = live.signal(&execution.id, &self.inner.shutdown);
        let writer = StepWriter::new(Arc::clone(live), execution.id.clone(), id, n_parts);
        let writer = Arc::new(writer);
        let origin = origin(active, step, trigger).clone();
        let children = StepChildren::new(self, live, active, &origin, &writer, &signal);
        let call_record = AttemptNote::new(live, &writer, step.note.as_ref());
        let step = StepRun {
            tenant: live.tenant.clone(),
            thread: live.thread.clone(),
            key: live.key.clone(),
            trigger: trigger.clone(),
            step: step.step.clone(),
            open_calls: active.open_calls.clone(),
            memory: memory.map(|memory| memory.value),
            call_record: Arc::new(call_record),
            external: self.inner.external.clone(),
            children: Arc::new(children),
            execution,
            origin,
            resumed,
            generation,
            signal,
            writer,
            run,
        };
        Ok(Next::Step(Box::new(step)))
    }
}
