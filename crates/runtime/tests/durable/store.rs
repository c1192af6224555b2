//! A store that dies after so many appends, as a process would.

use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{
    Append, Claim, Created, Filter, Head, Logged, MemoryStore, NewRecord, Page, Store, StoreError,
    TenantId, ThreadRow,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use timeline::{Seq, ThreadId};

/// One process's way to the store.
pub(crate) struct Lease {
    pub(crate) inner: Arc<MemoryStore>,
    /// How many appends are done before it dies.
    left: AtomicUsize,
    /// Whether the append at which it dies is done all the same.
    keeps_last: bool,
    pub(crate) died: AtomicBool,
    pub(crate) n_appends: AtomicUsize,
}

impl Lease {
    pub(crate) fn new(inner: &Arc<MemoryStore>, left: usize, keeps_last: bool) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            left: AtomicUsize::new(left),
            keeps_last,
            died: AtomicBool::new(false),
            n_appends: AtomicUsize::new(0),
        })
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.died.load(Ordering::SeqCst)
    }
}

impl Store for Lease {
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        self.inner.get_or_create(tenant, first)
    }

    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        self.inner.find(tenant, key)
    }

    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        self.inner.row(thread)
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: Page,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        self.inner.list(tenant, page)
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.delete(tenant, thread)
    }

    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        self.inner.head(thread)
    }

    fn claim<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            if self.is_dead() {
                return Err(StoreError::Closed);
            }
            self.inner.claim(thread).await
        })
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, StoreError>> {
        Box::pin(async move {
            if self.is_dead() {
                return Err(StoreError::Closed);
            }
            let left = self.left.load(Ordering::SeqCst);
            if left == 0 {
                self.died.store(true, Ordering::SeqCst);
                if self.keeps_last {
                    self.inner.append(append).await?;
                }
                return Err(StoreError::Closed);
            }
            self.left.store(left - 1, Ordering::SeqCst);
            self.n_appends.fetch_add(1, Ordering::SeqCst);
            self.inner.append(append).await
        })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        self.inner.answer(thread, token)
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        self.inner.read(thread, after, limit, filter)
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        self.inner.unfinished()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
