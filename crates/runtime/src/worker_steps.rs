//! The steps that workers answer: in the store, with leases.
//!
//! Steps, leases and answers are sidecar objects, so a worker can use any node of a store ([`ExternalSteps`]).
//! A lease ends without heartbeats. Then the step starts anew, and later answers of the former worker are
//! refused. The same holds for a step that another process takes up after a crash.

mod answer;
mod offers;
mod steps;
mod stored;
mod wakes;

pub use answer::{AnsweredCall, ExternalAnswer, RefusedAnswer, StepDelta, StepUsage};
pub(crate) use offers::{Offer, Offered};
pub use steps::{ExternalError, ExternalSteps, LeaseRef, LeaseRequest, LeaseState, LeasedStep};
pub(crate) use stored::Status;

use std::time::Duration;

/// The limits of an external agent's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerPolicy {
    /// How long a lease lasts without a heartbeat.
    pub lease: Duration,
    /// Maximum time that a step waits for a worker.
    pub wait: Duration,
    /// Maximum number of leases of a step that end without an answer.
    pub max_lost_leases: u32,
}

impl Default for WorkerPolicy {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            wait: Duration::from_mins(10),
            max_lost_leases: 3,
        }
    }
}
