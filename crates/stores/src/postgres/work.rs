//! The counts of a store's work, and whether it succeeds.

use crate::durable::{Activity, Health, StoreHealth};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use store::StoreError;

/// The counts of a store's commits, and their success.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) health: Health,
    n_commits: AtomicU64,
    n_requests: AtomicU64,
    /// Lanes with requests and without a connection.
    n_unconnected: AtomicUsize,
}

/// A lane that has no connection, while this lives.
pub(super) struct Unconnected<'a>(&'a Work);

impl Drop for Unconnected<'_> {
    fn drop(&mut self) {
        self.0.n_unconnected.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Work {
    /// A transaction with this number of appends was committed.
    pub(super) fn appended(&self, n_requests: usize) {
        self.health.appended();
        self.committed(n_requests);
    }

    /// A transaction with this number of requests was committed.
    pub(super) fn committed(&self, n_requests: usize) {
        self.n_commits.fetch_add(1, Ordering::Relaxed);
        let n_requests = u64::try_from(n_requests).unwrap_or(u64::MAX);
        self.n_requests.fetch_add(n_requests, Ordering::Relaxed);
        self.health.committed();
    }

    /// A write failed. Damage is counted by the operation that finds it.
    pub(super) fn failed(&self, error: &StoreError) {
        if matches!(error, StoreError::Failed(_)) {
            self.health.commit_failed(error);
        }
    }

    /// A lane has lost its connection, and tries to connect.
    pub(super) fn unconnected(&self) -> Unconnected<'_> {
        self.n_unconnected.fetch_add(1, Ordering::Relaxed);
        Unconnected(self)
    }

    pub(super) fn now(&self) -> StoreHealth {
        let now = self.health.now();
        if now == StoreHealth::Healthy && self.n_unconnected.load(Ordering::Relaxed) > 0 {
            return StoreHealth::CommitsFail;
        }
        now
    }

    pub(super) fn activity(&self) -> Activity {
        Activity {
            file_bytes: 0,
            wal_bytes: 0,
            n_commits: self.n_commits.load(Ordering::Relaxed),
            n_requests: self.n_requests.load(Ordering::Relaxed),
            n_failures: self.health.n_failures(),
            n_damaged: self.health.n_damaged(),
            health: self.now(),
        }
    }
}
