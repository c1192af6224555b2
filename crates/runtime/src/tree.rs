//! Trees of conversations as threads and their forks (UAP §7).
//!
//! A [`ThreadTree`] is stored as one thread for each node. The root's thread has the key. Each
//! other node is a fork of its parent's thread, right after the last message that the two share; if
//! they share none, at the parent's end. So a branch stores only its additions. Each branch is an
//! ordinary thread: it can be reacted on, followed, exported and forked. Any thread with forks can
//! be read as a tree.
//!
//! ```
//! use agents::{AgentState, ThreadTree};
//! use loomline_runtime::{MemoryStore, Runtime, RuntimeOptions, TenantId};
//! # use loomline_runtime::AgentReactor;
//! # use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let options = agents::AgentOptions::new("echo", Arc::new(upp::Scripted::new()));
//! # let reactor = Arc::new(AgentReactor::new(agents::Agent::new(options)?));
//! let store = Arc::new(MemoryStore::new());
//! let runtime = Runtime::new(store, Arc::new(reactor), RuntimeOptions::default());
//! let tenant = TenantId::from("acme");
//!
//! let mut tree = ThreadTree::of(AgentState::initial().with_message("First"));
//! let other = tree.branch(tree.root().id().clone(), Some("alternative"))?;
//! tree.checkout(&other)?;
//! tree.set_state(tree.history().with_message("Another way"));
//! runtime.store_tree(&tenant, "chat", &tree).await?;
//! assert_eq!(runtime.load_tree(&tenant, "chat").await?, tree);
//!
//! // A branch without the tree in memory: nothing that was said is written again.
//! let third = runtime.branch(&tenant, "chat", tree.root().id(), Some("third")).await?;
//! runtime.checkout(&tenant, "chat", &third.node_id).await?;
//! let tree = runtime.load_tree(&tenant, "chat").await?;
//! assert_eq!((tree.n_nodes(), tree.current().name()), (3, Some("third")));
//! # Ok(())
//! # }
//! ```
//!
//! # Storage
//!
//! Users' messages are items. Messages of models with their tool results are steps of finished
//! executions, as if they had happened on the thread. One more item follows, which neither models
//! nor clients see. It stores what those can't express: the state besides messages, ids and times
//! of messages that differ from the log's, and the messages that the snapshot shows. A snapshot may
//! show only the node's own messages, a window, or a summary in place of others. The thread
//! continues with the whole conversation from the root, whatever the snapshot shows. The node's
//! name is the thread's title, and the node's id is in its metadata (`uap.node`). The id of the
//! checked out node is in an item of the root's thread. [Decision
//! 14](https://github.com/loomline/loomline/blob/main/docs/decisions/0014-a-tree-is-threads-and-forks.md)
//! gives the reasons.
//!
//! # Limits
//!
//! * One node is stored in one transaction; a tree is not. After a crash, or if a node is refused,
//!   some branches are missing. Storing the tree again adds them.
//! * Logs only grow. If a snapshot no longer shows a message, the thread's conversation still has
//!   it.
//! * If two clients store one node at once, the second one gets [`StoreError::Conflict`]. If they
//!   store it one after the other, the last snapshot counts. Nodes that only the store has stay.
//! * A fork begins between two turns. If a branch shares half a turn, its messages are written
//!   again.
//! * Calls without results stay without them. On a thread they can't be answered; a new message
//!   skips them.
//! * A tree that is read has nothing of a running execution.
//!
//! [`StoreError::Conflict`]: crate::StoreError::Conflict

mod branch_events;
mod branch_state;
mod error;
mod import;
mod ranges;
mod trees;
mod walk;
mod written;

pub use error::StoredTreeError;

use crate::error::RuntimeError;
use crate::request::NewThreadRequest;
use crate::runtime::Runtime;
use agents::{ThreadNode, ThreadTree};
use import::ImportTarget;
use std::sync::Arc;
use store::{StoreError, TenantId, ThreadRow};
use trees::Trees;
use walk::{Walked, about, mark, read, walk};

/// A node of a stored tree, and its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The node's id. If the thread was not made for a node, it is the thread's id.
    pub node_id: Arc<str>,
    /// The node it was forked from; none for the root.
    pub parent_id: Option<Arc<str>>,
    /// Its thread. Use its key to react on the branch.
    pub row: ThreadRow,
    /// Whether it is the current one.
    pub is_current: bool,
}

impl Branch {
    /// The branch's name: the thread's title.
    pub fn name(&self) -> Option<&str> {
        self.row.thread.title.as_deref()
    }
}

