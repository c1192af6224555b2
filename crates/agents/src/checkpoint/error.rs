//! Errors of checkpoint stores.

use std::path::PathBuf;

/// Why a checkpoint can't be saved or read (UAP §12.4).
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The text to save is not the JSON of a state.
    #[error("the text is not an AgentStateJSON")]
    NotAState(#[source] serde_json::Error),
    /// A file that was saved can't be understood: it was damaged, or written by something else.
    #[error("{} is damaged", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A checkpoint exceeds the store's maximum size.
    #[error("the checkpoint of session {session_id:?} has more than {limit} bytes")]
    TooLarge {
        /// The session.
        session_id: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A session id is too long to be a name of the store.
    #[error("the session id has {length} bytes as a name, more than {limit}")]
    SessionIdTooLong {
        /// Its length, in bytes, as the store writes it.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The file system returned an error.
    #[error("can't {doing} {}", path.display())]
    Io {
        /// The failed operation, such as `read`.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's own error.
        #[source]
        source: std::io::Error,
    },
    /// A store of the application failed.
    #[error("the checkpoint store failed")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl CheckpointError {
    /// Wraps a failure of the application's own store.
    pub fn store(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Store(cause.into())
    }
}
