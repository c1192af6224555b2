//! Recovery: continues the threads that a crash or a stop left unfinished, concurrently with new
//! requests.

use crate::error::{RuntimeError, render_error};
use crate::run::next_run;
use crate::run_slots::{QueuedTriggers, RunSlot};
use crate::runtime::Runtime;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::Run;
use store::{Head, StoreError, TenantId};
use timeline::ThreadId;
use tokio::time::Instant;

/// From this number of starts on, a run starts alone.
const STARTS_BEFORE_TRIAL: u32 = 2;
/// Maximum time that the next such run waits for this one to complete a step.
const TRIAL: Duration = Duration::from_secs(5);

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
    pub async fn recover(&self) -> Result<usize, RuntimeError> {
        let threads = self.inner.store.unfinished().await?;
        let n = threads.len();
        if n > 0 {
            self.inner.unrecovered.fetch_add(n, Ordering::Relaxed);
            let runtime = self.clone();
            let recovery = async move { runtime.recover_all(threads).await };
            self.inner.tasks.spawn(recovery);
        }
        Ok(n)
    }

    /// Number of unfinished threads that are not recovered yet.
    pub fn unrecovered(&self) -> usize {
        self.inner.unrecovered.load(Ordering::Relaxed)
    }

    async fn recover_all(&self, threads: Vec<ThreadId>) {
        let mut by_tenant: BTreeMap<TenantId, Vec<UnfinishedThread>> = BTreeMap::new();
        for thread in threads {
            if self.inner.shutdown.is_cancelled() {
                return;
            }
            match self.examine(thread.clone()).await {
                Ok(Some((tenant, left))) => by_tenant.entry(tenant).or_default().push(left),
                Ok(None) => self.recovered(),
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
                Ok(()) => self.recovered(),
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
        let Some(run) = next_run(&head.state) else {
            return Ok(None);
        };
        if self.is_called(&run).await? {
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

    /// Whether a run is a sub-agent's and its parent run is unfinished, too.
    async fn is_called(&self, run: &Run) -> Result<bool, RuntimeError> {
        let Some(parent) = &run.parent else {
            return Ok(false);
        };
        match self.inner.store.head(&parent.thread_id).await {
            Ok(Head { state, .. }) => Ok(state
                .active()
                .is_some_and(|active| active.execution.id == parent.execution_id)),
            Err(StoreError::NotFound) => Ok(false),
            Err(error) => {
                tracing::error!(error = render_error(&error), thread = %parent.thread_id, "the thread that a sub-agent belongs to can't be read");
                Ok(false)
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
        let mut held = live.hold().await?;
        self.stop_orphan(&live, &mut held).await?;
        let is_needed = next_run(&held.core()?.state).is_some() && !live.is_worked_on();
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
            let active = live.hold().await?.core()?.state.active().cloned();
            if active.is_none_or(|active| {
                live.occupied.has_taken_up(&active.execution.id) && active.n_starts <= 1
            }) {
                return Ok(());
            }
            if tail.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    fn recovered(&self) {
        self.inner.unrecovered.fetch_sub(1, Ordering::Relaxed);
    }

    fn not_recovered(&self, thread: &ThreadId, error: &RuntimeError) {
        self.recovered();
        if !matches!(
            error,
            RuntimeError::Store(StoreError::NotFound | StoreError::Closed)
        ) {
            tracing::error!(error = render_error(error), %thread, "a thread could not be resumed");
        }
    }
}
