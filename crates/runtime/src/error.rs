//! Why the runtime did not do it.

use crate::compaction::IllegalCut;
use crate::view::ViewRefused;
use store::LimitReached;
use store::StoreError;
use timeline::{ExecutionId, Rejected, Seq};

/// Why a reactor does not take an answer; nothing has been written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct AnswerRefusal {
    /// The call, where it is about one.
    pub call: Option<String>,
    /// A description for people.
    pub detail: String,
}

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
    #[error("the thread is busy with execution {0}; wait until it ends, or cancel it")]
    Busy(ExecutionId),
    /// It was to go on from a place that something has come after since.
    #[error("the thread has a new message or run since event {0}")]
    Followed(Seq),
    /// The agent does not take the answer: it does not fit the tool, or comes too early.
    #[error(transparent)]
    Answer(#[from] AnswerRefusal),
    /// Too many triggers wait.
    #[error("{limit} messages wait on this thread already; try again when some are answered")]
    QueueFull {
        /// How many may wait.
        limit: usize,
    },
    /// The execution to be cancelled is not the one that runs.
    #[error("execution {0} is not running")]
    NotRunning(ExecutionId),
    /// The thread has no such execution.
    #[error("there is no execution {0} on this thread")]
    UnknownExecution(ExecutionId),
    /// The request names an agent that is not configured.
    #[error("there is no agent named {0:?}")]
    UnknownAgent(String),
    /// A thread can only be forked where it is at rest.
    #[error("the thread is not at rest at event {0}; fork at an event where no execution runs")]
    NotAtRest(Seq),
    /// A thread can only be forked at a place that it has.
    #[error("the thread has no event {at}: it ends at {tail}")]
    BeyondEnd {
        /// The place.
        at: Seq,
        /// Where the thread ends.
        tail: Seq,
    },
    /// A compaction can't end there.
    #[error(transparent)]
    Cut(#[from] IllegalCut),
    /// An import needs an empty thread.
    #[error("the thread has content already; import into a new key")]
    NotEmpty,
    /// The request's token was used for another request.
    #[error("the idempotency key was used for another request; use a new one")]
    TokenReused,
    /// Something could not be written as JSON.
    #[error("a value has no JSON form")]
    Json(#[from] serde_json::Error),
    /// The work on the request broke off; the server's log says where.
    #[error("the request could not be finished; ask again")]
    BrokenOff,
    /// A [`Gate`](crate::Gate) refused the posted items, for this reason.
    #[error(transparent)]
    TurnedAway(Box<dyn std::error::Error + Send + Sync>),
    /// A message, or a part of an answer, is too large.
    #[error(
        "a message of {bytes} bytes is larger than the {max} that one may have; send large files and images as URLs, or upload them and refer to them"
    )]
    MessageTooLarge {
        /// Its size as JSON, in bytes.
        bytes: usize,
        /// Maximum size, in bytes.
        max: usize,
    },
    /// A budget is spent.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// The limit on concurrent reads of threads was reached.
    #[error(transparent)]
    View(#[from] ViewRefused),
    /// The runtime is shutting down.
    #[error("the server is shutting down")]
    ShuttingDown,
}

impl RuntimeError {
    /// Whether the same may succeed later without anyone changing anything.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Store(error) => {
                matches!(error, StoreError::Failed(_) | StoreError::Conflict { .. })
            }
            Self::Rejected(_)
            | Self::Answer(_)
            | Self::Busy(_)
            | Self::Followed(_)
            | Self::QueueFull { .. }
            | Self::NotRunning(_)
            | Self::UnknownExecution(_)
            | Self::UnknownAgent(_)
            | Self::NotAtRest(_)
            | Self::BeyondEnd { .. }
            | Self::Cut(_)
            | Self::NotEmpty
            | Self::TokenReused
            | Self::Json(_)
            | Self::BrokenOff
            | Self::TurnedAway(_)
            | Self::LimitReached(_)
            | Self::View(_)
            | Self::MessageTooLarge { .. }
            | Self::ShuttingDown => false,
        }
    }
}

impl RuntimeError {
    /// Whether a store has logged it already.
    pub fn is_logged(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::Failed(_) | StoreError::Damaged(_))
        )
    }
}

/// Logs that the work on a thread failed, unless a store has logged it: a full disk is one line per
/// second, and not one for each thread.
pub(crate) fn log_failure(error: &RuntimeError, thread: &str, what: &'static str) {
    if error.is_logged() {
        tracing::debug!(error = render_error(error), thread, "{what}");
    } else {
        tracing::error!(error = render_error(error), thread, "{what}");
    }
}

/// An error with everything that caused it, on one line.
pub(crate) fn render_error(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
