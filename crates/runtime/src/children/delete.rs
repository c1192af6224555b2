//! Deletes a thread together with the threads of its sub-agents.

use super::records::Spawned;
use super::wake::waiting_parent;
use crate::attempt_note::Abandoned;
use crate::error::{RuntimeError, render_error};
use crate::live::{Live, LockedThread};
use crate::pages::PAGE;
use crate::runtime::Runtime;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use store::Run;
use store::{Filter, StoreError, TenantId, ThreadRow};
use timeline::{Command, Ending, Event, Interruption, Seq, ThreadId};

/// The interruption of sub-agents' runs whose threads are deleted.
const DELETED: &str = Interruption::USER_CANCELLED;

/// How a deletion treats the running execution of its thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Running {
    /// The thread stays.
    Refuses,
    /// It ends, and queued triggers never start.
    IsStopped,
    /// Fails if a trigger is queued or the log has grown past this event.
    AtRest(Seq),
}

impl Runtime {
    /// Deletes a thread with the threads of its sub-agents at any depth. It is refused while the
    /// thread runs or has forks. Waiting clients are notified that the thread is gone. A
    /// sub-agent's thread that has forks stays.
    ///
    /// The thread itself is deleted first, so that a refusal changes nothing. If a crash leaves
    /// threads below it, they can be deleted by their keys. The cost is reading the logs of the
    /// deleted threads.
    pub async fn delete(&self, tenant: &TenantId, key: &str) -> Result<(), RuntimeError> {
        self.delete_with(tenant, key, Running::Refuses).await
    }

    /// Deletes a thread and stops its run and its sub-agents. Queued triggers never start.
    ///
    /// # Errors
    ///
    /// [`StoreError::HasForks`]: the run continues, and no fork can be made meanwhile. If the store
    /// accepts the end of the run and then fails to delete, the thread stays with its run ended.
    pub async fn delete_stopping(&self, tenant: &TenantId, key: &str) -> Result<(), RuntimeError> {
        self.delete_with(tenant, key, Running::IsStopped).await
    }

