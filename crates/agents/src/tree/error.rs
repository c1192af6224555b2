//! Why something can't be done with a tree, or why a text is none.

use crate::state::StateError;

/// Why something can't be done with a tree, or why a text is none (UAP §7, §12.2).
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// No node has this id.
    #[error("the tree has no node {id:?}")]
    UnknownNode {
        /// The id.
        id: String,
    },
    /// The tree would have, or has, more nodes than it may.
    #[error("the tree has more than {limit} nodes")]
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
    /// The text is longer than it may be.
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
    /// A node lists a child that is not there.
    #[error("node {node:?} lists the child {child:?}, which does not exist")]
    MissingChild {
        /// The node.
        node: String,
        /// The child.
        child: String,
    },
    /// A node lists a child twice, or one that names another parent.
    #[error("node {node:?} lists the child {child:?}, whose parent is {parent:?}")]
    ForeignChild {
        /// The node.
        node: String,
        /// The child.
        child: String,
        /// The parent the child names.
        parent: Option<String>,
    },
    /// No way leads from the root to a node: its parent does not list it, or it is in a cycle.
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
        /// How many it says they are.
        n: usize,
        /// How many there are.
        n_parent: usize,
    },
}
