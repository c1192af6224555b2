//! Limits on the triggers queued on a tenant's threads.

use super::{Counts, RunSlots, reached};
use std::sync::Arc;
use store::LimitReached;
use store::TenantId;

/// A number of queued triggers that counts for a tenant until it is dropped.
#[derive(Debug)]
pub struct QueuedTriggers {
    slots: Arc<RunSlots>,
    tenant: TenantId,
    n: usize,
}

impl RunSlots {
    /// Counts one more queued trigger of a tenant, until the result is dropped.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub fn queue(self: &Arc<Self>, tenant: &TenantId) -> Result<QueuedTriggers, LimitReached> {
        let max = self.of_tenant(tenant).queued_triggers;
        let queued = {
            let counts = self.counts();
            let count = counts.tenants.get(tenant);
            count.map_or(0, |it| it.queued_triggers)
        };
        if queued >= max {
            return Err(reached("tenant.queued_triggers", max));
        }
        Ok(self.queued(tenant, 1))
    }

    /// Counts `n` queued triggers of a tenant, even beyond its limit.
    pub(crate) fn queued(self: &Arc<Self>, tenant: &TenantId, n: usize) -> QueuedTriggers {
        let mut queued = QueuedTriggers {
            slots: Arc::clone(self),
            tenant: tenant.clone(),
            n: 0,
        };
        queued.set(n);
        queued
    }

    fn moved(&self, tenant: &TenantId, from: usize, to: usize) {
        if from == to {
            return;
        }
        let mut counts = self.counts();
        let Counts { tenants, .. } = &mut *counts;
        let count = tenants.entry(tenant.clone()).or_default();
        count.queued_triggers = count.queued_triggers.saturating_sub(from) + to;
        if count.queued_triggers == 0 && count.runs.all == 0 {
            tenants.remove(tenant);
        }
    }
}

impl QueuedTriggers {
    /// Changes the number.
    pub(crate) fn set(&mut self, n: usize) {
        self.slots.moved(&self.tenant, self.n, n);
        self.n = n;
    }
}

impl Drop for QueuedTriggers {
    fn drop(&mut self) {
        self.set(0);
    }
}
