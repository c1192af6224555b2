//! A store that counts what is read of it.

use futures_util::future::BoxFuture;
use runtime::checkpoint::CheckpointTable;
use runtime::objects::ObjectTable;
use runtime::{
    Append, Claim, Created, Filter, Head, Landmark, Logged, NewRecord, Page, Ran, Store,
    StoreError, TenantId, ThreadRow, Token,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use timeline::{Removed, Seq, ThreadId};

/// A store, and what was read of it.
pub(super) struct Counted {
    inner: Arc<dyn Store>,
    n_read: AtomicUsize,
    n_pieces: AtomicUsize,
}

impl Counted {
    pub(super) fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            n_read: AtomicUsize::new(0),
            n_pieces: AtomicUsize::new(0),
        }
    }

    /// How many records were read so far.
    pub(super) fn records_read(&self) -> usize {
        self.n_read.load(Ordering::SeqCst)
    }

    /// How many of them were pieces of answers, which are no facts.
    pub(super) fn pieces_read(&self) -> usize {
        self.n_pieces.load(Ordering::SeqCst)
    }
}

impl Store for Counted {
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        self.inner.get_or_create(tenant, first, token)
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

    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        self.inner.forks(thread)
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
        self.inner.claim(thread)
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, StoreError>> {
        self.inner.append(append)
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
        Box::pin(async move {
            let read = self.inner.read(thread, after, limit, filter);
            let records = read.await?;
            self.n_read.fetch_add(records.len(), Ordering::SeqCst);
            let is_piece = |logged: &&Logged| !Filter::Facts.keeps(&logged.record.event);
            let n_pieces = records.iter().filter(is_piece).count();
            self.n_pieces.fetch_add(n_pieces, Ordering::SeqCst);
            Ok(records)
        })
    }

    fn place_of<'a>(
        &'a self,
        thread: &'a ThreadId,
        landmark: Landmark<'a>,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        self.inner.place_of(thread, landmark)
    }

    fn triggers_before<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        self.inner.triggers_before(thread, before, limit)
    }

    fn triggers_after<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        self.inner.triggers_after(thread, after, limit)
    }

    fn run_before<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
    ) -> BoxFuture<'a, Result<Option<Ran>, StoreError>> {
        self.inner.run_before(thread, before)
    }

    fn run_after<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
    ) -> BoxFuture<'a, Result<Option<Ran>, StoreError>> {
        self.inner.run_after(thread, after)
    }

    fn removals<'a>(
        &'a self,
        thread: &'a ThreadId,
        of: Vec<Removed>,
    ) -> BoxFuture<'a, Result<Vec<(Removed, Seq)>, StoreError>> {
        self.inner.removals(thread, of)
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        self.inner.unfinished()
    }

    fn checkpoints(&self) -> &dyn CheckpointTable {
        self.inner.checkpoints()
    }

    fn objects(&self) -> &dyn ObjectTable {
        self.inner.objects()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.close()
    }
}
