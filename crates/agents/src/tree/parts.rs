//! Builds a tree from stored nodes.

use super::{MAX_NODES, ThreadNode, ThreadTree, TreeError, extended};
use crate::state::AgentState;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The ids that connect a node to others.
pub(super) struct Link<'a> {
    pub(super) id: &'a Arc<str>,
    pub(super) parent: Option<&'a Arc<str>>,
    pub(super) children: &'a [Arc<str>],
}

impl ThreadNode {
    /// A stored node, for [`ThreadTree::from_nodes`]: its id, its parent's id (none for the root),
    /// its name, its snapshot, and the ids of its children in the order of their creation.
    pub fn restored(
        id: Arc<str>,
        parent_id: Option<Arc<str>>,
        name: Option<Arc<str>>,
        state: AgentState,
        children: Vec<Arc<str>>,
    ) -> Self {
        Self {
            id,
            parent_id,
            state,
            name,
            children,
            extends: None,
        }
    }
}

impl ThreadTree {
    /// Builds a tree of these nodes: the root first, then the others in the order of their
    /// creation. It fails unless the current node exists, ids are unique, parents and children
    /// agree, and the root reaches every node. The JSON of a tree has the same conditions.
    pub fn from_nodes(
        nodes: impl IntoIterator<Item = ThreadNode>,
        current: &str,
    ) -> Result<Self, TreeError> {
        let nodes: Vec<ThreadNode> = nodes.into_iter().collect();
        if nodes.len() > MAX_NODES {
            return Err(TreeError::TooManyNodes { limit: MAX_NODES });
        }
        let links = nodes.iter().map(|node| Link {
            id: &node.id,
            parent: node.parent_id.as_ref(),
            children: &node.children,
        });
        let links: Vec<_> = links.collect();
        let root_id = links.first().map(|root| Arc::clone(root.id));
        let root_id = root_id.unwrap_or_default();
        let current: Arc<str> = current.into();
        check(&links, &root_id, &current)?;
        reachable(&links, &root_id)?;
        let mut nodes = nodes.into_iter();
        let Some(root) = nodes.next() else {
            return Err(TreeError::MissingRoot { id: String::new() });
        };
        let mut tree = Self {
            root,
            rest: Vec::with_capacity(nodes.len()),
            places: BTreeMap::new(),
            current,
        };
        for node in nodes {
            tree.insert(node);
        }
        tree.find_extended();
        Ok(tree)
    }

    /// Marks the snapshots that start with all messages of their parents'.
    fn find_extended(&mut self) {
        let extends: Vec<_> = self
            .rest
            .iter()
            .map(|node| {
                let parent = self.node(node.parent_id()?)?;
                extended(&node.state, &parent.state)
            })
            .collect();
        for (node, extends) in self.rest.iter_mut().zip(extends) {
            node.extends = extends;
        }
    }
}

/// Checks that the nodes are connected as one tree. Separate cycles are not detected.
pub(super) fn check(
    links: &[Link<'_>],
    root_id: &Arc<str>,
    current_id: &Arc<str>,
) -> Result<(), TreeError> {
    let mut nodes: BTreeMap<&str, &Link<'_>> = BTreeMap::new();
    for link in links {
        if link.id.is_empty() {
            return Err(TreeError::EmptyId);
        }
        if nodes.insert(link.id, link).is_some() {
            return Err(TreeError::DuplicateNode {
                id: link.id.to_string(),
            });
        }
    }
    let root = nodes
        .get(&**root_id)
        .ok_or_else(|| TreeError::MissingRoot {
            id: root_id.to_string(),
        })?;
    if !nodes.contains_key(&**current_id) {
        return Err(TreeError::MissingCurrent {
            id: current_id.to_string(),
        });
    }
    if let Some(parent) = root.parent {
        return Err(TreeError::RootWithParent {
            parent: parent.to_string(),
        });
    }
    let mut reached = BTreeSet::from([&**root.id]);
    for link in links {
        for child in link.children {
            let child = nodes.get(&**child).ok_or_else(|| TreeError::MissingChild {
                node: link.id.to_string(),
                child: child.to_string(),
            })?;
            if child.parent != Some(link.id) || !reached.insert(child.id) {
                return Err(TreeError::ForeignChild {
                    node: link.id.to_string(),
                    child: child.id.to_string(),
                    parent: child.parent.map(ToString::to_string),
                });
            }
        }
    }
    let unreached = links.iter().find(|link| !reached.contains(&**link.id));
    unreached.map_or(Ok(()), |link| Err(unreachable(link.id)))
}

fn unreachable(node: &Arc<str>) -> TreeError {
    TreeError::Unreachable {
        node: node.to_string(),
    }
}

/// Checks that the root reaches every node.
fn reachable(links: &[Link<'_>], root_id: &Arc<str>) -> Result<(), TreeError> {
    let mut left: BTreeMap<&str, &Link<'_>> = links.iter().map(|link| (&**link.id, link)).collect();
    let mut next: Vec<&str> = vec![root_id];
    while let Some(link) = next.pop().and_then(|id| left.remove(id)) {
        next.extend(link.children.iter().map(AsRef::as_ref));
    }
    match left.pop_first() {
        Some((_, link)) => Err(unreachable(link.id)),
        None => Ok(()),
    }
}
