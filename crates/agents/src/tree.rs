//! A tree of conversations (UAP §7).

mod error;
mod json;
mod merge;
mod parts;

pub use error::TreeError;
pub use json::TreeLimits;

use crate::id;
use crate::state::{AgentState, is_same};
use std::collections::BTreeMap;
use std::sync::Arc;
use upp::Messages;

/// Maximum number of nodes of a tree, so that every written tree can be read.
const MAX_NODES: usize = 100_000;

/// One node of a tree (UAP §7.1).
#[derive(Clone, Debug)]
pub struct ThreadNode {
    id: Arc<str>,
    parent_id: Option<Arc<str>>,
    state: AgentState,
    name: Option<Arc<str>>,
    children: Vec<Arc<str>>,
    /// The id of the parent's snapshot, if this node's state starts with all its messages.
    extends: Option<Arc<str>>,
}

impl PartialEq for ThreadNode {
    /// Compares nodes without `extends`, which is derived from the parent.
    fn eq(&self, other: &Self) -> bool {
        let ids = (&self.id, &self.parent_id, &self.children);
        ids == (&other.id, &other.parent_id, &other.children)
            && (&self.name, &self.state) == (&other.name, &other.state)
    }
}

impl ThreadNode {
    /// A new id for a node, a random UUID (v4; UAP §3.4).
    pub fn random_id() -> Arc<str> {
        id::random()
    }

    /// The node's id, a random UUID (v4; UAP §3.4). Clones are cheap.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The node it branched from; none for the root.
    pub fn parent_id(&self) -> Option<&str> {
        self.parent_id.as_deref()
    }

    /// The snapshot at this node.
    pub fn state(&self) -> &AgentState {
        &self.state
    }

    /// The branch's name, if it has one. Names may repeat.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The nodes that branched from it, in the order of their creation.
    pub fn children(&self) -> impl ExactSizeIterator<Item = &str> {
        self.children.iter().map(AsRef::as_ref)
    }
}

/// A tree of conversations with one current node (UAP §7.1).
///
/// A node has a snapshot: either the whole conversation up to the node (the pattern of UAP §7.2),
/// or only the node's additions. In both cases [`history`](Self::history) returns every message of
/// the path once. Snapshots share their messages in memory. In the JSON of UAP §12.2 each node has
/// all messages of its snapshot, so a tree of whole conversations is as long as their sum.
/// [`to_compact_json`](Self::to_compact_json) writes each message once.
///
/// ```
/// # use loomline_agents::{AgentState, ThreadTree};
/// let mut tree = ThreadTree::new();
/// tree.set_state(tree.history().with_message("First"));
/// let other = tree.branch(tree.current().id().clone(), Some("alternative"))?;
/// tree.checkout(&other)?;
/// tree.set_state(tree.history().with_message("Alternative path"));
/// assert_eq!(tree.history().messages().len(), 2);
/// # Ok::<(), loomline_agents::TreeError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadTree {
    root: ThreadNode,
    /// All other nodes, in the order of their creation.
    rest: Vec<ThreadNode>,
    /// The indexes of the nodes in `rest`.
    places: BTreeMap<Arc<str>, usize>,
    current: Arc<str>,
}

impl Default for ThreadTree {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadTree {
    /// A tree of one node with the empty state.
    pub fn new() -> Self {
        Self::of(AgentState::initial())
    }

