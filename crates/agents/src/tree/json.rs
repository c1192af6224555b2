//! The JSON form of a tree (UAP §12.2).

use super::parts::{Link, check};
use super::{MAX_NODES, ThreadNode, ThreadTree, TreeError, extended, is_extension};
use crate::depth::MAX_DEPTH;
use crate::state::{AgentState, StateLimits, StateTail};
use crate::writer::{self, Json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The size limits of a tree to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// Maximum number of nodes. Default: 100,000.
    pub max_nodes: usize,
    /// Maximum size of the JSON, in bytes. Default: 256 MiB.
    pub max_bytes: usize,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self {
            max_nodes: MAX_NODES,
            max_bytes: 256 << 20,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TreeOut<'a> {
    root_id: &'a str,
    current_id: &'a str,
    nodes: Vec<NodeOut<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeOut<'a> {
    id: &'a str,
    parent_id: Option<&'a str>,
    state: StateTail<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    children: &'a [Arc<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    inherited_messages: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TreeIn<'a> {
    root_id: Arc<str>,
    current_id: Arc<str>,
    #[serde(borrow)]
    nodes: Vec<NodeIn<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeIn<'a> {
    id: Arc<str>,
    #[serde(default)]
    parent_id: Option<Arc<str>>,
    #[serde(borrow)]
    state: &'a RawValue,
    #[serde(default)]
    name: Option<Arc<str>>,
    children: Vec<Arc<str>>,
    #[serde(default)]
    inherited_messages: Option<usize>,
}

impl ThreadTree {
    /// Writes the tree as a `ThreadTreeJSON` text (UAP §12.2). Each node has its whole state.
    pub fn to_json(&self) -> Result<String, TreeError> {
        self.write(|_| None)
    }

    /// Writes the tree with each message once. A node whose state starts with all messages of its
    /// parent's omits these, and has their number in `inheritedMessages`, a field of this crate.
    /// [`from_json`](Self::from_json) reads both forms; other implementations read only
    /// [`to_json`](Self::to_json).
    pub fn to_compact_json(&self) -> Result<String, TreeError> {
        self.write(|node| {
            let parent = self.node(node.parent_id()?)?;
            is_extension(parent, node).then(|| parent.state.messages().len())
        })
    }

    fn write(
        &self,
        n_inherited: impl Fn(&ThreadNode) -> Option<usize>,
    ) -> Result<String, TreeError> {
        let nodes = self.nodes().map(|node| {
            let inherited_messages = n_inherited(node);
            NodeOut {
                id: &node.id,
                parent_id: node.parent_id(),
                state: StateTail::new(&node.state, inherited_messages.unwrap_or(0)),
                name: node.name(),
                children: &node.children,
                inherited_messages,
            }
        });
        let tree = TreeOut {
            root_id: &self.root.id,
            current_id: &self.current,
            nodes: nodes.collect(),
        };
        let Json { text: json, depth } = writer::write(&tree, 0).map_err(TreeError::Unwritable)?;
        // What could not be read again is not written.
        if depth > MAX_DEPTH {
            let limits = TreeLimits {
                max_nodes: usize::MAX,
                max_bytes: usize::MAX,
            };
            Self::from_json_within(&json, limits)?;
        }
        Ok(json)
    }

    /// Reads a tree within the default [`TreeLimits`].
    pub fn from_json(json: &str) -> Result<Self, TreeError> {
        Self::from_json_within(json, TreeLimits::default())
    }

    /// Restores exactly the tree that was written: ids, states and the order of children. It fails
    /// unless root and current exist, parents and children agree, and the root reaches every node
    /// (UAP §15.3).
    pub fn from_json_within(json: &str, limits: TreeLimits) -> Result<Self, TreeError> {
        if json.len() > limits.max_bytes {
            return Err(TreeError::TooLong {
                length: json.len(),
                limit: limits.max_bytes,
            });
        }
        let read: TreeIn<'_> = serde_json::from_str(json).map_err(TreeError::Malformed)?;
        if read.nodes.len() > limits.max_nodes {
            return Err(TreeError::TooManyNodes {
                limit: limits.max_nodes,
            });
        }
        let links = read.nodes.iter().map(|node| Link {
            id: &node.id,
            parent: node.parent_id.as_ref(),
            children: &node.children,
        });
        check(&links.collect::<Vec<_>>(), &read.root_id, &read.current_id)?;
        build(read)
    }
}

/// Builds the nodes, parents first, because a child may inherit messages of its parent.
fn build(read: TreeIn<'_>) -> Result<ThreadTree, TreeError> {
    let order: Vec<Arc<str>> = read.nodes.iter().map(|node| Arc::clone(&node.id)).collect();
    let mut unread: BTreeMap<Arc<str>, NodeIn<'_>> = read
        .nodes
        .into_iter()
        .map(|node| (Arc::clone(&node.id), node))
        .collect();
    let mut made: BTreeMap<Arc<str>, ThreadNode> = BTreeMap::new();
    let mut next = vec![Arc::clone(&read.root_id)];
    while let Some(id) = next.pop() {
        let Some(node) = unread.remove(&id) else {
            continue;
        };
        next.extend(node.children.iter().cloned());
        let parent = node.parent_id.as_ref().and_then(|parent| made.get(parent));
        let node = make(node, parent)?;
        made.insert(id, node);
    }
    if let Some((node, _)) = unread.pop_first() {
        return Err(TreeError::Unreachable {
            node: node.to_string(),
        });
    }
    let Some(root) = made.remove(&read.root_id) else {
        return Err(TreeError::MissingRoot {
            id: read.root_id.to_string(),
        });
    };
    let mut tree = ThreadTree {
        root,
        rest: Vec::with_capacity(made.len()),
        places: BTreeMap::new(),
        current: read.current_id,
    };
    for node in order.iter().filter_map(|id| made.remove(id)) {
        tree.insert(node);
    }
    Ok(tree)
}

fn make(node: NodeIn<'_>, parent: Option<&ThreadNode>) -> Result<ThreadNode, TreeError> {
    // The limit is the whole tree's.
    let limits = StateLimits {
        max_bytes: usize::MAX,
    };
    let state = AgentState::from_json_within(node.state.get(), limits);
    let mut state = state.map_err(|source| TreeError::State {
        node: node.id.to_string(),
        source,
    })?;
    let extends = match (node.inherited_messages, parent) {
        (None, parent) => parent.and_then(|parent| extended(&state, &parent.state)),
        (Some(n), Some(parent)) if n == parent.state.messages().len() => {
            state = state.with_inherited(parent.state.messages().clone());
            Some(parent.state.shared_id())
        }
        (Some(n), parent) => {
            return Err(TreeError::Inherited {
                node: node.id.to_string(),
                n,
                n_parent: parent.map_or(0, |parent| parent.state.messages().len()),
            });
        }
    };
    Ok(ThreadNode {
        extends,
        id: node.id,
        parent_id: node.parent_id,
        state,
        name: node.name,
        children: node.children,
    })
}
