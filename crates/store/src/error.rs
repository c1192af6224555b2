//! Why a store did not do it.

use crate::LimitReached;
use timeline::{Seq, ThreadId};

/// The key, or its absence, does not fit the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The store is not encrypted, but a key was supplied.
    #[error(
        "the store is not encrypted, and there is a key: remove the key, or encrypt the store with `loomline rekey`"
    )]
    NotEncrypted,
    /// The store is encrypted, and no key was supplied.
    #[error(
        "the file is not a store of loomline, or it is encrypted: use another directory, or set `[store] key_env` to the \
         name of the variable with its key"
    )]
    Missing,
    /// It is encrypted with another key.
    #[error("the store is encrypted with another key, or damaged")]
    Wrong,
    /// This program was built without encryption.
    #[error("this loomline was built without encryption: build it with `--features encryption`")]
    Unsupported,
}

/// Why a store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such thread, or it is another tenant's.
    #[error("there is no such thread")]
    NotFound,
    /// The key is taken.
    #[error("a thread with key {0:?} exists already")]
    KeyTaken(String),
    /// The log no longer ends where the writer thought.
    #[error("the log of thread {thread} ends at {found}, not at {expected}")]
    Conflict {
        /// The thread.
        thread: ThreadId,
        /// Where the writer thought it ends.
        expected: Seq,
        /// Where it ends.
        found: Seq,
    },
    /// Another node has taken the thread's run since.
    #[error("another node has taken the run of thread {thread}")]
    Fenced {
        /// The thread.
        thread: ThreadId,
    },
    /// The lease of this node has ended, so other nodes may have taken its runs.
    #[error("the lease of this node has ended")]
    DeadNode,
    /// A reader has events that the log does not have: the store has lost the log's end, or is an older copy.
    #[error(
        "the reader is at event {at}, and the log ends at event {tail}: a failover or an older backup has lost its end; read it again from 0"
    )]
    AheadOfLog {
        /// Where the reader is.
        at: Seq,
        /// Where the log ends.
        tail: Seq,
    },
    /// The log of another thread no longer ends where the writer has read it, or is deleted. Nothing was written.
    #[error("thread {thread} has changed since it was read")]
    Moved {
        /// The other thread.
        thread: ThreadId,
    },
    /// The token was used before; this was answered.
    #[error("this request was answered before")]
    Repeated {
        /// The answer.
        answer: String,
    },
    /// There is no such object, or it is another tenant's.
    #[error("there is no {kind} {id:?}")]
    NoSuchObject {
        /// The kind of object.
        kind: String,
        /// Its id.
        id: String,
    },
    /// Other threads are forked from it.
    #[error("thread {thread} has forks; delete them first")]
    HasForks {
        /// The thread.
        thread: ThreadId,
    },
    /// The tenant stores as much as it may. Nothing was written.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// An id of the records is in use already.
    #[error("an id is in use already: {0}")]
    Duplicate(String),
    /// The data is not what this program wrote. The store has logged it.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The schema is newer than this program.
    #[error(
        "the store has schema version {found}, this program knows {known}: use a newer loomline"
    )]
    TooNew {
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// There is a write-ahead log and no database that it belongs to: somebody has deleted or
    /// emptied the database.
    #[error(
        "the database {path} is missing or empty, and its write-ahead log {path}-wal holds {bytes} bytes of it: \
         put the database back next to the log, or replace both with a backup; \
         for an empty store, move the log away"
    )]
    OrphanedLog {
        /// The database.
        path: String,
        /// The size of the log, in bytes.
        bytes: u64,
    },
    /// The supplied key, or its absence, does not fit the store.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Another process has it open for writing.
    #[error("another process serves this store ({0}); stop it first, or talk to it over HTTP")]
    InUse(String),
    /// The store is closing.
    #[error("the store is closed")]
    Closed,
    /// The database or the disk failed. The store has logged it, once per second at most.
    #[error("the store failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}