    /// Deletes a thread at rest whose log ends with this event. False if something runs, waits to run, or was
    /// written since.
    ///
    /// # Errors
    ///
    /// [`StoreError::HasForks`], and errors of the store.
    pub async fn delete_at_rest(
        &self,
        tenant: &TenantId,
        key: &str,
        tail: Seq,
    ) -> Result<bool, RuntimeError> {
        let deleted = self.delete_with(tenant, key, Running::AtRest(tail)).await;
        match deleted {
            Ok(()) => Ok(true),
            Err(RuntimeError::Busy(_) | RuntimeError::Store(StoreError::Conflict { .. })) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The threads of a thread's sub-agents, at any depth. They are deleted with it. Reads their logs.
    pub async fn subagents(
        &self,
        tenant: &TenantId,
        thread: &ThreadId,
    ) -> Result<Vec<ThreadRow>, RuntimeError> {
        let (mut found, mut above) = (Vec::new(), vec![thread.clone()]);
        while let Some(parent) = above.pop() {
            for child in self.started_by(&parent).await? {
                if let Some(row) = self.child_row(tenant, &parent, &child).await? {
                    above.push(child);
                    found.push(row);
                }
            }
        }
        Ok(found)
    }

    /// Drops what memory has of a thread's removed entries, after the store has erased them.
    pub async fn forget_removed(&self, tenant: &TenantId, key: &str) -> Result<(), RuntimeError> {
        let live = self.existing(tenant, key).await?;
        Self::forget_removed_of(&live).await
    }

    /// Drops what memory has of the removed entries of this thread.
    pub(crate) async fn forget_removed_of(live: &Live) -> Result<(), RuntimeError> {
        live.forget_erased();
        let mut held = live.hold().await?;
        let core = held.core()?;
        core.generation += 1;
        core.memory = None;
        // It may have read the thread before the erasure.
        live.forget_erased();
        Ok(())
    }

    async fn delete_with(
        &self,
        tenant: &TenantId,
        key: &str,
        running: Running,
    ) -> Result<(), RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let (runtime, tenant) = (self.clone(), tenant.clone());
        self.run_to_completion(async move { runtime.delete_tree(&tenant, &live, running).await })
            .await
    }

    fn delete_tree<'a>(
        &'a self,
        tenant: &'a TenantId,
        live: &'a Arc<Live>,
        running: Running,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        async move {
            let children = live.decided(async || {
                let mut held = live.hold().await?;
                let core = held.core()?;
                if let Some(active) = core.state.active()
                    && running != Running::IsStopped
                {
                    return Err(RuntimeError::Busy(active.execution.id.clone()));
                }
                if let Running::AtRest(expected) = running
                    && (core.tail != expected || core.state.waiting().next().is_some())
                {
                    let (thread, found) = (live.thread.clone(), core.tail);
                    return Err(StoreError::Conflict {
                        thread,
                        expected,
                        found,
                    }
                    .into());
                }
                // Before anything ends: a refusal changes nothing. No fork comes between.
                let _forks = live.forks().await;
                if !self.inner.store.forks(&live.thread).await?.is_empty() {
                    let thread = live.thread.clone();
                    return Err(StoreError::HasForks { thread }.into());
                }
                let children = self.started_by(&live.thread).await?;
                self.end_for_good(live, &mut held).await?;
                // Another node may append until now: then everything is decided again.
                let tail = held.core()?.tail;
                let deleted = self.inner.store.delete(tenant, &live.thread, Some(tail));
                if let Err(error) = deleted.await {
                    if matches!(error, StoreError::Conflict { .. }) {
                        held.overtaken();
                        return Err(error.into());
                    }
                    // What waits goes on after all.
                    self.ensure_worker(live, &mut held)?;
                    return Err(error.into());
                }
                self.forget(live);
                self.inner.subscriptions.wake_after_deletion(tenant);
                Ok(children)
            });
            let children = children.await?;
            let running = match running {
                Running::AtRest(_) => Running::Refuses,
                Running::Refuses | Running::IsStopped => running,
            };
            // Each is deleted under its own lock alone.
            for child in children {
                match self.delete_child(tenant, &live.thread, &child, running).await {
                    Ok(()) | Err(RuntimeError::Store(StoreError::NotFound)) => {}
                    Err(error) => {
                        tracing::warn!(error = render_error(&error), thread = %child, "the thread of a sub-agent stays");
                    }
                }
            }
            Ok(())
        }
        .boxed()
    }

    /// Ends the run, and the wait for answers, of a thread that is about to be deleted. The end is
    /// recorded, so that waiting callers continue. No queued trigger starts. The caller holds the
    /// thread's lock.
    async fn end_for_good(
        &self,
        live: &Arc<Live>,
        held: &mut LockedThread<'_>,
    ) -> Result<(), RuntimeError> {
        let state = &held.core()?.state;
        let why = Interruption::new(DELETED, "the thread was deleted");
        // A sub-agent's parent waits for what never begins, too.
        let waiting = state.waiting().map(|waiting| Run::of(Some(&waiting.run)));
        let parents = waiting.filter_map(|run| run.parent);
        let parents: Vec<_> = parents.chain(waiting_parent(state)).collect();
        if let Some(active) = state.active() {
            let id = active.execution.id.clone();
            let parent = Run::of(active.execution.run.as_ref()).parent;
            let abandoned = Abandoned::of(state);
            self.wake_parents(live, parent.as_ref(), None).await?;
            held.core()?.generation += 1;
            let ending = Ending::Stopped(why);
            held.commit([(None, Command::End { ending })], None).await?;
            live.stop(&id);
            self.abandon(abandoned);
        } else if waiting_parent(state).is_some() {
            self.withdraw(live, held, why).await?;
        }
        for parent in &parents {
            self.wake_parents(live, Some(parent), None).await?;
        }
        Ok(())
    }

    async fn delete_child(
        &self,
        tenant: &TenantId,
        parent: &ThreadId,
        child: &ThreadId,
        running: Running,
    ) -> Result<(), RuntimeError> {
        let Some(row) = self.child_row(tenant, parent, child).await? else {
            return Ok(());
        };
        self.stop_child(child, parent, DELETED).await?;
        let live = self.live_of(row);
        self.delete_tree(tenant, &live, running).await
    }

    /// The threads that a thread's log records as started.
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
