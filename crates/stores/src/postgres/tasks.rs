//! The tasks of a store.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// Tasks that end by themselves, or are aborted.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Waits until all tasks have ended. One that panicked has ended.
    pub(super) async fn ended(&self) {
        let mut tasks = std::mem::take(&mut *self.lock());
        while tasks.join_next().await.is_some() {}
    }

    pub(super) fn abort(&self) {
        self.lock().abort_all();
    }

    /// Lets the tasks go on though nobody waits for them.
    pub(super) fn detach(&self) {
        self.lock().detach_all();
    }
}
