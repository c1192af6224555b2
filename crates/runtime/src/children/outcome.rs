//! Why a child has no answer for the call that started it.

use crate::error::RuntimeError;

/// Why a sub-agent on a thread of its own failed. The parent's model is shown it.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChildError {
    /// Its execution ended early.
    #[error("its run on thread {key:?} ended early ({reason}){detail}")]
    Failed {
        key: String,
        reason: String,
        detail: String,
    },
    /// It left calls that somebody outside has to answer, and the call that started it can't wait:
    /// its tool must not run twice.
    #[error(
        "its run on thread {key:?} waits for answers to {n_calls} tool calls; post them to that thread, this call does not wait for them"
    )]
    Waits { key: String, n_calls: usize },
    /// Its thread is gone, or can't be read or written.
    #[error("its thread {key:?} can't be used")]
    Thread {
        key: String,
        #[source]
        cause: Box<RuntimeError>,
    },
    /// The log of its thread ended before its execution did.
    #[error("its thread {key:?} ended before its run did")]
    Cut { key: String },
    /// The run ended without a response.
    #[error("its run on thread {key:?} ended without a response")]
    Silent { key: String },
}
