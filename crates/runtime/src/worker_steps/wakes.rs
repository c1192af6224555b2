//! Wakes those in this process that wait for a change of a step.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use store::TenantId;
use tokio::sync::Notify;

/// A change to wait for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// A step of the tenant waits for a worker.
    Offered(TenantId),
    /// The step with this id has changed.
    Step(TenantId, String),
}

/// The changes that somebody waits for.
#[derive(Default)]
pub(super) struct Wakes {
    waited: Mutex<BTreeMap<Change, Weak<Notify>>>,
}

impl Wakes {
    /// Notifies its waiters of a change. Begin to wait before you read the store.
    pub(super) fn of(&self, change: Change) -> Arc<Notify> {
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = waited.get(&change).and_then(Weak::upgrade) {
            return notify;
        }
        waited.retain(|_, notify| notify.strong_count() > 0);
        let notify = Arc::new(Notify::new());
        waited.insert(change, Arc::downgrade(&notify));
        notify
    }

    /// Wakes all that wait for the change.
    pub(super) fn wake(&self, change: &Change) {
        let waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = waited.get(change).and_then(Weak::upgrade) {
            notify.notify_waiters();
        }
    }
}
