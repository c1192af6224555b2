//! A request to the committing thread.

use super::error::{CommitFailed, failed};
use super::health::Health;
use rusqlite::Connection;
use std::sync::Arc;
use store::StoreError;
use tokio::sync::oneshot;

/// A request that waits for its commit.
pub(super) trait Request: Send {
    /// The size of the data that it writes, in bytes.
    fn bytes(&self) -> usize;

    /// Does the work in a transaction. The last result counts.
    fn run(&mut self, conn: &Connection);

    /// Whether the work was done and succeeded.
    fn has_succeeded(&self) -> bool;

    /// Sends the answer, once it is known whether the commit is durable.
    fn answer(self: Box<Self>, committed: Result<(), CommitFailed>);
}

/// A request whose answer has the type `T`.
pub(super) struct QueuedRequest<T, F> {
    pub(super) bytes: usize,
    pub(super) work: F,
    pub(super) done: Result<T, StoreError>,
    pub(super) answer: oneshot::Sender<Result<T, StoreError>>,
    pub(super) health: Arc<Health>,
}

impl<T, F> Request for QueuedRequest<T, F>
where
    T: Send,
    F: Fn(&Connection) -> Result<T, StoreError> + Send,
{
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn run(&mut self, conn: &Connection) {
        self.done = (self.work)(conn);
    }

    fn has_succeeded(&self) -> bool {
        self.done.is_ok()
    }

    fn answer(self: Box<Self>, committed: Result<(), CommitFailed>) {
        let answer = match committed {
            Ok(()) => self
                .done
                .inspect_err(|error| self.health.write_failed(error)),
            Err(error) => Err(failed(error)),
        };
        // Nobody may be waiting any more; what is written is written.
        let _ = self.answer.send(answer);
    }
}
