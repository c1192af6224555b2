//! Runs without a thread that were begun and not waited for: they can be asked about for a while after their end.

use crate::threads::Ephemeral;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// How long a run is there after its end.
const KEPT: Duration = Duration::from_mins(5);
/// How many are there at the most that are over; a newer one takes the place of the oldest.
const MAX_ENDED: usize = 256;

/// The thread of such a run, and what tells the task that waits for its time that it is gone before.
type Ended = (Ephemeral, DropGuard);

/// The threads of such runs that are over, in the order in which they ended. One that is no longer here is deleted.
#[derive(Clone, Default)]
pub(super) struct EndedRuns {
    threads: Arc<Mutex<VecDeque<Ended>>>,
    /// What watches them; each ends when the server stops.
    watches: TaskTracker,
}

impl EndedRuns {
    /// Keeps the thread of a run while that is at work and for a while after, at the longest until the server stops.
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
