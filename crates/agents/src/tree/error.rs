//! Errors of trees.

use crate::state::StateError;

/// Why an operation on a tree failed, or why a text is no tree (UAP §7, §12.2).
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// No node has this id.
    #[error("the tree has no node {id:?}")]
    UnknownNode {
        /// The id.
        id: String,
    },
    /// The number of nodes exceeds the limit.
    #[error("the tree has more than {limit} nodes")]
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
    /// The text is longer than the limit.
    #[error("the tree's JSON has {length} bytes, more than {limit}")]
    TooLong {
        /// Its length, in bytes.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// It is not the JSON of a tree.
    #[error("the tree is not a ThreadTreeJSON")]
    Malformed(#[source] serde_json::Error),
    /// The state of a node can't be read.
    #[error("the state of node {node:?} can't be read")]
    State {
        /// The node.
        node: String,
        /// Why.
        #[source]
        source: StateError,
    },
    /// The state of a node can't be written.
    #[error("the tree can't be written")]
    Unwritable(#[source] serde_json::Error),
    /// Two nodes have one id.
    #[error("two nodes have the id {id:?}")]
    DuplicateNode {
        /// The id.
        id: String,
    },
    /// A node has the empty id.
    #[error("a node has an empty id")]
    EmptyId,
    /// `rootId` names no node.
    #[error("rootId {id:?} names no node")]
    MissingRoot {
        /// The id.
        id: String,
    },
    /// `currentId` names no node.
    #[error("currentId {id:?} names no node")]
    MissingCurrent {
        /// The id.
        id: String,
    },
    /// The root has a parent.
    #[error("the root has the parent {parent:?}")]
    RootWithParent {
        /// The parent.
        parent: String,
    },
    /// A node lists a child that does not exist.
    #[error("node {node:?} lists the child {child:?}, which does not exist")]
    MissingChild {
        /// The node.
        node: String,
        /// The child.
        child: String,
    },
    /// A node lists a child twice, or a child with another parent.
    #[error("node {node:?} lists the child {child:?}, whose parent is {parent:?}")]
    ForeignChild {
        /// The node.
        node: String,
        /// The child.
        child: String,
        /// The parent the child names.
        parent: Option<String>,
    },
    /// A node can't be reached from the root: its parent does not list it, or it is in a cycle.
    #[error("node {node:?} can't be reached from the root")]
    Unreachable {
        /// The node.
        node: String,
    },
    /// `inheritedMessages` is not the number of the parent's messages.
    #[error("node {node:?} inherits {n} messages of a parent that has {n_parent}")]
    Inherited {
        /// The node.
        node: String,
        /// The declared number.
        n: usize,
        /// The actual number.
        n_parent: usize,
    },
}
