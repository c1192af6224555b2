//! The store of a process that dies.

use futures_util::future::{BoxFuture, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use store::suite::Layer;
use store::{
    Append, Appended, Created, EventLog as _, Filter, Logged, MemoryStore, NewRecord, NodeId,
    Store, StoreError, TenantId, ThreadTable as _, Token,
};
use timeline::{Event, Seq, ThreadId};

/// How one process sees the store that outlives it: after so many writes it is dead.
pub(crate) struct Mortal {
    inner: Arc<MemoryStore>,
    left: AtomicUsize,
    n_writes: AtomicUsize,
    n_read: AtomicUsize,
    /// Whether the last write is in the log, though nobody hears of it.
    keeps_last: bool,
    /// Whether threads are recovered in the other order.
    reversed: bool,
    dead: AtomicBool,
    /// So many writes until one fails that could succeed later; none does at zero.
    until_stumble: AtomicUsize,
    /// Whether the contents of all messages are erased.
    is_erased: AtomicBool,
}

impl Mortal {
    pub(crate) fn new(
        inner: &Arc<MemoryStore>,
        writes: usize,
        keeps_last: bool,
        reversed: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            left: AtomicUsize::new(writes),
            n_writes: AtomicUsize::new(0),
            n_read: AtomicUsize::new(0),
            keeps_last,
            reversed,
            dead: AtomicBool::new(false),
            until_stumble: AtomicUsize::new(0),
            is_erased: AtomicBool::new(false),
        })
    }

    /// A process that lives, and whose n-th write, counted from 1, fails and is not written.
    pub(crate) fn stumbling(inner: &Arc<MemoryStore>, n: usize) -> Arc<Self> {
        let mortal = Self::new(inner, usize::MAX, true, false);
        mortal.until_stumble.store(n, Ordering::SeqCst);
        mortal
    }

    pub(crate) fn has_stumbled(&self) -> bool {
        self.until_stumble.load(Ordering::SeqCst) == 0
    }

    /// Erases the contents of all messages.
    pub(crate) fn erase(&self) {
        self.is_erased.store(true, Ordering::SeqCst);
    }

    fn erased(&self, logged: Logged) -> Logged {
        if !self.is_erased.load(Ordering::SeqCst) {
            return logged;
        }
        let mut event = logged.record.event.clone();
        if let Event::ItemCreated { item } = &mut event {
            item.content = None;
        }
        let erased = NewRecord::new(logged.record.at, event).unwrap();
        erased.logged(logged.record.seq)
    }

    pub(crate) fn dies_at_the_next_write(&self) {
        self.left.store(0, Ordering::SeqCst);
    }

    pub(crate) fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    /// How many writes it has made, its last one apart.
    pub(crate) fn writes(&self) -> usize {
        self.n_writes.load(Ordering::SeqCst)
    }

    /// How many records it has read.
    pub(crate) fn records_read(&self) -> usize {
        self.n_read.load(Ordering::SeqCst)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    async fn write<T>(&self, write: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
        let spend = |n: usize| n.checked_sub(1);
        let order = Ordering::SeqCst;
        if self.is_dead() {
            return Err(StoreError::Closed);
        }
        if self.until_stumble.fetch_update(order, order, spend) == Ok(1) {
            return Err(StoreError::Failed("the disk is full".into()));
        }
        if self.left.fetch_update(order, order, spend).is_ok() {
            self.n_writes.fetch_add(1, order);
            return write.await;
        }
        self.die();
        if self.keeps_last {
            write.await?;
        }
        Err(StoreError::Closed)
    }
}

impl Layer for Mortal {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn passed<'a, T: Send + 'a>(
        &'a self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        if self.is_dead() {
            return Box::pin(ready(Err(StoreError::Closed)));
        }
        answer
    }

    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(self.write(self.inner.get_or_create(tenant, first, token, owner)))
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(self.write(self.inner.append(append)))
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        Box::pin(async move {
            let read = self.passed(self.inner.read(thread, after, limit, filter));
            let records = read.await?;
            self.n_read.fetch_add(records.len(), Ordering::SeqCst);
            let records = records.into_iter();
            Ok(records.map(|logged| self.erased(logged)).collect())
        })
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Box::pin(async move {
            let mut threads = self.passed(self.inner.unfinished()).await?;
            if self.reversed {
                threads.reverse();
            }
            Ok(threads)
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        // The process ends; what it has written stays.
        self.die();
        Box::pin(ready(Ok(())))
    }
}
