//! A tree in the form of its threads, for reading and extending.

use super::StoredTreeError;
use super::branch_events::Reader;
use super::branch_state::{BranchState, Course};
use super::walk::{Walked, in_order, mark, read, walk};
use agents::{ThreadNode, ThreadTree};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Store, TenantId};

/// A branch with the events of its log and its states.
pub(super) struct BranchFold {
    pub(super) walked: Walked,
    pub(super) reader: Reader,
    pub(super) course: Course,
}

/// A tree in the form of its threads; parents come before their forks.
#[derive(Default)]
pub(super) struct Trees {
    pub(super) branches: Vec<BranchFold>,
    pub(super) indices: BTreeMap<Arc<str>, usize>,
}

impl Trees {
    /// Reads the whole tree.
    pub(super) async fn load(
        store: &dyn Store,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Self, StoredTreeError> {
        let (mut walked, asked) = walk(store, tenant, key).await?;
        let mut readers = Vec::with_capacity(walked.len());
        for it in &walked {
            readers.push(read(store, &it.branch.row).await?);
        }
        let checked_out = readers.first().and_then(|root| root.current.clone());
        mark(&mut walked, &asked, checked_out.as_ref());
        let mut forest = Self::default();
        for (walked, reader) in walked.into_iter().zip(readers) {
            let mut course = Course::new(forest.base(&walked));
            let damaged = |detail| StoredTreeError::Damaged {
                thread: walked.branch.row.thread.id.clone(),
                detail,
            };
            course.follow(&reader.events).map_err(damaged)?;
            forest.push(BranchFold {
                walked,
                reader,
                course,
            });
        }
        Ok(forest)
    }

    /// Adds a branch whose parent is already present. Drops the branch's events, as its course
    /// includes them.
    pub(super) fn push(&mut self, mut grown: BranchFold) {
        grown.reader.events = Vec::new();
        let node = Arc::clone(&grown.walked.branch.node_id);
        self.indices.insert(node, self.branches.len());
        self.branches.push(grown);
    }

    /// The initial state of a branch: its parent's state at the fork.
    fn base(&self, walked: &Walked) -> BranchState {
        let parent = walked.parent.and_then(|place| self.branches.get(place));
        let fork = walked.branch.row.thread.fork.as_ref();
        let at = parent
            .zip(fork)
            .map(|(parent, fork)| parent.course.at(fork.seq));
        at.cloned().unwrap_or_else(BranchState::initial)
    }

    /// The tree.
    pub(super) fn tree(&self) -> Result<ThreadTree, StoredTreeError> {
        let order = in_order(self.branches.iter().map(|it| &it.walked));
        let node = |place: usize| {
            let it = self.branches.get(place)?;
            let branch = &it.walked.branch;
            let forks = it.walked.forks.iter();
            let children = forks.filter_map(|place| self.branches.get(*place));
            Some(ThreadNode::restored(
                Arc::clone(&branch.node_id),
                branch.parent_id.clone(),
                branch.name().map(Arc::from),
                it.course.last().state.clone(),
                children
                    .map(|child| Arc::clone(&child.walked.branch.node_id))
                    .collect(),
            ))
        };
        let nodes = order.into_iter().filter_map(node);
        let mut current = self.branches.iter().map(|it| &it.walked.branch);
        let current = current.find(|branch| branch.is_current);
        let current = current.map(|branch| Arc::clone(&branch.node_id));
        Ok(ThreadTree::from_nodes(nodes, &current.unwrap_or_default())?)
    }
}
