//! A process takes up an execution that another process left, and releases it when it shuts down.
//!
//! The log counts the starts of a step by processes that died during it. Each such start waits
//! longer than the one before. After [`max_starts`](crate::RuntimeOptions::max_starts) of them the
//! execution fails.

use super::{is_elsewhere, takes_owned_runs};
use crate::children::{unended, waiting_parent};
use crate::error::{RuntimeError, render_error};
use crate::live::{Core, Live, LockedThread};
use crate::run_slots::RunSlot;
use crate::runtime::Runtime;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use store::{Run, StoreError};
use timeline::{Active, Command, Ending, ExecutionId, Interruption, State};

/// Maximum pause between two starts.
const LONGEST_RESTART_PAUSE: Duration = Duration::from_mins(1);

/// Whether this process must take up a thread's pending work, or needs a slot for it.
pub(super) fn must_take_up(live: &Live, core: &Core) -> bool {
    if core.state.active().is_some() && !core.owns {
        return true;
    }
    next_run(&core.state).is_some_and(|run| run.parent.is_none()) && !live.occupied.has_slot()
}

/// The parameters of the running execution, or of the next one.
pub(crate) fn next_run(state: &State) -> Option<Run> {
    if let Some(active) = state.active() {
        return Some(Run::of(active.execution.run.as_ref()));
    }
    let mut run = Run::of(Some(&state.waiting().next()?.run));
    run.parent = run.parent.or_else(|| waiting_parent(state));
    Some(run)
}

impl Runtime {
    /// The pause before an execution's next start: zero if no process died with it.
    pub(crate) fn restart_pause(&self, active: &Active, last_at: Timestamp) -> Duration {
        let Some(n_before) = active.n_starts.checked_sub(1) else {
            return Duration::ZERO;
        };
        let first = self.inner.options.restart_pause;
        let pause = first.saturating_mul(4u32.saturating_pow(n_before));
        let pause = pause.min(LONGEST_RESTART_PAUSE);
        // A clock that was set back does not make it longer.
        let passed = self.inner.clock.now().duration_since(last_at);
        pause.saturating_sub(Duration::try_from(passed).unwrap_or_default())
    }

    /// Takes up the execution of a thread, when its pause is over and a slot is free. If too many
    /// processes died with the execution, this ends it.
    pub(super) async fn take_up(&self, live: &Arc<Live>) -> Result<(), RuntimeError> {
        let (pause, needs_slot, model, signal) = {
            let mut held = live.hold().await?;
            if let Some(poisoned) = self.poisoned(&mut held)? {
                return self.end_poisoned(live, &mut held, &poisoned).await;
            }
            let core = held.core()?;
            let Some(run) = next_run(&core.state) else {
                return Ok(());
            };
            let active = core.state.active();
            // Recovery gives a slot when the pause is over.
            let left = active.filter(|_| !core.owns && !live.occupied.has_slot());
            let pause = left.map_or(Duration::ZERO, |active| {
                self.restart_pause(active, core.last_at)
            });
            let signal = active.map_or_else(
                || self.inner.shutdown.clone(),
                |active| live.signal(&active.execution.id, &self.inner.shutdown),
            );
            let needs_slot = run.parent.is_none() && !live.occupied.has_slot();
            (pause, needs_slot, self.inner.reactors.model(&run), signal)
        };
        let sleep = tokio::time::sleep(pause);
        if !pause.is_zero() && signal.run_until_cancelled(sleep).await.is_none() {
            return Ok(());
        }
        let mut slot = None;
        if needs_slot {
            let wait = self.inner.runs.wait(&live.tenant, model.as_deref());
            let Some(found) = signal.run_until_cancelled(wait).await else {
                return Ok(());
            };
            slot = Some(found);
        }
        self.resume(live, slot).await
    }

    /// Records that this process runs the execution, and continues its sub-agents.
    async fn resume(&self, live: &Arc<Live>, slot: Option<RunSlot>) -> Result<(), RuntimeError> {
        let mut held = live.hold().await?;
        if let Some(slot) = slot.filter(|_| !live.occupied.has_slot()) {
            live.occupied.occupy(slot);
        }
        let core = held.core()?;
        let Some(active) = core.state.active().filter(|_| !core.owns) else {
            return Ok(());
        };
        if core.owner.is_some() && !takes_owned_runs() {
            let thread = live.thread.clone();
            return Err(StoreError::Fenced { thread }.into());
        }
        let (id, n_starts) = (active.execution.id.clone(), active.n_starts);
        // Chunks of the former attempt may be lost, so its step is reset.
        let reset = core.is_void().then_some(Command::ResetStep);
        let commands = [Command::Resume].into_iter().chain(reset);
        held.commit(commands.map(|it| (None, it)), None).await?;
        let children = unended(&held.core()?.state);
        drop(held);
        if n_starts > 1 {
            tracing::warn!(thread = %live.thread, key = live.key, execution = %id, n_starts, "a run is started again that did not survive its last starts");
        }
        for (child, _) in children {
            self.look_after(child);
        }
        Ok(())
    }

    /// The execution of a thread during which too many processes have died.
    pub(crate) fn poisoned(
        &self,
        held: &mut LockedThread<'_>,
    ) -> Result<Option<ExecutionId>, RuntimeError> {
        let core = held.core()?;
        let active = core.state.active().filter(|_| !core.owns);
        let poisoned = active.filter(|active| active.n_starts >= self.inner.options.max_starts);
        Ok(poisoned.map(|active| active.execution.id.clone()))
    }

    /// Ends an execution during which too many processes have died. The thread must be writable.
    pub(crate) async fn end_poisoned(
        &self,
        live: &Arc<Live>,
        held: &mut LockedThread<'_>,
        execution: &ExecutionId,
    ) -> Result<(), RuntimeError> {
        let n = self.inner.options.max_starts;
        let detail = format!(
            "the server process died {n} times in a row while it executed a step of this run, so the run is not started again"
        );
        tracing::error!(thread = %live.thread, tenant = live.tenant.as_str(), key = live.key, %execution, n_starts = n, "a run is poisoned: the process did not survive its starts, and it has failed");
        let why = Interruption::new(Interruption::POISONED, detail);
        self.end(live, held, execution, Ending::Failed(why)).await
    }

    /// Records that this process released the execution in order, so that its start does not count.
    pub(super) async fn park(&self, live: &Arc<Live>) {
        let parked = live.decided(async || {
            let mut held = live.hold_run().await?;
            let active = held.core()?.state.active();
            if active.is_some_and(|active| active.step.is_some()) {
                held.commit([(None, Command::Park)], None).await?;
            }
            Ok(())
        });
        match parked.await {
            Err(error) if !is_elsewhere(&error) => {
                tracing::warn!(error = render_error(&error), thread = %live.thread, "a run is left without a note; its start counts as one that the process did not survive");
            }
            Ok(()) | Err(_) => {}
        }
    }
}
