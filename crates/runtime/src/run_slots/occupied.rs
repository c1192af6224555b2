//! The limits that a thread uses in this process.

use super::{QueuedTriggers, RunSlot, RunSlots};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::TenantId;

/// The slot of a thread, and its queued triggers. Changed only by the holder of the thread's lock.
pub(crate) struct Occupied {
    inner: Mutex<Inner>,
}

struct Inner {
    slot: Option<RunSlot>,
    queued: QueuedTriggers,
}

impl Occupied {
    pub(crate) fn new(slots: &Arc<RunSlots>, tenant: &TenantId) -> Self {
        Self {
            inner: Mutex::new(Inner {
                slot: None,
                queued: slots.queued(tenant, 0),
            }),
        }
    }

    /// Assigns this slot to the thread.
    pub(crate) fn occupy(&self, slot: RunSlot) {
        let former = self.inner().slot.replace(slot);
        drop(former);
    }

    pub(crate) fn has_slot(&self) -> bool {
        self.inner().slot.is_some()
    }

    /// Releases the slot, if there is one.
    pub(crate) fn release(&self) {
        let former = self.inner().slot.take();
        drop(former);
    }

    /// Sets the number of triggers queued on the thread.
    pub(crate) fn queue(&self, n: usize) {
        self.inner().queued.set(n);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
