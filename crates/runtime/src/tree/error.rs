//! Errors of stored trees.

use crate::error::RuntimeError;
use agents::{StateError, TreeError};
use store::StoreError;
use timeline::{Rejected, ThreadId};

/// Why a stored tree can't be written or read (UAP §7). If storing fails at a node, the nodes
/// before it are in the store; storing the tree again continues there.
#[derive(Debug, thiserror::Error)]
pub enum StoredTreeError {
    /// The runtime or its store returned an error.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The threads form no tree, or have too many branches.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The tree has no such node.
    #[error("the tree of thread {key:?} has no node {node:?}")]
    UnknownNode {
        /// The thread.
        key: String,
        /// The node.
        node: String,
    },
    /// The thread is the root of another tree, or a branch of one.
    #[error("thread {key:?} holds node {found:?}, not the root {root:?} of this tree")]
    AnotherTree {
        /// The thread.
        key: String,
        /// The node of the thread.
        found: String,
        /// The root of the tree to store.
        root: String,
    },
    /// A node has another parent in the store.
    #[error("node {node:?} is stored with another parent")]
    AnotherParent {
        /// The node.
        node: String,
    },
    /// The state of a node can't be written.
    #[error("the state of node {node:?} can't be stored")]
    State {
        /// The node.
        node: String,
        /// Why.
        #[source]
        source: StateError,
    },
    /// A value in a node is nested so deeply that it could be written, but not read again.
    #[error("node {node:?} can't be stored: something in it is nested too deeply")]
    TooDeep {
        /// The node.
        node: String,
        /// The error of reading the state again.
        #[source]
        source: serde_json::Error,
    },
    /// The thread's tree data does not have the form that this program writes.
    #[error("thread {thread} keeps a state that can't be read: {detail}")]
    Damaged {
        /// The thread.
        thread: ThreadId,
        /// A description of the damage.
        detail: String,
    },
}

impl StoredTreeError {
    /// Whether the thread does not exist.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(
            self,
            Self::Runtime(RuntimeError::Store(StoreError::NotFound))
        )
    }
}

impl From<StoreError> for StoredTreeError {
    fn from(error: StoreError) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<Rejected> for StoredTreeError {
    fn from(error: Rejected) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<serde_json::Error> for StoredTreeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Runtime(error.into())
    }
}
