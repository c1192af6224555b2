//! A store that does what stores do on bad days.

use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::suite::Layer;
use store::{
    Append, Appended, Created, EventLog as _, Head, MemoryStore, NewRecord, NodeId, Store,
    StoreError, TenantId, ThreadRow, ThreadTable as _, Token,
};
use timeline::{Seq, ThreadId};

/// How late an answer is that is late.
const LATE: Duration = Duration::from_millis(300);

#[derive(Default)]
pub(crate) struct Rigged {
    pub(crate) inner: Arc<MemoryStore>,
    /// So many appends fail and have written nothing.
    pub(crate) fail_appends: AtomicUsize,
    /// So many appends are written, and their answer comes when nobody waits for it any more.
    pub(crate) lose_appends: AtomicUsize,
    /// Appends take so many milliseconds.
    pub(crate) slow_appends: AtomicU64,
    /// So many threads are not made, and nothing is written.
    pub(crate) fail_makes: AtomicUsize,
    /// So many threads are made, and whoever makes them is told that they could not be.
    pub(crate) break_makes: AtomicUsize,
    /// So many threads are made, and then something panics.
    pub(crate) panic_makes: AtomicUsize,
    /// So many threads are made, and the answer comes when nobody waits for it any more.
    pub(crate) lose_makes: AtomicUsize,
    /// So many threads are made when nobody waits for them any more.
    pub(crate) stall_makes: AtomicUsize,
    /// So many heads come late.
    pub(crate) stall_heads: AtomicUsize,
    /// So many deletes are done, and their answer comes late.
    pub(crate) lose_deletes: AtomicUsize,
    /// So many lists of forks come late.
    pub(crate) stall_forks: AtomicUsize,
    /// So many look-ups come a moment before someone else makes the thread.
    pub(crate) early_finds: AtomicUsize,
    /// The thread whose log can't be read.
    pub(crate) damaged: Mutex<Option<ThreadId>>,
}

fn spend(count: &AtomicUsize) -> bool {
    count
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
        .is_ok()
}

impl Layer for Rigged {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            if spend(&self.fail_makes) {
                return Err(StoreError::Failed("the disk is full".into()));
            }
            if spend(&self.stall_makes) {
                tokio::time::sleep(LATE).await;
            }
            let created = self
                .inner
                .get_or_create(tenant, first, token, owner)
                .await?;
            if spend(&self.break_makes) {
                return Err(StoreError::Failed("the disk is gone".into()));
            }
            assert!(!spend(&self.panic_makes), "on purpose");
            if spend(&self.lose_makes) {
                tokio::time::sleep(LATE).await;
            }
            Ok(created)
        })
    }

    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        if key == "fork" && spend(&self.early_finds) {
            return Box::pin(std::future::ready(Err(StoreError::NotFound)));
        }
        self.inner.find(tenant, key)
    }

    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        Box::pin(async move {
            let forks = self.inner.forks(thread).await;
            if spend(&self.stall_forks) {
                tokio::time::sleep(LATE).await;
            }
            forks
        })
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
        tail: Option<Seq>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.inner.delete(tenant, thread, tail).await?;
            if spend(&self.lose_deletes) {
                tokio::time::sleep(LATE).await;
            }
            Ok(())
        })
    }

    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        Box::pin(async move {
            if self.damaged.lock().unwrap().as_ref() == Some(thread) {
                return Err(StoreError::Damaged("on purpose".into()));
            }
            if spend(&self.stall_heads) {
                tokio::time::sleep(LATE).await;
            }
            self.inner.head(thread).await
        })
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move {
            if spend(&self.fail_appends) {
                return Err(StoreError::Failed("the disk is full".into()));
            }
            let slow = self.slow_appends.load(Ordering::SeqCst);
            if slow > 0 {
                tokio::time::sleep(Duration::from_millis(slow)).await;
            }
            let tail = self.inner.append(append).await?;
            if spend(&self.lose_appends) {
                tokio::time::sleep(LATE).await;
            }
            Ok(tail)
        })
    }
}
