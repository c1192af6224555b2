//! Checks whether a request may start a run or queue a trigger, before anything is written.

use crate::error::RuntimeError;
use crate::live::Live;
use crate::request::{Policy, ReactRequest};
use crate::run_slots::{QueuedTriggers, RunSlot};
use crate::runtime::Runtime;
use timeline::State;

/// The share of the limits that a request holds. Dropping it before the request is written releases
/// the share.
#[derive(Default)]
pub(crate) struct Admitted {
    slot: Option<RunSlot>,
    // The thread counts the trigger itself once it is written.
    _queued: Option<QueuedTriggers>,
}

impl Admitted {
    /// Moves the slot to the thread after the request is written.
    pub(crate) fn resolve(self, live: &Live) {
        if let Some(slot) = self.slot {
            live.occupied.occupy(slot);
        }
    }
}

impl Runtime {
    /// Acquires a slot if the request's run starts at once, else a place in the queue. The caller
    /// holds the thread's lock.
    pub(crate) fn admit(
        &self,
        live: &Live,
        state: &State,
        request: &ReactRequest,
    ) -> Result<Admitted, RuntimeError> {
        let is_busy = state.active().is_some() || state.waiting().len() > 0;
        if is_busy && request.policy == Policy::Queue && request.rewind.is_none() {
            return self.admit_trigger(live);
        }
        if request.run.parent.is_some() {
            // A sub-agent's run belongs to the run that calls it.
            return Ok(Admitted::default());
        }
        let model = self.inner.reactors.model(&request.run);
        self.admit_run(live, model.as_deref())
    }

    /// Acquires a slot for a run that starts on this thread, unless the thread has one. The caller
    /// holds the thread's lock.
    pub(crate) fn admit_run(
        &self,
        live: &Live,
        model: Option<&str>,
    ) -> Result<Admitted, RuntimeError> {
        if live.occupied.has_slot() {
            return Ok(Admitted::default());
        }
        Ok(Admitted {
            slot: Some(self.inner.runs.take(&live.tenant, model)?),
            _queued: None,
        })
    }

    /// Counts a trigger that will be queued on this thread.
    pub(crate) fn admit_trigger(&self, live: &Live) -> Result<Admitted, RuntimeError> {
        Ok(Admitted {
            slot: None,
            _queued: Some(self.inner.runs.queue(&live.tenant)?),
        })
    }
}
