//! The nodes that share a store in memory.

use crate::{Lease, NodeId, StoreError};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The nodes that have joined and not left, by name.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    living: BTreeMap<String, NodeId>,
    n_joined: u64,
}

impl Nodes {
    pub(super) fn join(&mut self, name: &str) -> NodeId {
        self.n_joined += 1;
        let node = NodeId(self.n_joined);
        self.living.insert(name.to_owned(), node);
        node
    }

    pub(super) fn renew(&self, node: NodeId) -> Result<Lease, StoreError> {
        if !self.lives(node) {
            return Err(StoreError::DeadNode);
        }
        Ok(Lease {
            left: Duration::MAX,
            n_nodes: self.living.len(),
            now: Timestamp::now(),
        })
    }

    pub(super) fn leave(&mut self, node: NodeId) {
        self.living.retain(|_, it| *it != node);
    }

    pub(super) fn lives(&self, node: NodeId) -> bool {
        self.living.values().any(|it| *it == node)
    }
}
