//! The limits that a thread uses in this process.

use super::{QueuedTriggers, RunSlot, RunSlots};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::TenantId;
use timeline::ExecutionId;

/// The slot of a thread, its queued triggers, and the execution that this process has started or
/// taken up. Changed only by the holder of the thread's lock.
pub(crate) struct Occupied {
    inner: Mutex<Inner>,
}

struct Inner {
    slot: Option<RunSlot>,
    queued: QueuedTriggers,
    execution: Option<ExecutionId>,
}

impl Occupied {
    pub(crate) fn new(slots: &Arc<RunSlots>, tenant: &TenantId) -> Self {
        Self {
            inner: Mutex::new(Inner {
                slot: None,
                queued: slots.queued(tenant, 0),
                execution: None,
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

    /// Records that this process runs the execution.
    pub(crate) fn take_up(&self, execution: &ExecutionId) {
        self.inner().execution = Some(execution.clone());
    }

    /// Whether this process has started the execution or taken it up.
    pub(crate) fn has_taken_up(&self, execution: &ExecutionId) -> bool {
        self.inner().execution.as_ref() == Some(execution)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
