//! Wake-ups for readers that show a tenant's threads.

use crate::runtime::Runtime;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use store::TenantId;
use tokio::sync::watch;

/// The readers that wait for changes of a tenant's threads.
#[derive(Default)]
pub(crate) struct Subscriptions {
    by_tenant: Mutex<BTreeMap<TenantId, watch::Sender<()>>>,
    /// The numbers of deleted threads.
    n_deleted: Mutex<BTreeMap<TenantId, u64>>,
}

impl Subscriptions {
    /// Wakes the readers of the tenant's threads.
    pub(crate) fn wake(&self, tenant: &TenantId) {
        let senders = self.by_tenant.lock();
        let mut senders = senders.unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = senders.get(tenant) else {
            return;
        };
        if sender.send(()).is_err() {
            // Nobody waits any more.
            senders.remove(tenant);
        }
    }

    /// Wakes all readers: other nodes may have changed any thread.
    pub(crate) fn wake_all(&self) {
        let senders = self.by_tenant.lock();
        let mut senders = senders.unwrap_or_else(PoisonError::into_inner);
        senders.retain(|_, sender| sender.send(()).is_ok());
    }

    /// Wakes the readers of the tenant's threads, of which one is deleted.
    pub(crate) fn wake_after_deletion(&self, tenant: &TenantId) {
        let numbers = self.n_deleted.lock();
        let mut numbers = numbers.unwrap_or_else(PoisonError::into_inner);
        *numbers.entry(tenant.clone()).or_default() += 1;
        drop(numbers);
        self.wake(tenant);
    }

    fn subscribe(&self, tenant: &TenantId) -> watch::Receiver<()> {
        let senders = self.by_tenant.lock();
        let mut senders = senders.unwrap_or_else(PoisonError::into_inner);
        let sender = senders.entry(tenant.clone());
        sender.or_insert_with(|| watch::Sender::new(())).subscribe()
    }
}

/// Wakes its owner after changes of a tenant's threads. It names neither the thread nor the change: the
/// owner reads the list. Text that a model is writing is no change. On a store that several processes
/// share, it also wakes its owner once a second.
#[derive(Debug)]
pub struct ThreadChanges(watch::Receiver<()>);

impl ThreadChanges {
    /// Waits for a change since the last call, or since the subscription. Several changes are one.
    /// False if there will be none any more.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl Runtime {
    /// Subscribes to the changes of a tenant's threads.
    pub fn thread_changes(&self, tenant: &TenantId) -> ThreadChanges {
        ThreadChanges(self.inner.subscriptions.subscribe(tenant))
    }

    /// The number of threads of a tenant that this process has deleted. The numbers of changes of deleted
    /// threads are used again.
    pub fn n_deleted_threads(&self, tenant: &TenantId) -> u64 {
        let numbers = self.inner.subscriptions.n_deleted.lock();
        let numbers = numbers.unwrap_or_else(PoisonError::into_inner);
        numbers.get(tenant).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_change_wakes_the_readers_of_its_tenant_alone() {
        let subscriptions = Subscriptions::default();
        let mut own = ThreadChanges(subscriptions.subscribe(&"acme".into()));
        let mut other = ThreadChanges(subscriptions.subscribe(&"globex".into()));
        subscriptions.wake(&"acme".into());
        subscriptions.wake(&"acme".into());
        assert!(own.changed().await);
        let short = Duration::from_millis(20);
        assert!(timeout(short, own.changed()).await.is_err());
        assert!(timeout(short, other.changed()).await.is_err());
        drop(own);
        subscriptions.wake(&"acme".into());
        assert_eq!(subscriptions.by_tenant.lock().unwrap().len(), 1);
    }
}
