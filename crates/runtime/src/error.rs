//! Why the runtime did not do it.

use crate::store::StoreError;
use timeline::{ExecutionId, Rejected, Seq};

/// Why a request to the runtime failed. Nothing of it has been written.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The thread's state or the request's content forbids it.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An execution runs, and the policy is *reject*.
    #[error("the thread is busy with execution {0}; wait, or use the policy queue or interrupt")]
    Busy(ExecutionId),
    /// Too many triggers wait.
    #[error("{limit} messages wait on this thread already; try again when some are answered")]
    QueueFull {
        /// How many may wait.
        limit: usize,
    },
    /// The execution to be cancelled is not the one that runs.
    #[error("execution {0} is not running")]
    NotRunning(ExecutionId),
    /// The request names an agent that is not configured.
    #[error("there is no agent named {0:?}")]
    UnknownAgent(String),
    /// A thread can only be forked where it is at rest.
    #[error("the thread is not at rest at event {0}; fork at an event where no execution runs")]
    NotAtRest(Seq),
    /// An import needs an empty thread.
    #[error("the thread has content already; import into a new key")]
    NotEmpty,
    /// Something could not be written as JSON.
    #[error("a value has no JSON form")]
    Json(#[from] serde_json::Error),
    /// The runtime is shutting down.
    #[error("the server is shutting down")]
    ShuttingDown,
}
