//! Turns: one request at a time reads a thread and then acts on it.
//!
//! The runtime has a lock per thread for each single operation. A rule may span two operations, such as
//! no run besides an active one. Then the view takes a turn around both, so that requests of one server wait for each
//! other. Servers that share a store do not: a rule names the event after which nothing may have followed, and the
//! request looks again if something has.

use std::hash::{DefaultHasher, Hash, Hasher};
use timeline::ThreadId;
use tokio::sync::{Mutex, MutexGuard};

/// Number of locks. Threads that share a lock wait for each other, which is harmless.
const N_LOCKS: usize = 256;

/// The turns of all threads.
pub(crate) struct ThreadLocks {
    locks: Vec<Mutex<()>>,
    own: Mutex<()>,
}

impl Default for ThreadLocks {
    fn default() -> Self {
        let locks = std::iter::repeat_with(Mutex::default).take(N_LOCKS);
        Self {
            locks: locks.collect(),
            own: Mutex::default(),
        }
    }
}

impl ThreadLocks {
    /// Waits for the turn of a thread, which lasts until the guard is dropped.
    pub(crate) async fn of(&self, thread: &ThreadId) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        thread.as_str().hash(&mut hasher);
        let n_locks = self.locks.len().max(1) as u64;
        let place = usize::try_from(hasher.finish() % n_locks).unwrap_or_default();
        self.locks.get(place).unwrap_or(&self.own).lock().await
    }
}
