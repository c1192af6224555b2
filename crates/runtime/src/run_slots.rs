//! How many runs execute at once: in the process, of each tenant and for each model.
//!
//! A [`RunSlot`] belongs to a thread from the start of a run until the thread is at rest. The runs of
//! sub-agents and the agents that a run hands over to use the slot of the run that began. A request
//! takes a slot or is [refused](LimitReached); a run that another process has left waits for one.

mod occupied;
mod triggers;

pub(crate) use occupied::Occupied;
pub use triggers::QueuedTriggers;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::TenantId;
use store::{LimitKind, LimitReached};
use tokio::sync::oneshot;

/// The limits of concurrent runs. By default there are none. Processes that share a store share the limits of tenants and
/// models.
#[derive(Clone, Debug)]
pub struct RunLimits {
    /// Maximum number of concurrent runs of the process.
    pub concurrent_runs: usize,
    /// The limits of a tenant that is not in `tenants`.
    pub tenant: TenantRunLimits,
    /// The limits of tenants that have their own.
    pub tenants: BTreeMap<TenantId, TenantRunLimits>,
    /// Maximum number of concurrent runs for each model that has a limit, by the model's name.
    pub models: BTreeMap<String, usize>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            concurrent_runs: usize::MAX,
            tenant: TenantRunLimits::default(),
            tenants: BTreeMap::new(),
            models: BTreeMap::new(),
        }
    }
}

/// The limits of the runs of one tenant. By default there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantRunLimits {
    /// Maximum number of concurrent runs.
    pub concurrent_runs: usize,
    /// Maximum number of triggers in the queues of its threads.
    pub queued_triggers: usize,
}

impl Default for TenantRunLimits {
    fn default() -> Self {
        Self {
            concurrent_runs: usize::MAX,
            queued_triggers: usize::MAX,
        }
    }
}

/// A tenant's usage of its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRuns {
    /// The tenant.
    pub tenant: TenantId,
    /// Number of runs that execute.
    pub running: usize,
    /// Number of triggers in the queues of its threads.
    pub queued_triggers: usize,
    /// Its limits.
    pub limits: TenantRunLimits,
}

/// Counts the concurrent runs and keeps them within their limits.
#[derive(Debug, Default)]
pub struct RunSlots {
    limits: RunLimits,
    /// Other processes that share the limits of tenants and models.
    n_processes: Mutex<Vec<Arc<AtomicUsize>>>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    process: Running,
    tenants: BTreeMap<TenantId, TenantCount>,
    models: BTreeMap<String, usize>,
    /// Runs that wait for a slot, in order.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug, Default)]
struct TenantCount {
    runs: Running,
    queued_triggers: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Running {
    all: usize,
    /// How many of them continue a run that another process has left.
    resumed: usize,
}

/// Whose run it is.
#[derive(Clone, Debug)]
struct Claimant {
    tenant: TenantId,
    /// The model, where it has a limit.
    model: Option<String>,
    is_resumed: bool,
}

#[derive(Debug)]
struct Waiting {
    claimant: Claimant,
    granted: oneshot::Sender<RunSlot>,
}

/// The right to execute a run. Dropped, it is free for another run.
#[derive(Debug)]
pub struct RunSlot {
    slots: Arc<RunSlots>,
    claimant: Claimant,
}

impl RunSlots {
    /// Slots within these limits.
    pub fn new(limits: RunLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            n_processes: Mutex::default(),
            counts: Mutex::default(),
        })
    }

    /// The limits.
    pub fn limits(&self) -> &RunLimits {
        &self.limits
    }

