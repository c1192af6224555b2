//! Finds the parent of a thread.
//!
//! A parent's log names the threads it started, but an imported log may name any thread. The
//! child's own record of its parent is written once, when the runtime creates the child. So a
//! thread counts as a child only if it names its parent itself.

use crate::runtime::Runtime;
use serde_json::Value;
use store::{StoreError, TenantId, ThreadRow};
use timeline::{Payload, ThreadId};

/// Maximum depth of sub-agents' threads that are searched.
pub(super) const MAX_DEPTH: usize = 64;

impl Runtime {
    /// The thread, if it is the tenant's own and was made for a sub-agent of this parent.
    pub(super) async fn child_row(
        &self,
        tenant: &TenantId,
        parent: &ThreadId,
        child: &ThreadId,
    ) -> Result<Option<ThreadRow>, StoreError> {
        let row = self.spawned_row(tenant, child).await?;
        Ok(row.filter(|(_, from)| from == parent).map(|(row, _)| row))
    }

    /// The row of a child for readers. The children of a fork's ancestors are its children, too.
    pub(super) async fn seen_child_row(
        &self,
        tenant: &TenantId,
        parent: &ThreadId,
        child: &ThreadId,
    ) -> Result<Option<ThreadRow>, StoreError> {
        let Some((row, from)) = self.spawned_row(tenant, child).await? else {
            return Ok(None);
        };
        let mut above = parent.clone();
        while above != from {
            let fork = match self.inner.store.row(&above).await {
                Ok(row) => row.thread.fork,
                Err(StoreError::NotFound) => None,
                Err(error) => return Err(error),
            };
            let Some(fork) = fork else {
                return Ok(None);
            };
            above = fork.thread_id;
        }
        Ok(Some(row))
    }

    /// The child of `above` that is the thread `key` or has it below.
    pub(super) async fn towards(
        &self,
        tenant: &TenantId,
        above: &ThreadId,
        key: &str,
    ) -> Result<Option<ThreadId>, StoreError> {
        let mut row = match self.inner.store.find(tenant, key).await {
            Err(StoreError::NotFound) => return Ok(None),
            row => row?,
        };
        for _ in 0..MAX_DEPTH {
            let Some(parent) = spawned_from(row.thread.metadata.as_ref()) else {
                return Ok(None);
            };
            if parent == *above {
                return Ok(Some(row.thread.id));
            }
            row = match self.inner.store.row(&parent).await {
                Err(StoreError::NotFound) => return Ok(None),
                row => row?,
            };
            if row.tenant != *tenant {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// A thread of the tenant that was made for a sub-agent, and its parent's id.
    async fn spawned_row(
        &self,
        tenant: &TenantId,
        child: &ThreadId,
    ) -> Result<Option<(ThreadRow, ThreadId)>, StoreError> {
        let row = match self.inner.store.row(child).await {
            Ok(row) => row,
            Err(StoreError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        if row.tenant != *tenant {
            return Ok(None);
        }
        let from = spawned_from_call(row.thread.metadata.as_ref());
        Ok(from.map(|(from, _)| (row, from)))
    }

    /// Whether a thread is that of a sub-agent whose parent still exists, so that it is deleted with the parent.
    pub async fn has_parent(&self, row: &ThreadRow) -> Result<bool, StoreError> {
        let Some(parent) = spawned_from(row.thread.metadata.as_ref()) else {
            return Ok(false);
        };
        match self.inner.store.row(&parent).await {
            Ok(parent) => Ok(parent.tenant == row.tenant),
            Err(StoreError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether a thread is that of a sub-agent.
pub fn is_subagent(row: &ThreadRow) -> bool {
    spawned_from(row.thread.metadata.as_ref()).is_some()
}

/// The parent of a sub-agent's thread, from its metadata (0.0.3 `relationships`).
pub(super) fn spawned_from(metadata: Option<&Payload>) -> Option<ThreadId> {
    Some(spawned_from_call(metadata)?.0)
}

/// The parent thread and the call that a sub-agent's thread was made for.
pub(super) fn spawned_from_call(metadata: Option<&Payload>) -> Option<(ThreadId, String)> {
    let metadata = metadata?.value();
    let links = metadata.pointer("/threadprotocol/root/relationships/links")?;
    let spawned = |link: &&Value| link.get("relation").is_some_and(|it| it == "spawned_from");
    let link = links.as_array()?.iter().find(spawned)?;
    let call = link.pointer("/metadata/tool_call_id");
    let call = call.and_then(Value::as_str).unwrap_or_default();
    Some((link.get("thread_id")?.as_str()?.into(), call.to_owned()))
}