    /// A tree of one node with this state.
    pub fn of(state: AgentState) -> Self {
        let root = ThreadNode {
            id: id::random(),
            parent_id: None,
            state,
            name: None,
            children: Vec::new(),
            extends: None,
        };
        Self {
            current: Arc::clone(&root.id),
            root,
            rest: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// The first node.
    pub fn root(&self) -> &ThreadNode {
        &self.root
    }

    /// The node where the conversation continues.
    pub fn current(&self) -> &ThreadNode {
        self.node(&self.current).unwrap_or(&self.root)
    }

    /// All nodes: the root, then the others in the order of their creation.
    pub fn nodes(&self) -> impl Iterator<Item = &ThreadNode> {
        std::iter::once(&self.root).chain(&self.rest)
    }

    /// Number of nodes, at least one.
    pub fn n_nodes(&self) -> usize {
        self.rest.len().saturating_add(1)
    }

    /// The node with this id.
    pub fn node(&self, id: &str) -> Option<&ThreadNode> {
        if *id == *self.root.id {
            return Some(&self.root);
        }
        self.places.get(id).and_then(|place| self.rest.get(*place))
    }

    /// The nodes without children, in the order of [`nodes`](Self::nodes).
    pub fn leaves(&self) -> impl Iterator<Item = &ThreadNode> {
        self.nodes().filter(|node| node.children.is_empty())
    }

    /// The named nodes with their names, in the order of [`nodes`](Self::nodes).
    pub fn branches(&self) -> impl Iterator<Item = (&str, &ThreadNode)> {
        self.nodes()
            .filter_map(|node| node.name().map(|name| (name, node)))
    }

    /// Makes a child of a node and returns its id; the child starts with the node's state (UAP
    /// §7.1). The current node does not change. Fails if the node is unknown or the tree is full.
    pub fn branch(
        &mut self,
        from: impl AsRef<str>,
        name: Option<&str>,
    ) -> Result<Arc<str>, TreeError> {
        if self.n_nodes() >= MAX_NODES {
            return Err(TreeError::TooManyNodes { limit: MAX_NODES });
        }
        let id = id::random();
        let parent = self.node_mut(from.as_ref())?;
        parent.children.push(Arc::clone(&id));
        let child = ThreadNode {
            id: Arc::clone(&id),
            parent_id: Some(Arc::clone(&parent.id)),
            state: parent.state.clone(),
            name: name.map(Arc::from),
            children: Vec::new(),
            extends: Some(parent.state.shared_id()),
        };
        self.insert(child);
        Ok(id)
    }

    /// Makes a node the current one (UAP §7.1).
    pub fn checkout(&mut self, id: impl AsRef<str>) -> Result<(), TreeError> {
        self.current = Arc::clone(&self.node_mut(id.as_ref())?.id);
        Ok(())
    }

    /// Replaces the current node's state (`tree.current.state = …`, UAP §7.2). It compares the
    /// state with those of the parent and the children, message by message. Messages that share
    /// memory are compared by address.
    pub fn set_state(&mut self, state: AgentState) {
        let node = self.current();
        let parent = node.parent_id().and_then(|id| self.node(id));
        let extends = parent.and_then(|parent| extended(&state, &parent.state));
        let children = node.children().filter_map(|id| self.node(id));
        let children: Vec<_> = children
            .map(|child| (Arc::clone(&child.id), extended(&child.state, &state)))
            .collect();
        for (child, extends) in children {
            if let Ok(child) = self.node_mut(&child) {
                child.extends = extends;
            }
        }
        let current = Arc::clone(&self.current);
        let node = match self.node_mut(&current) {
            Ok(node) => node,
            Err(_) => &mut self.root,
        };
        node.state = state;
        node.extends = extends;
    }

    /// The state at the current node, with all messages from the root to it in order (UAP §7.3).
    ///
    /// If each snapshot of the path has the whole conversation, this is the current snapshot
    /// itself. That costs one comparison for each node. Otherwise it is that snapshot under a new
    /// id, with the messages of the path merged. Messages are identified by their ids, so none is
    /// doubled or lost. If several snapshots have a message, its latest form counts. If a later
    /// snapshot put a message before an earlier one, such as a summary, it is placed there.
    pub fn history(&self) -> AgentState {
        let path = self.path();
        // Of snapshots that each hold the one before, the last has them all.
        let mut runs = path.chunk_by(|parent, child| is_extension(parent, child));
        let first = runs.next().and_then(<[_]>::last);
        let mut later = runs.filter_map(<[_]>::last).peekable();
        let (Some(first), Some(_)) = (first, later.peek()) else {
            return self.current().state.clone();
        };
        let mut merged = merge::Merged::new(first.state.messages());
        for node in later {
            merged.add(node.state.messages());
        }
        self.current().state.with_context(merged.into_messages())
    }

    /// The nodes from the root to the current one.
    pub fn path(&self) -> Vec<&ThreadNode> {
        let mut path = vec![self.current()];
        while let Some(parent) = path.last().and_then(|node| node.parent_id())
            && let Some(parent) = self.node(parent)
        {
            path.push(parent);
        }
        path.reverse();
        path
    }

    fn node_mut(&mut self, id: &str) -> Result<&mut ThreadNode, TreeError> {
        if *id == *self.root.id {
            return Ok(&mut self.root);
        }
        let place = self.places.get(id);
        place
            .and_then(|place| self.rest.get_mut(*place))
            .ok_or_else(|| TreeError::UnknownNode { id: id.to_owned() })
    }

    fn insert(&mut self, node: ThreadNode) {
        self.places.insert(Arc::clone(&node.id), self.rest.len());
        self.rest.push(node);
    }
}

/// Whether the child's snapshot starts with all messages of its parent's.
fn is_extension(parent: &ThreadNode, child: &ThreadNode) -> bool {
    child.extends.as_deref() == Some(parent.state.id())
}

/// The id of `earlier`, if `state` starts with all its messages.
fn extended(state: &AgentState, earlier: &AgentState) -> Option<Arc<str>> {
    begins_with(state.messages(), earlier.messages()).then(|| earlier.shared_id())
}

fn begins_with(messages: &Messages, start: &Messages) -> bool {
    let mut pairs = messages.iter().zip(start);
    messages.len() >= start.len() && pairs.all(|(a, b)| is_same(a, b))
}

#[cfg(test)]
mod tests;
