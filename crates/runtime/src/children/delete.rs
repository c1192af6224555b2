//! A thread that is deleted takes those of its sub-agents with it.

use super::records::Spawned;
use super::wake::waiting_parent;
use crate::error::{RuntimeError, told};
use crate::live::{Live, PAGE};
use crate::react::Runtime;
use crate::store::{Filter, StoreError, TenantId};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use timeline::{Event, Interruption, Seq, ThreadId};

/// What the runs of sub-agents are stopped for whose threads are deleted.
const DELETED: &str = Interruption::USER_CANCELLED;

impl Runtime {
    /// Deletes a thread and everything of it, the threads of its sub-agents at any depth included;
    /// refused while it runs or has forks. Whoever waits for it goes on, and is told that it is
    /// gone. A sub-agent's thread that has forks stays. The thread
    /// itself goes first, so that a refusal changes nothing; what a crash leaves of those beneath it
    /// can be deleted by their keys. Reads the logs of what it deletes.
    pub async fn delete(&self, tenant: &TenantId, key: &str) -> Result<(), RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let (runtime, tenant) = (self.clone(), tenant.clone());
        self.owned(async move { runtime.delete_tree(&tenant, &live).await })
            .await
    }

    fn delete_tree<'a>(
        &'a self,
        tenant: &'a TenantId,
        live: &'a Arc<Live>,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        async move {
            let children = {
                let mut held = live.hold().await?;
                let state = &held.core()?.state;
                if let Some(active) = state.active() {
                    return Err(RuntimeError::Busy(active.execution.id.clone()));
                }
                let is_waited_for = waiting_parent(state).is_some();
                if is_waited_for && self.inner.store.forks(&live.thread).await?.is_empty() {
                    // Its run ends first, as a fact that its parent goes on with.
                    let why = Interruption {
                        reason: DELETED.to_owned(),
                        detail: Some("the thread was deleted".to_owned()),
                    };
                    self.withdraw(live, &mut held, why).await?;
                }
                let children = self.started_by(&live.thread).await?;
                self.inner.store.delete(tenant, &live.thread).await?;
                self.forget(live);
                children
            };
            // Each is deleted under its own lock alone.
            for child in children {
                match self.delete_child(tenant, &live.thread, &child).await {
                    Ok(()) | Err(RuntimeError::Store(StoreError::NotFound)) => {}
                    Err(error) => {
                        tracing::warn!(error = told(&error), thread = %child, "the thread of a sub-agent stays");
                    }
                }
            }
            Ok(())
        }
        .boxed()
    }

    async fn delete_child(
        &self,
        tenant: &TenantId,
        parent: &ThreadId,
        child: &ThreadId,
    ) -> Result<(), RuntimeError> {
        let Some(row) = self.child_row(tenant, parent, child).await? else {
            return Ok(());
        };
        self.stop_child(child, parent, DELETED).await?;
        let live = self.live_of(row);
        self.delete_tree(tenant, &live).await
    }

    /// The threads that the log of a thread says it has started.
    pub(super) async fn started_by(&self, thread: &ThreadId) -> Result<Vec<ThreadId>, StoreError> {
        let mut started = Vec::new();
        let mut seen = Seq::ZERO;
        loop {
            let store = &self.inner.store;
            let page = store.read(thread, seen, PAGE, Filter::Facts).await?;
            let Some(last) = page.last() else {
                return Ok(started);
            };
            seen = last.record.seq;
            let parts = page.iter().filter_map(|logged| {
                let Event::PartCreated { part, .. } = &logged.record.event else {
                    return None;
                };
                Spawned::read(part)
            });
            started.extend(parts.map(|spawned| spawned.spawned_thread_id));
        }
    }
}
