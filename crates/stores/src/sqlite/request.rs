//! A request to the committing thread.

use super::error::{CommitFailed, failed};
use crate::durable::Health;
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

    /// The work after the commit.
    fn wants(&self) -> Option<AfterCommit> {
        None
    }

    /// Notes whether that was done.
    fn note(&mut self, _done: Result<bool, StoreError>) {}

    /// Sends the answer, once it is known whether the commit is durable.
    fn answer(self: Box<Self>, committed: Result<(), CommitFailed>);
}

/// Work that is not done in a transaction, but after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterCommit {
    /// The write-ahead log is emptied.
    EmptyLog,
    /// The whole file is written anew.
    Compact,
}

/// A request for such work. Its answer says whether it could be done.
pub(super) struct Maintenance {
    pub(super) wanted: AfterCommit,
    pub(super) done: Result<bool, StoreError>,
    pub(super) answer: oneshot::Sender<Result<bool, StoreError>>,
}

impl Request for Maintenance {
    fn bytes(&self) -> usize {
        0
    }

    fn run(&mut self, _: &Connection) {}

    fn has_succeeded(&self) -> bool {
        true
    }

    fn wants(&self) -> Option<AfterCommit> {
        Some(self.wanted)
    }

    fn note(&mut self, done: Result<bool, StoreError>) {
        self.done = done;
    }

    fn answer(self: Box<Self>, committed: Result<(), CommitFailed>) {
        let answer = committed.map_err(failed).and(self.done);
        // Nobody may be waiting any more.
        let _ = self.answer.send(answer);
    }
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
