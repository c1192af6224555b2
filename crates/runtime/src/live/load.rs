//! Loads the state of a thread from its log, without owning its run.

use super::records::logged;
use super::{Core, Doubt, Live, LockedThread, Tail};
use crate::error::RuntimeError;
use crate::tries::Tries;
use std::sync::atomic::Ordering;
use store::{Filter, Head, NewRecord, NodeId, StoreError};
use timeline::{Seq, State, StepId, ThreadStatus};
use tokio::sync::MutexGuard;
use tokio::time::sleep;

/// The generations of one load take this many bits; the next load begins with a higher one.
const GENERATION_BITS: u32 = 20;

fn running_step(state: &State) -> Option<&StepId> {
    let active = state.active()?;
    active.step.as_ref().map(|step| &step.step.id)
}

impl Core {
    /// The state at the end of a log. `before` is the state that it replaces. `landed` is whether the append with the
    /// unknown result is in the log. `at` is this node, and whether others may write.
    fn of(head: Head, before: Option<Self>, landed: bool, at: (NodeId, bool)) -> Self {
        let (node, is_shared) = at;
        let takes = |it: &Self| matches!(it.doubt, Some(Doubt::Unknown { takes: true, .. }));
        let running = |state: &State| state.active().map(|it| it.execution.id.clone());
        // What the run has written since is lost, so its step begins again.
        let is_shorter = before.as_ref().is_some_and(|it| head.tail < it.tail);
        let owns = before.as_ref().is_some_and(|before| {
            let is_other = head.owner.is_some_and(|owner| owner != node);
            if is_other || is_shorter || head.state.active().is_none() {
                false
            } else if landed && takes(before) {
                // Equal records of another node can be in its place.
                let is_next = head.epoch.0 == before.epoch.0.saturating_add(1);
                head.owner == Some(node) || (is_next && !is_shared)
            } else {
                // After a run that another node has ended, another one may run.
                let is_same = running(&before.state) == running(&head.state);
                let is_own = head.owner == Some(node) || is_same;
                before.owns && before.epoch == head.epoch && is_own
            }
        });
        // An append that came through has stored the chunks.
        let runs_on = |before: &Self| running_step(&before.state) == running_step(&head.state);
        let (unstored, fresh) = before
            .filter(|before| owns && !landed && runs_on(before))
            .map(|before| (before.unstored, before.fresh))
            .unwrap_or_default();
        Self {
            tail: head.tail,
            epoch: head.epoch,
            owns,
            owner: head.owner.filter(|owner| *owner != node),
            last_at: head.last_at,
            // Never one of an earlier load: requests may have changed the history meanwhile.
            generation: head.tail.0 << GENERATION_BITS,
            memory: None,
            fresh,
            unstored,
            doubt: None,
            unmade: None,
            state: head.state,
        }
    }
}

