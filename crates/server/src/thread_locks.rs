//! Who decides about a thread next: what a view looks at and then does, one request at a time.
//!
//! The runtime has a lock a thread for each of its own operations. A view whose rule spans two of
//! them (no run beside an active one) takes a turn around both. One server writes a store, so turns
//! in its memory are enough.

use std::hash::{DefaultHasher, Hash, Hasher};
use timeline::ThreadId;
use tokio::sync::{Mutex, MutexGuard};

/// How many threads can have their turns at once, at the most. Others wait for each other now and
/// then, which is no error.
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
