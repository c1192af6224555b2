//! The form of external steps in the store.

use super::WorkerPolicy;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use timeline::ThreadId;

/// The kind of a step.
pub(super) const STEP: &str = "external.step";
/// The kind of a step's request: what the worker receives.
pub(super) const REQUEST: &str = "external.request";
/// The kind of an answer, until its runner has read it. Steps stay small: each search for one reads all of them.
pub(super) const ANSWER: &str = "external.answer";
/// How long an object without use remains. Its runner removes it before, unless that crashed.
const LEFTOVER: SignedDuration = SignedDuration::from_hours(1);

/// The id of the request and of the answer of one attempt.
pub(super) fn attempt_id(step: &str, attempt: u32) -> String {
    format!("{step}:{attempt}")
}

/// The kind of the streamed pieces of one attempt.
pub(super) fn chunks(step: &str, attempt: u32) -> String {
    format!("external.chunks:{step}:{attempt}")
}

/// A step that a worker answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredStep {
    pub(crate) agent: String,
    pub(crate) thread: ThreadId,
    pub(crate) key: String,
    pub(crate) execution: String,
    pub(crate) iteration: u32,
    /// The number of this attempt, from 1. A restart and a lost lease begin another one.
    pub(crate) attempt: u32,
    /// How many leases have ended without an answer.
    pub(crate) lost: u32,
    pub(crate) lease_ms: u64,
    /// The size of the request.
    pub(crate) request_bytes: usize,
    pub(crate) status: Status,
    /// When it may be removed by anybody.
    pub(crate) stale_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub(crate) enum Status {
    /// No worker has it.
    Waiting {
        /// When the wait is over.
        until: Timestamp,
    },
    /// A worker has it.
    Leased {
        lease: String,
        /// The worker's name for itself.
        worker: Option<String>,
        since: Timestamp,
        /// When the lease ends without a heartbeat.
        until: Timestamp,
    },
    /// A worker has answered.
    Answered { lease: String },
    /// A worker has failed.
    Failed { lease: String, message: String },
    /// The lease has ended without an answer.
    Lost,
    /// The run no longer needs the answer of the worker with this lease.
    Cancelled { lease: String },
}

impl StoredStep {
    /// Sets the status, and when the object may be removed.
    pub(crate) fn set(&mut self, status: Status, now: Timestamp) {
        let used_until = match &status {
            Status::Waiting { until } | Status::Leased { until, .. } => *until,
            Status::Answered { .. }
            | Status::Failed { .. }
            | Status::Lost
            | Status::Cancelled { .. } => now,
        };
        self.stale_at = used_until
            .saturating_add(LEFTOVER)
            .unwrap_or(Timestamp::MAX);
        self.status = status;
    }

    /// The duration of a lease.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }
}

/// An instant after another one.
pub(super) fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

impl WorkerPolicy {
    pub(super) fn lease_ms(&self) -> u64 {
        u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX)
    }
}