impl Live {
    /// Takes the thread's lock for a request. If other nodes may write, it first compares the state in memory with the
    /// log. A deleted thread is not found.
    pub(crate) async fn hold(&self) -> Result<LockedThread<'_>, RuntimeError> {
        let mut slot = self.core.lock().await;
        if self.store.is_shared()
            && let Some(core) = slot.as_mut()
            && core.doubt.is_none()
            && !core.is_pending()
        {
            match self.store.row(&self.thread).await {
                // The end of another node changes the owner and appends nothing.
                Ok(row) if row.tail == core.tail && core.owner.is_none() => {}
                Ok(_) => core.doubt = Some(Doubt::Overtaken),
                Err(error) => return Err(self.noticed(error).into()),
            }
        }
        self.loaded(slot).await
    }

    /// Takes the thread's lock for a worker. The state in memory may be older than the log: appends compare.
    pub(crate) async fn hold_cached(&self) -> Result<LockedThread<'_>, RuntimeError> {
        self.loaded(self.core.lock().await).await
    }

    /// Takes the thread's lock for the work on a run.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if there is a run that this process does not own.
    pub(crate) async fn hold_run(&self) -> Result<LockedThread<'_>, RuntimeError> {
        let mut held = self.hold_cached().await?;
        let core = held.core()?;
        if core.owns || core.state.active().is_none() {
            return Ok(held);
        }
        let thread = self.thread.clone();
        Err(StoreError::Fenced { thread }.into())
    }

    /// Takes the thread's lock to write into the running step.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] as in [`Self::hold_run`]. [`StoreError::Conflict`] if the step was reset: it must start
    /// again.
    pub(crate) async fn hold_step(&self, step: &StepId) -> Result<LockedThread<'_>, RuntimeError> {
        let mut held = self.hold_run().await?;
        let core = held.core()?;
        if core.fresh.as_ref() == Some(step) && running_step(&core.state) == Some(step) {
            return Err(self.conflict(core.tail).into());
        }
        Ok(held)
    }

    /// Learns that the log ends at this event, or later. `known` is the end that this process knew before it read `tail`
    /// from the store; 0 if `tail` is from a hint. Does nothing while the thread is locked: its holder is about to
    /// append, and the next look comes soon.
    pub(crate) async fn learn(&self, known: Seq, tail: Seq) -> Result<(), RuntimeError> {
        match self.core.try_lock() {
            Ok(slot) => self.learned(slot, (known, tail), self.is_followed()).await,
            Err(_) => Ok(()),
        }
    }

    /// Does what [`learn`](Self::learn) does, as soon as the thread is free.
    pub(crate) async fn catch_up(&self, known: Seq, tail: Seq) -> Result<(), RuntimeError> {
        self.learned(self.core.lock().await, (known, tail), true)
            .await
    }

    /// The state of a run of this process is loaded at once, so that a run that another node has ended stops. Otherwise
    /// the next request loads it.
    async fn learned(
        &self,
        mut slot: MutexGuard<'_, Option<Core>>,
        (known, tail): (Seq, Seq),
        for_followers: bool,
    ) -> Result<(), RuntimeError> {
        let is_shorter = tail < known;
        if self.is_gone() || (tail <= self.end() && !is_shorter) {
            return Ok(());
        }
        if let Some(core) = slot.as_mut() {
            core.doubt.get_or_insert(Doubt::Overtaken);
        }
        if self.is_worked_on() {
            return self.loaded(slot).await.map(drop);
        }
        if !for_followers && !is_shorter {
            return Ok(());
        }
        let row = self.store.row(&self.thread).await;
        let row = row.map_err(|error| self.noticed(error))?;
        self.renumber(row.tail, Vec::new());
        self.inform(Tail {
            seq: row.tail,
            streaming: row.thread.status == ThreadStatus::Streaming,
            gone: false,
        });
        Ok(())
    }

    /// Gives up the run, because other nodes may have taken it.
    pub(crate) async fn give_up(&self) {
        let mut slot = self.core.lock().await;
        if let Some(core) = slot.as_mut().filter(|core| !core.is_pending()) {
            core.owns = false;
            // Also an append with an unknown result was made under the former name of this node.
            core.doubt = Some(Doubt::Overtaken);
            self.stop_unless(None);
        }
    }

    async fn loaded<'a>(
        &'a self,
        mut slot: MutexGuard<'a, Option<Core>>,
    ) -> Result<LockedThread<'a>, RuntimeError> {
        if self.tail.borrow().gone {
            return Err(StoreError::NotFound.into());
        }
        if slot.as_ref().is_none_or(|core| core.doubt.is_some()) {
            let head = self.store.head(&self.thread).await;
            let head = head.map_err(|error| self.noticed(error))?;
            let landed = match slot.as_ref() {
                Some(core) => self.has_landed(core).await?,
                None => false,
            };
            let core = Core::of(
                head,
                slot.take(),
                landed,
                (self.node.id(), self.store.is_shared()),
            );
            self.notice(&core);
            *slot = Some(core);
        }
        Ok(LockedThread { live: self, slot })
    }

    /// Whether the append with the unknown result is in the log, or an older one that stored the same chunks.
    async fn has_landed(&self, core: &Core) -> Result<bool, StoreError> {
        // Only the owner of the run stores its chunks.
        let chunk = core.unstored.records().first().map(NewRecord::text);
        let first = match &core.doubt {
            Some(Doubt::Unknown { first, .. }) => Some(first),
            Some(Doubt::Overtaken) | None => chunk,
        };
        let Some(first) = first else {
            return Ok(false);
        };
        let read = self.store.read(&self.thread, core.tail, 1, Filter::All);
        let next = read.await?;
        Ok(next.first().is_some_and(|logged| logged.text == *first))
    }

    /// Gives followers and the running step the news of a load.
    fn notice(&self, core: &Core) {
        let active = core.state.active().map(|active| &active.execution.id);
        // Another node may have taken up the same execution.
        self.stop_unless(active.filter(|_| core.owner.is_none()));
        self.occupied.queue(core.state.waiting().len());
        self.renumber(
            core.tail,
            logged(core.tail, core.unstored.records().to_vec()),
        );
        self.inform(Tail {
            seq: core.tail,
            streaming: active.is_some(),
            gone: false,
        });
    }

    /// Gives followers the end of the log, as the store has it, unless they know it. The owner of the thread's lock calls
    /// it, so only a store that has lost events has an earlier end than the known one.
    fn inform(&self, tail: Tail) {
        let known = self.end();
        if tail.seq < known {
            tracing::warn!(
                thread = %self.thread, %known, tail = %tail.seq,
                "the store has lost the end of a log, as in a failover to an asynchronous standby server"
            );
            self.n_shortened.fetch_add(1, Ordering::AcqRel);
            self.forget_erased();
        }
        self.tail.send_if_modified(|known| {
            let is_new = *known != tail;
            *known = tail;
            is_new
        });
    }

    /// Records that another node has deleted the thread, if that is the error.
    pub(super) fn noticed(&self, error: StoreError) -> StoreError {
        if matches!(error, StoreError::NotFound) {
            self.gone();
        }
        error
    }

    /// How often the store has lost the end of the log, as far as is known.
    pub(crate) fn n_shortened(&self) -> u32 {
        self.n_shortened.load(Ordering::Acquire)
    }

    fn conflict(&self, found: Seq) -> StoreError {
        StoreError::Conflict {
            thread: self.thread.clone(),
            expected: Seq::ZERO,
            found,
        }
    }

    /// How often other nodes have written since the state was loaded, so far.
    pub(crate) fn n_overtaken(&self) -> u32 {
        self.n_overtaken.load(Ordering::Acquire)
    }

    /// Whether to decide again after this error: another node has written meanwhile. `n_before` is the count of that
    /// before the decision. Repeated times come after a pause, as a node that writes all the time is always faster.
    pub(crate) async fn decides_again(
        &self,
        error: &RuntimeError,
        n_before: u32,
        tries: &mut Tries,
    ) -> bool {
        let is_refused = matches!(
            error,
            RuntimeError::Store(StoreError::Conflict { .. } | StoreError::Fenced { .. })
        );
        let Some(pause) = tries.next_pause() else {
            return false;
        };
        if !is_refused || self.n_overtaken() == n_before {
            return false;
        }
        if !pause.is_zero() {
            sleep(self.node.spread(pause, u64::from(self.n_overtaken()))).await;
        }
        true
    }

    /// Decides and appends. If another node has written since the state was loaded, everything is decided again.
    pub(crate) async fn decided<T, F>(&self, decide: impl FnMut() -> F) -> Result<T, RuntimeError>
    where
        F: Future<Output = Result<T, RuntimeError>>,
    {
        self.decided_within(Tries::OF_REQUEST, decide).await
    }

    /// Decides and appends for the run that this process owns.
    pub(crate) async fn decided_by_owner<T, F>(
        &self,
        decide: impl FnMut() -> F,
    ) -> Result<T, RuntimeError>
    where
        F: Future<Output = Result<T, RuntimeError>>,
    {
        self.decided_within(Tries::OF_OWNER, decide).await
    }

    async fn decided_within<T, F>(
        &self,
        mut tries: Tries,
        mut decide: impl FnMut() -> F,
    ) -> Result<T, RuntimeError>
    where
        F: Future<Output = Result<T, RuntimeError>>,
    {
        loop {
            let n_before = self.n_overtaken();
            match decide().await {
                Err(error) => {
                    if !self.decides_again(&error, n_before, &mut tries).await {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }
}

impl LockedThread<'_> {
    /// Notes that another node has written since the state was loaded.
    pub(crate) fn overtaken(&mut self) {
        self.live.n_overtaken.fetch_add(1, Ordering::AcqRel);
        if let Some(core) = self.slot.as_mut() {
            core.doubt = Some(Doubt::Overtaken);
        }
    }

    /// The thread's state, which is loaded when the lock is taken. After a failed append it is in
    /// doubt; the next owner of the lock loads it again.
    pub(crate) fn core(&mut self) -> Result<&mut Core, RuntimeError> {
        let core = self.slot.as_mut().filter(|core| core.doubt.is_none());
        core.ok_or_else(|| self.live.conflict(Seq::ZERO).into())
    }
}
