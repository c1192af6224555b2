//! Finished runs without a stored thread. Clients that did not wait for such a run can read it for a
//! while after its end.

use crate::threads::Ephemeral;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// How long a run can be read after its end.
const KEPT: Duration = Duration::from_mins(5);
/// Maximum number of finished runs; a newer one replaces the oldest.
const MAX_ENDED: usize = 256;

/// The thread of such a run, and a guard that ends the run's timer when the thread is removed earlier.
type Ended = (Ephemeral, DropGuard);

/// The threads of the finished runs, in the order in which they ended. Removing an entry deletes its
/// thread.
#[derive(Clone, Default)]
pub(super) struct EndedRuns {
    threads: Arc<Mutex<VecDeque<Ended>>>,
    /// The tasks that wait for the runs and their timers; they end when the server stops.
    watches: TaskTracker,
}

impl EndedRuns {
    /// Holds the thread of a run until some minutes after the run's end, or until the server stops.
    pub(super) fn keep(&self, thread: Ephemeral, shutdown: CancellationToken) {
        let ended = self.clone();
        self.watches.spawn(async move {
            tokio::select! {
                () = thread.rests() => {}
                () = shutdown.cancelled() => return,
            }
            let key = thread.thread().key().to_owned();
            let dropped = CancellationToken::new();
            let thread = (thread, dropped.clone().drop_guard());
            ended.with(|threads| {
                threads.push_back(thread);
                let n_over = threads.len().saturating_sub(MAX_ENDED);
                threads.drain(..n_over);
            });
            tokio::select! {
                () = tokio::time::sleep(KEPT) => {}
                () = shutdown.cancelled() => {}
                () = dropped.cancelled() => return,
            }
            ended.with(|threads| threads.retain(|(thread, _)| thread.thread().key() != key));
        });
    }

    fn with(&self, act: impl FnOnce(&mut VecDeque<Ended>)) {
        act(&mut self.threads.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
