//! Recovery: continues the threads that a crash or a stop left unfinished, concurrently with new
//! requests.

use crate::error::{RuntimeError, render_error};
use crate::planted::{self, Bug};
use crate::run::next_run;
use crate::run_slots::{QueuedTriggers, RunSlot};
use crate::runtime::Runtime;
use crate::unrecovered::Unrecovered;
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;
use store::Run;
use store::{Head, StoreError, TenantId};
use timeline::ThreadId;
use tokio::time::Instant;

/// From this number of starts on, a run starts alone.
const STARTS_BEFORE_TRIAL: u32 = 2;
/// Maximum time that the next such run waits for this one to complete a step.
const TRIAL: Duration = Duration::from_secs(5);
/// Time until a search may find a thread again that waits for another one, or that the store could not read…
const SOON: Duration = Duration::from_secs(5);
/// …and one that can't be recovered.
const LATER: Duration = Duration::from_mins(1);

/// A thread that another process left unfinished.
struct UnfinishedThread {
    thread: ThreadId,
    model: Option<String>,
    n_starts: u32,
    due: Instant,
    /// They count before the thread is in memory.
    _queued: QueuedTriggers,
}

impl Runtime {
    /// Starts recovery: continues every execution and trigger that a crash or a stop left
    /// unfinished, within the limits of concurrent runs. Returns the number of unfinished threads
    /// once their list is read; the recovery itself runs in the background. A thread that can't be
    /// loaded is logged and skipped.
    ///
    /// A request for a thread that is not recovered yet is answered as usual and recovers the
    /// thread.
    ///
    /// On a store that several processes share, the process joins as a node. Until it shuts down, it looks
    /// for threads that no living node runs.
    pub async fn recover(&self) -> Result<usize, RuntimeError> {
        if self.inner.store.is_shared() {
            return self.join().await;
        }
        Ok(self.recover_threads(self.inner.store.unfinished().await?))
    }

    /// Continues these threads in the background, but those that wait for their recovery already.
    /// Returns their number.
    pub(crate) fn recover_threads(&self, mut threads: Vec<ThreadId>) -> usize {
        {
            let mut unrecovered = self.unrecovered_threads();
            threads.retain(|thread| unrecovered.insert(thread));
        }
        let n = threads.len();
        if n > 0 {
            let runtime = self.clone();
            let recovery = async move { runtime.recover_all(threads).await };
            self.inner.tasks.spawn(recovery);
        }
        n
    }

    pub(crate) fn unrecovered_threads(&self) -> MutexGuard<'_, Unrecovered> {
        let unrecovered = self.inner.unrecovered.lock();
        unrecovered.unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of unfinished threads that are not recovered yet.
    pub fn unrecovered(&self) -> usize {
        self.unrecovered_threads().len()
    }

    async fn recover_all(&self, threads: Vec<ThreadId>) {
        let mut by_tenant: BTreeMap<TenantId, Vec<UnfinishedThread>> = BTreeMap::new();
        for thread in threads {
            if self.inner.shutdown.is_cancelled() {
                return;
            }
            match self.examine(thread.clone()).await {
                Ok(Some((tenant, left))) => by_tenant.entry(tenant).or_default().push(left),
                Ok(None) => self.recovered(&thread),
                Err(error) => self.not_recovered(&thread, &error),
            }
        }
        for (tenant, mut left) in by_tenant {
            // Those that nothing has died with go first, in order.
            left.sort_by_key(|left| (left.n_starts, left.due));
            let runtime = self.clone();
            let recovery = async move { runtime.recover_tenant(&tenant, left).await };
            self.inner.tasks.spawn(recovery);
        }
    }

    /// Recovers the threads one after the other, each when it has a slot, so that only those are in
    /// memory.
    async fn recover_tenant(&self, tenant: &TenantId, threads: Vec<UnfinishedThread>) {
        let shutdown = &self.inner.shutdown;
        for left in threads {
            let due = async {
                tokio::time::sleep_until(left.due).await;
                let slot = self.inner.runs.wait(tenant, left.model.as_deref());
                let slot = slot.await;
                let mut trial = None;
                if left.n_starts >= STARTS_BEFORE_TRIAL {
                    trial = Some(self.inner.trial.lock().await);
                }
                (slot, trial)
            };
            let Some((slot, trial)) = shutdown.run_until_cancelled(due).await else {
                return;
            };
            match self.recover_one(&left.thread, Some(slot)).await {
                Ok(()) => self.recovered(&left.thread),
                Err(error) => self.not_recovered(&left.thread, &error),
            }
            if trial.is_some() {
                let trial = tokio::time::timeout(TRIAL, self.survived(&left.thread));
                let _ = shutdown.run_until_cancelled(trial).await;
            }
        }
    }

