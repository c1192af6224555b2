//! Threads that continue from a position in another thread.

use crate::error::RuntimeError;
use crate::request::NewThreadRequest;
use crate::runtime::Runtime;
use std::sync::Arc;
use store::{Created, NewRecord, Side, StoreError, TenantId, ThreadRow};
use timeline::{Fork, Seq, ThreadId, ThreadStatus};

impl Runtime {
    /// Makes a thread that shares the content of this one up to `at`, or to its end without `at`.
    /// Shared content costs nothing (architecture rule 5). Waiting calls at that position can be
    /// answered in both threads. Calls that wait for sub-agents can be answered only in the
    /// original.
    pub async fn fork(
        &self,
        tenant: &TenantId,
        key: &str,
        new_key: Option<String>,
        at: Option<Seq>,
    ) -> Result<ThreadRow, RuntimeError> {
        let row = self.inner.store.find(tenant, key).await?;
        let new = NewThreadRequest {
            key: new_key,
            ..NewThreadRequest::default()
        };
        self.fork_as(tenant, row, at, new).await
    }

    /// Makes a fork of a thread at a position where nothing runs.
    pub(crate) async fn fork_as(
        &self,
        tenant: &TenantId,
        row: ThreadRow,
        at: Option<Seq>,
        new: NewThreadRequest,
    ) -> Result<ThreadRow, RuntimeError> {
        let fork = Some(self.fork_point(row, at).await?);
        if let Some(new_key) = &new.key
            && self.inner.store.find(tenant, new_key).await.is_ok()
        {
            return Err(StoreError::KeyTaken(new_key.clone()).into());
        }
        let wanted = new.key.clone().unwrap_or_default();
        let new = NewThreadRequest { fork, ..new };
        let created = self.make(tenant, self.first(new, None)?).await?;
        if !created.is_new() {
            return Err(StoreError::KeyTaken(wanted).into());
        }
        Ok(self.inner.store.row(&created.thread).await?)
    }

    /// Creates the thread that these records start, or finds the thread with its key. A fork and
    /// the deletion of its parent never overlap: either the fork is made and the deletion is
    /// refused, or the parent is deleted and the fork is refused.
    pub(crate) async fn make(
        &self,
        tenant: &TenantId,
        first: Vec<NewRecord>,
    ) -> Result<Created, RuntimeError> {
        let fork = NewRecord::thread_of(&first).and_then(|thread| thread.fork.clone());
        let store = Arc::clone(&self.inner.store);
        let Some(fork) = fork else {
            let created = store.get_or_create(tenant, first, None, None).await?;
            self.inner.subscriptions.wake(tenant);
            return Ok(created);
        };
        let (parent, tenant) = (self.live_by_id(&fork.thread_id).await?, tenant.clone());
        let subscriptions = Arc::clone(&self.inner.subscriptions);
        self.run_to_completion(async move {
            let _forks = parent.forks().await;
            let created = store.get_or_create(&tenant, first, None, None).await?;
            subscriptions.wake(&tenant);
            Ok(created)
        })
        .await
    }

    /// The fork point of a thread: at this event, or at its end.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::NotAtRest`] if an execution runs there, [`RuntimeError::BeyondEnd`] if the
    /// thread has no such event.
    pub async fn fork_point(&self, row: ThreadRow, at: Option<Seq>) -> Result<Fork, RuntimeError> {
        let rests = row.thread.status != ThreadStatus::Streaming;
        let tail = row.tail;
        let seq = match at {
            Some(at) if at > tail => return Err(RuntimeError::BeyondEnd { at, tail }),
            Some(at) if at < tail => {
                self.check_rest(&row.thread.id, at).await?;
                at
            }
            Some(_) | None if rests => tail,
            Some(_) | None => return Err(RuntimeError::NotAtRest(tail)),
        };
        Ok(Fork {
            thread_id: row.thread.id,
            seq,
        })
    }

    /// Fails if an execution runs at this position.
    async fn check_rest(&self, thread: &ThreadId, seq: Seq) -> Result<(), RuntimeError> {
        let last = self
            .inner
            .store
            .nearest_run(thread, Side::Before(seq.next()))
            .await?;
        match last {
            Some(run) if run.finished.is_none_or(|end| end > seq) => {
                Err(RuntimeError::NotAtRest(seq))
            }
            Some(_) | None => Ok(()),
        }
    }
}
