//! Walks from a thread to its whole tree: up to the root, and down to every fork.

use super::Branch;
use super::branch_events::Reader;
use crate::pages::PAGE;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{Filter, Store, StoreError, TenantId, ThreadRow};
use timeline::{Payload, Thread, ThreadId};

/// A node's data in its thread's metadata, under `uap`.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct About {
    uap: Node,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Node {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Arc<str>>,
    /// Its number among all nodes, in the order of their creation.
    #[serde(rename = "place", skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
}

/// The metadata of a node's thread.
pub(super) fn about(node: &Arc<str>, place: usize) -> Result<Payload, serde_json::Error> {
    let node = Node {
        node: Some(Arc::clone(node)),
        position: Some(place as u64),
    };
    Payload::write(&About { uap: node })
}

fn node_of(thread: &Thread) -> Node {
    let about = thread.metadata.as_ref();
    let about = about.and_then(|metadata| metadata.read::<About>().ok());
    about.unwrap_or_default().uap
}

/// The id of a thread's node: the stored one, else the thread's own.
pub(super) fn node_id(thread: &Thread) -> Arc<str> {
    let id = node_of(thread).node;
    id.unwrap_or_else(|| thread.id.as_str().into())
}

/// A branch among the others of its tree.
pub(super) struct Walked {
    pub(super) branch: Branch,
    /// The index of the parent in the walk.
    pub(super) parent: Option<usize>,
    /// The indexes of the forks, in the order of their creation.
    pub(super) forks: Vec<usize>,
    pub(super) index: u64,
}

/// All branches of the tree that a thread is in, parents before their forks, the root first; and the
/// thread's id.
pub(super) async fn walk(
    store: &dyn Store,
    tenant: &TenantId,
    key: &str,
) -> Result<(Vec<Walked>, ThreadId), StoreError> {
    let mut root = store.find(tenant, key).await?;
    let asked = root.thread.id.clone();
    while let Some(fork) = &root.thread.fork {
        root = store.row(&fork.thread_id).await?;
    }
    let mut walked = vec![step(root, None)];
    let mut next = 0;
    while let Some(id) = walked.get(next).map(|it| it.branch.row.thread.id.clone()) {
        for row in store.forks(&id).await? {
            let place = walked.len();
            let parent = walked.get_mut(next).map(|parent| {
                parent.forks.push(place);
                Arc::clone(&parent.branch.node_id)
            });
            let mut fork = step(row, parent);
            fork.parent = Some(next);
            walked.push(fork);
        }
        next += 1;
    }
    Ok((walked, asked))
}

/// Marks the current branch: the requested thread's. If the root was requested, it is the branch
/// that was checked out last.
pub(super) fn mark(walked: &mut [Walked], asked: &ThreadId, checked_out: Option<&Arc<str>>) {
    let is_root = walked
        .first()
        .is_some_and(|root| root.branch.row.thread.id == *asked);
    let is_current = |branch: &Branch| match checked_out.filter(|_| is_root) {
        Some(node) => branch.node_id == *node,
        None => branch.row.thread.id == *asked,
    };
    let found = walked.iter().position(|it| is_current(&it.branch));
    if let Some(current) = walked.get_mut(found.unwrap_or(0)) {
        current.branch.is_current = true;
    }
}

fn step(row: ThreadRow, parent_id: Option<Arc<str>>) -> Walked {
    let node = node_of(&row.thread);
    Walked {
        branch: Branch {
            node_id: node_id(&row.thread),
            parent_id,
            row,
            is_current: false,
        },
        parent: None,
        forks: Vec::new(),
        index: node.position.unwrap_or(u64::MAX),
    }
}

/// Reads a thread's own log.
pub(super) async fn read(store: &dyn Store, row: &ThreadRow) -> Result<Reader, StoreError> {
    let mut reader = Reader::default();
    loop {
        let page = store
            .read(&row.thread.id, reader.tail, PAGE, Filter::Facts)
            .await?;
        if page.is_empty() {
            return Ok(reader);
        }
        for logged in &page {
            reader.read(&logged.record).map_err(|error| {
                let (thread, seq) = (&row.thread.id, logged.record.seq);
                StoreError::Damaged(format!("event {seq} of thread {thread}: {error}"))
            })?;
        }
    }
}

/// The positions of the walk in the order in which the nodes were made. The root comes first, then
/// stored nodes by their numbers, then other forks by their threads' ids.
pub(super) fn in_order<'a>(walked: impl Iterator<Item = &'a Walked>) -> Vec<usize> {
    let key = |it: &'a Walked| (it.parent.is_some(), it.index, &it.branch.row.thread.id);
    let mut order: Vec<_> = walked.map(key).zip(0..).collect();
    order.sort();
    order.into_iter().map(|(_, place)| place).collect()
}