    /// A number of processes that share the limits of tenants and models, as one store counts them. Of the largest
    /// number, each process has an equal part, at least one run.
    pub(crate) fn shared_by(&self) -> Arc<AtomicUsize> {
        let n_processes = Arc::new(AtomicUsize::new(1));
        let all = self.n_processes.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(&n_processes));
        n_processes
    }

    fn part(&self, max: usize) -> usize {
        let all = self.n_processes.lock();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        let each = all.iter().map(|it| it.load(Ordering::Relaxed));
        max.div_ceil(each.max().unwrap_or(1).max(1))
    }

    /// Number of runs that execute in this process.
    pub fn running(&self) -> usize {
        self.counts().process.all
    }

    /// Number of runs of other processes that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.counts().waiting.len()
    }

    /// The usage of each tenant that has its own limits, runs or queued triggers.
    pub fn tenants(&self) -> Vec<TenantRuns> {
        let counts = self.counts();
        let mut all: BTreeMap<&TenantId, (usize, usize)> = BTreeMap::new();
        all.extend(self.limits.tenants.keys().map(|tenant| (tenant, (0, 0))));
        let used = counts.tenants.iter();
        all.extend(used.map(|(tenant, it)| (tenant, (it.runs.all, it.queued_triggers))));
        let tenants = all.into_iter();
        let usage = tenants.map(|(tenant, (running, queued_triggers))| TenantRuns {
            tenant: tenant.clone(),
            running,
            queued_triggers,
            limits: self.of_tenant(tenant),
        });
        usage.collect()
    }

    /// A slot for a run that a request begins.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub fn take(
        self: &Arc<Self>,
        tenant: &TenantId,
        model: Option<&str>,
    ) -> Result<RunSlot, LimitReached> {
        let claimant = self.claimant(tenant, model, false);
        let mut counts = self.counts();
        self.fits(&counts, &claimant)?;
        Ok(self.grant(&mut counts, claimant))
    }

    /// A slot for a run that must not be refused and must not wait, even beyond the limits: it
    /// continues a run that waited for answers, and the request that brought one has been admitted.
    pub(crate) fn take_beyond(self: &Arc<Self>, tenant: &TenantId, model: Option<&str>) -> RunSlot {
        let claimant = self.claimant(tenant, model, false);
        self.grant(&mut self.counts(), claimant)
    }

    /// Waits for a slot for a run that another process has left. Such runs use at most half of each
    /// limit, so that requests get their share. They are served in order; one whose tenant or model
    /// has no slot does not hold up the others.
    pub(crate) async fn wait(self: &Arc<Self>, tenant: &TenantId, model: Option<&str>) -> RunSlot {
        let claimant = self.claimant(tenant, model, true);
        let receiver = {
            let mut counts = self.counts();
            let is_first = !counts
                .waiting
                .iter()
                .any(|it| it.claimant.tenant == *tenant);
            if is_first && self.fits(&counts, &claimant).is_ok() {
                return self.grant(&mut counts, claimant);
            }
            let (granted, receiver) = oneshot::channel();
            counts.waiting.push_back(Waiting { claimant, granted });
            receiver
        };
        match receiver.await {
            Ok(slot) => slot,
            // The sender is dropped only with the slots themselves, which this holds.
            Err(_) => std::future::pending().await,
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_tenant(&self, tenant: &TenantId) -> TenantRunLimits {
        let own = self.limits.tenants.get(tenant);
        own.copied().unwrap_or(self.limits.tenant)
    }

    fn claimant(&self, tenant: &TenantId, model: Option<&str>, is_resumed: bool) -> Claimant {
        let limited = model.filter(|model| self.limits.models.contains_key(*model));
        Claimant {
            tenant: tenant.clone(),
            model: limited.map(str::to_owned),
            is_resumed,
        }
    }

    fn fits(&self, counts: &Counts, claimant: &Claimant) -> Result<(), LimitReached> {
        let of_process = (
            counts.process,
            self.limits.concurrent_runs,
            "concurrent_runs",
        );
        let running = counts.tenants.get(&claimant.tenant);
        let of_tenant = (
            running.map(|it| it.runs).unwrap_or_default(),
            self.of_tenant(&claimant.tenant).concurrent_runs,
            "tenant.concurrent_runs",
        );
        let parts = [of_process.1, self.part(of_tenant.1)];
        for ((running, limit, name), max) in [of_process, of_tenant].into_iter().zip(parts) {
            let is_beyond_share = claimant.is_resumed && running.resumed >= max.div_ceil(2);
            if running.all >= max || is_beyond_share {
                return Err(reached(name, limit));
            }
        }
        if let Some(model) = &claimant.model
            && let Some(max) = self.limits.models.get(model).copied()
            && counts.models.get(model).copied().unwrap_or_default() >= self.part(max)
        {
            return Err(reached("models.NAME.concurrent_runs", max));
        }
        Ok(())
    }

    fn grant(self: &Arc<Self>, counts: &mut Counts, claimant: Claimant) -> RunSlot {
        let resumed = usize::from(claimant.is_resumed);
        let tenant = counts.tenants.entry(claimant.tenant.clone()).or_default();
        for running in [&mut counts.process, &mut tenant.runs] {
            running.all += 1;
            running.resumed += resumed;
        }
        if let Some(model) = &claimant.model {
            *counts.models.entry(model.clone()).or_default() += 1;
        }
        RunSlot {
            slots: Arc::clone(self),
            claimant,
        }
    }

    /// Takes back a slot and gives free ones to the runs that wait, in order. The slots of waiters
    /// that are gone come back in the answer; they are dropped without the lock.
    fn release(self: &Arc<Self>, claimant: &Claimant) -> Vec<RunSlot> {
        let mut counts = self.counts();
        let resumed = usize::from(claimant.is_resumed);
        let counts = &mut *counts;
        counts.process.release(resumed);
        if let Some(tenant) = counts.tenants.get_mut(&claimant.tenant) {
            tenant.runs.release(resumed);
            if tenant.runs.all == 0 && tenant.queued_triggers == 0 {
                counts.tenants.remove(&claimant.tenant);
            }
        }
        if let Some(model) = &claimant.model
            && let Some(n) = counts.models.get_mut(model)
        {
            *n = n.saturating_sub(1);
        }
        let mut unwanted = Vec::new();
        let mut left = VecDeque::new();
        for waiting in std::mem::take(&mut counts.waiting) {
            if waiting.granted.is_closed() {
                continue;
            }
            if self.fits(counts, &waiting.claimant).is_err() {
                left.push_back(waiting);
                continue;
            }
            let slot = self.grant(counts, waiting.claimant);
            unwanted.extend(waiting.granted.send(slot).err());
        }
        counts.waiting = left;
        unwanted
    }
}

impl Running {
    fn release(&mut self, resumed: usize) {
        self.all = self.all.saturating_sub(1);
        self.resumed = self.resumed.saturating_sub(resumed);
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let unwanted = self.slots.release(&self.claimant);
        drop(unwanted);
    }
}

fn reached(name: &'static str, max: usize) -> LimitReached {
    LimitReached {
        name,
        max: u64::try_from(max).unwrap_or(u64::MAX),
        kind: LimitKind::Concurrency,
    }
}

#[cfg(test)]
mod tests;