    /// The data that recovery needs about a thread. None if there is nothing to do, or if the
    /// parent's run recovers it as its sub-agent.
    async fn examine(
        &self,
        thread: ThreadId,
    ) -> Result<Option<(TenantId, UnfinishedThread)>, RuntimeError> {
        let head = self.inner.store.head(&thread).await?;
        self.unrecovered_threads().is_of(&thread, &head.tenant);
        let Some(run) = next_run(&head.state) else {
            return Ok(None);
        };
        if let Some(parent) = self.caller(&run).await? {
            // It may be behind the limit of a search that finds many sub-agents.
            self.recover_threads(vec![parent]);
            self.unrecovered_threads().pass_over(&thread, SOON);
            return Ok(None);
        }
        let active = head.state.active();
        let pause = active.map(|active| self.restart_pause(active, head.last_at));
        let n_waiting = head.state.waiting().len();
        let left = UnfinishedThread {
            thread,
            model: self.inner.reactors.model(&run),
            n_starts: active.map_or(0, |active| active.n_starts),
            due: Instant::now() + pause.unwrap_or_default(),
            _queued: self.inner.runs.queued(&head.tenant, n_waiting),
        };
        Ok(Some((head.tenant, left)))
    }

    /// The thread of a sub-agent's parent, if the parent's run is to be recovered, too.
    async fn caller(&self, run: &Run) -> Result<Option<ThreadId>, RuntimeError> {
        let Some(parent) = &run.parent else {
            return Ok(None);
        };
        match self.inner.store.head(&parent.thread_id).await {
            // A living node that runs the parent has not found this thread at its recovery.
            Ok(Head { state, owner, .. }) => {
                let is_found = owner.is_none() || planted::has(Bug::LeavesChildToParent);
                let active = state.active().map(|active| &active.execution.id);
                let is_called = is_found && active == Some(&parent.execution_id);
                Ok(is_called.then(|| parent.thread_id.clone()))
            }
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => {
                tracing::error!(error = render_error(&error), thread = %parent.thread_id, "the thread that a sub-agent belongs to can't be read");
                Ok(None)
            }
        }
    }

    /// Continues a thread, in this slot if it needs one.
    pub(crate) async fn recover_one(
        &self,
        thread: &ThreadId,
        slot: Option<RunSlot>,
    ) -> Result<(), RuntimeError> {
        let live = self.live_by_id(thread).await?;
        live.decided(async || {
            let mut held = live.hold().await?;
            self.stop_orphan(&live, &mut held).await
        })
        .await?;
        let mut held = live.hold().await?;
        let core = held.core()?;
        let is_free = core.owner.is_none() && !live.is_worked_on();
        let is_needed = is_free && next_run(&core.state).is_some();
        if let Some(slot) = slot.filter(|_| is_needed && !live.occupied.has_slot()) {
            live.occupied.occupy(slot);
        }
        self.ensure_worker(&live, &mut held)
    }

    /// Waits until the execution of a thread is over or has completed a step.
    async fn survived(&self, thread: &ThreadId) -> Result<(), RuntimeError> {
        let live = self.live_by_id(thread).await?;
        let mut tail = live.watch();
        loop {
            tail.borrow_and_update();
            let mut held = live.hold().await?;
            let core = held.core()?;
            let (owns, is_elsewhere) = (core.owns, core.owner.is_some());
            let active = core.state.active();
            if is_elsewhere || active.is_none_or(|active| owns && active.n_starts <= 1) {
                return Ok(());
            }
            drop(held);
            if tail.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    fn recovered(&self, thread: &ThreadId) {
        self.unrecovered_threads().remove(thread);
    }

    fn not_recovered(&self, thread: &ThreadId, error: &RuntimeError) {
        let is_gone = matches!(
            error,
            RuntimeError::Store(StoreError::NotFound | StoreError::Closed)
        );
        if is_gone {
            self.recovered(thread);
        } else {
            let time = if error.is_transient() { SOON } else { LATER };
            self.unrecovered_threads().pass_over(thread, time);
            tracing::error!(error = render_error(error), %thread, "a thread could not be resumed");
        }
    }
}
