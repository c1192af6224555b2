//! The threads in this process's memory.

use crate::error::RuntimeError;
use crate::live::{Live, Tail};
use crate::request::NewThreadRequest;
use crate::runtime::Runtime;
use std::sync::{Arc, PoisonError};
use store::{Filter, NewRecord, StoreError, TenantId, ThreadRow};
use timeline::{Seq, ThreadId};

/// A thread that does not exist yet. If its creation fails, this process drops it.
pub(crate) struct PendingThread<'a> {
    runtime: &'a Runtime,
    pub(crate) live: Arc<Live>,
    is_settled: bool,
}

impl Drop for PendingThread<'_> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        self.runtime.drop_live(&self.live);
        // What panicked may have made it before; a process that goes down leaves it to the next one.
        if std::thread::panicking() {
            self.runtime.look_after(self.live.thread.clone());
        }
    }
}

impl PendingThread<'_> {
    /// Handles the result of the thread's creation.
    pub(crate) fn resolve<T>(mut self, made: &Result<T, RuntimeError>) {
        self.is_settled = true;
        match made {
            Ok(_) => self.runtime.name(&self.live),
            // It may be there all the same, with followers and a run without a worker. The log knows.
            Err(RuntimeError::Store(StoreError::Failed(_))) => {
                self.runtime.look_after(self.live.thread.clone());
            }
            Err(_) => self.runtime.forget(&self.live),
        }
    }
}

impl Runtime {
    /// A thread that did not exist a moment ago. Its first commit creates it. Until then only
    /// callers in this process find it. Nothing is read or written.
    pub(crate) fn pending_thread(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<PendingThread<'_>, RuntimeError> {
        let new = NewThreadRequest {
            key: Some(key.to_owned()),
            ..NewThreadRequest::default()
        };
        let first = self.first(new, None)?;
        let made = NewRecord::thread_of(&first).map(|thread| thread.id.clone());
        let thread = made.ok_or(RuntimeError::BrokenOff)?;
        let tail = Tail {
            seq: Seq(first.len() as u64),
            streaming: false,
            gone: false,
        };
        let place = (tenant.clone(), key.to_owned());
        let live = self.kept_or(thread, place, tail, |live| live.pending(first));
        Ok(PendingThread {
            runtime: self,
            live,
            is_settled: false,
        })
    }

    pub(crate) async fn existing(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Arc<Live>, RuntimeError> {
        if self.inner.store.is_shared() {
            // Another node may have deleted the thread and made another one of this key.
            return Ok(self.live_of(self.inner.store.find(tenant, key).await?));
        }
        let known = {
            let keys = self
                .inner
                .keys
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            keys.get(&(tenant.clone(), key.to_owned())).cloned()
        };
        if let Some(id) = known {
            let live = self
                .inner
                .live
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(live) = live.get(&id).filter(|live| !live.is_gone()) {
                live.touch();
                return Ok(Arc::clone(live));
            }
        }
        let live = self.live_of(self.inner.store.find(tenant, key).await?);
        self.name(&live);
        Ok(live)
    }

    /// Registers a thread's key, so that look-ups need no store access.
    fn name(&self, live: &Live) {
        let place = (live.tenant.clone(), live.key.clone());
        let keys = &self.inner.keys;
        let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(place, live.thread.clone());
    }

    pub(crate) async fn live_by_id(&self, thread: &ThreadId) -> Result<Arc<Live>, RuntimeError> {
        Ok(self.live_of(self.inner.store.row(thread).await?))
    }

    pub(crate) fn live_of(&self, row: ThreadRow) -> Arc<Live> {
        let key = row
            .thread
            .key
            .clone()
            .unwrap_or_else(|| row.thread.id.to_string());
        let tail = Tail {
            seq: row.tail,
            streaming: row.thread.status == timeline::ThreadStatus::Streaming,
            gone: false,
        };
        let bytes = row.bytes;
        self.kept_or(row.thread.id, (row.tenant, key), tail, |live| {
            live.with_log(bytes)
        })
    }

    /// The row of a thread that is to be read with this filter. The thread comes with the row if the
    /// reader reads chunks and the running step has chunks that are not stored yet. A reader that
    /// reaches the end of the log stores them with [`Self::store_for_reader`] and reads again. So it
    /// finds what clients have seen.
    pub(crate) async fn row_to_read(
        &self,
        tenant: &TenantId,
        key: &str,
        filter: Filter,
    ) -> Result<(ThreadRow, Option<Arc<Live>>), RuntimeError> {
        let store = &self.inner.store;
        let row = store.find(tenant, key).await?;
        let live = {
            let live = self.inner.live.lock();
            let live = live.unwrap_or_else(PoisonError::into_inner);
            live.get(&row.thread.id).cloned()
        };
        let Some(live) = live.filter(|_| filter == Filter::All) else {
            return Ok((row, None));
        };
        if live.has_unstored() {
            return Ok((row, Some(live)));
        }
        // They may have been stored since the row was read.
        let is_old = live.end() > row.tail;
        let row = if is_old {
            store.find(tenant, key).await?
        } else {
            row
        };
        Ok((row, None))
    }

    /// Stores the chunks of a running step that are shown and not stored yet. Returns the row of the
    /// thread after that.
    pub(crate) async fn store_for_reader(&self, live: Arc<Live>) -> Result<ThreadRow, StoreError> {
        let thread = live.thread.clone();
        let stored = self.run_to_completion(async move { live.store_unstored().await });
        if let Err(error) = stored.await {
            // The run meets the error itself. The reader gets what is stored.
            tracing::debug!(%error, "the chunks of a running step were not stored for a reader");
        }
        self.inner.store.row(&thread).await
    }

    /// The thread in memory, or a new one from `make`.
    fn kept_or(
        &self,
        thread: ThreadId,
        (tenant, key): (TenantId, String),
        tail: Tail,
        make: impl FnOnce(Live) -> Live,
    ) -> Arc<Live> {
        let mut live = self
            .inner
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !live.contains_key(&thread) {
            self.inner.make_room(&mut live);
            self.ensure_sweeps();
        }
        let found = live.entry(thread.clone()).or_insert_with(|| {
            let new = Live::new(&self.inner, (tenant, key), thread, tail);
            Arc::new(make(new))
        });
        found.touch();
        Arc::clone(found)
    }

    /// Drops a thread that the store no longer has.
    pub(crate) fn forget(&self, live: &Live) {
        live.gone();
        self.drop_live(live);
    }

    /// Drops a thread from memory; the next look-up reads the store.
    fn drop_live(&self, live: &Live) {
        let all = &self.inner.live;
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        // By now this process may know it anew.
        let is_it = |found: &Arc<Live>| std::ptr::eq(Arc::as_ptr(found), live);
        if !all.get(&live.thread).is_some_and(is_it) {
            return;
        }
        all.remove(&live.thread);
        drop(all);
        let keys = &self.inner.keys;
        let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (live.tenant.clone(), live.key.clone());
        // The key may be another thread's by now.
        if keys.get(&place) == Some(&live.thread) {
            keys.remove(&place);
        }
    }
}