impl Runtime {
    /// Stores a tree under a key, or its additions to the stored one. Nodes that the store does not
    /// have become forks. Other nodes' threads get the additional messages of their snapshots. The
    /// cost is proportional to the tree; only additions are written.
    ///
    /// # Errors
    ///
    /// [`StoredTreeError::AnotherTree`] if the key is that of a thread that is not the tree's root.
    /// [`RuntimeError::Busy`] if a running thread would get additions. The [module](self) lists
    /// what is written in that case.
    pub async fn store_tree(
        &self,
        tenant: &TenantId,
        key: &str,
        tree: &ThreadTree,
    ) -> Result<(), StoredTreeError> {
        let mut forest = match Trees::load(self.store().as_ref(), tenant, key).await {
            Err(error) if error.is_not_found() => Trees::default(),
            loaded => loaded?,
        };
        let root = forest.branches.first().map(|root| &root.walked.branch.row);
        let root_key = root.and_then(|row| row.thread.key.clone());
        let ground = ImportTarget {
            runtime: self,
            tenant,
            key: root_key.as_deref().unwrap_or(key),
        };
        ground.store(&mut forest, tree).await
    }

    /// Reads the tree that a thread is in. A stored tree is returned with the messages that were
    /// posted on its threads since. Any other thread is returned with its forks as a tree. Each log
    /// is read once.
    ///
    /// If `key` is the root's, the current node is the last one that was
    /// [checked out](Self::checkout), else the root. If `key` is a branch's, the current node is
    /// that branch.
    pub async fn load_tree(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<ThreadTree, StoredTreeError> {
        let forest = Trees::load(self.store().as_ref(), tenant, key).await?;
        forest.tree()
    }

    /// The branches of the tree that a thread is in, without messages: the root first, parents
    /// before their forks.
    pub async fn branches(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Vec<Branch>, RuntimeError> {
        let walked = self.walked(tenant, key).await?;
        Ok(walked.into_iter().map(|it| it.branch).collect())
    }

    /// Makes a child of a node (UAP §7.1): a fork at the end of its thread. The fork's key consists
    /// of the root's key and the new node's id. The current node does not change. Fails while an
    /// execution runs on the node's thread.
    pub async fn branch(
        &self,
        tenant: &TenantId,
        key: &str,
        node: &str,
        name: Option<&str>,
    ) -> Result<Branch, StoredTreeError> {
        let walked = self.walked(tenant, key).await?;
        let place = walked.len();
        let root = walked
            .first()
            .and_then(|root| root.branch.row.thread.key.clone());
        let from = found(walked, key, node)?;
        let node_id = ThreadNode::random_id();
        let new = NewThreadRequest {
            key: Some(format!("{}/{node_id}", root.as_deref().unwrap_or(key))),
            title: name.map(str::to_owned),
            metadata: Some(about(&node_id, place)?),
            fork: None,
        };
        let row = self.fork_as(tenant, from.row, None, new).await?;
        Ok(Branch {
            node_id,
            parent_id: Some(from.node_id),
            row,
            is_current: false,
        })
    }

    /// Makes a node the current one (UAP §7.1), as a record in the log of the root's thread.
    pub async fn checkout(
        &self,
        tenant: &TenantId,
        key: &str,
        node: &str,
    ) -> Result<(), StoredTreeError> {
        let walked = self.walked(tenant, key).await?;
        let root = walked.first().map(|root| root.branch.row.thread.id.clone());
        let branch = found(walked, key, node)?;
        let root = root.ok_or(StoreError::NotFound)?;
        let item = branch_events::checkout(self.mint().into(), &branch.node_id)?;
        let live = self.live_by_id(&root).await?;
        let commands = vec![(None, timeline::Command::Record { item })];
        self.append_at(live, None, commands).await?;
        Ok(())
    }

    async fn walked(&self, tenant: &TenantId, key: &str) -> Result<Vec<Walked>, RuntimeError> {
        let store = self.store().as_ref();
        let (mut walked, asked) = walk(store, tenant, key).await?;
        let checked_out = match walked.first() {
            Some(root) => read(store, &root.branch.row).await?.current,
            None => None,
        };
        mark(&mut walked, &asked, checked_out.as_ref());
        Ok(walked)
    }
}

fn found(walked: Vec<Walked>, key: &str, node: &str) -> Result<Branch, StoredTreeError> {
    let mut branches = walked.into_iter().map(|it| it.branch);
    let unknown = || StoredTreeError::UnknownNode {
        key: key.to_owned(),
        node: node.to_owned(),
    };
    branches
        .find(|branch| *branch.node_id == *node)
        .ok_or_else(unknown)
}
