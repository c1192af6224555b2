//! Stores over stores, for tests of what a store may do at bad times.

use crate::search::{FoundThreads, Search, ThreadPreview};
use crate::{
    Append, Appended, CheckpointTable, Created, DueSearch, EventLog, Filter, FoundExecution, Head,
    Hint, Landmark, Lease, LogIndex, Logged, NewRecord, NodeId, NodeTable, ObjectTable, Side,
    StorageUsage, Store, StoreError, TenantId, TextIndex, ThreadRow, ThreadRows, ThreadTable,
    Token, WaitIndex, WaitingRow, WaitingRows,
};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use timeline::{Removed, Seq, ThreadId};

/// A store around another one. Methods without an implementation call the inner store.
pub trait Layer: Send + Sync {
    /// The inner store.
    fn inner(&self) -> &dyn Store;

    /// Transforms the inner store's result before it is awaited.
    fn passed<'a, T: Send + 'a>(
        &'a self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        answer
    }

    /// [`Store::objects`].
    fn objects(&self) -> &dyn ObjectTable {
        self.inner().objects()
    }

    /// [`EventLog::get_or_create`].
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        self.passed(self.inner().get_or_create(tenant, first, token, owner))
    }

    /// [`ThreadTable::find`].
    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        self.passed(self.inner().find(tenant, key))
    }

    /// [`ThreadTable::forks`].
    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        self.passed(self.inner().forks(thread))
    }

    /// [`ThreadTable::delete`].
    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
        tail: Option<Seq>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.passed(self.inner().delete(tenant, thread, tail))
    }

    /// [`EventLog::head`].
    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        self.passed(self.inner().head(thread))
    }

    /// [`EventLog::append`].
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.passed(self.inner().append(append))
    }

    /// [`EventLog::read`].
    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        self.passed(self.inner().read(thread, after, limit, filter))
    }

    /// [`ThreadTable::unfinished`].
    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        self.passed(self.inner().unfinished())
    }

    /// [`ThreadTable::row`].
    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        self.passed(self.inner().row(thread))
    }

    /// [`NodeTable::is_shared`].
    fn is_shared(&self) -> bool {
        self.inner().is_shared()
    }

    /// [`NodeTable::join`].
    fn join<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NodeId, StoreError>> {
        self.passed(self.inner().join(name))
    }

    /// [`NodeTable::renew`].
    fn renew(&self, node: NodeId) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.passed(self.inner().renew(node))
    }

    /// [`NodeTable::leave`].
    fn leave(&self, node: NodeId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.passed(self.inner().leave(node))
    }

    /// [`NodeTable::declare_dead`].
    fn declare_dead(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.passed(self.inner().declare_dead())
    }

    /// [`NodeTable::tails`].
    fn tails(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<(ThreadId, Seq)>, StoreError>> {
        self.passed(self.inner().tails(threads))
    }

    /// [`NodeTable::due`].
    fn due(&self, search: DueSearch) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        self.passed(self.inner().due(search))
    }

    /// [`NodeTable::owned`].
    fn owned(&self, node: NodeId) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        self.passed(self.inner().owned(node))
    }

    /// [`NodeTable::announce`].
    fn announce(&self, hint: Hint) {
        self.inner().announce(hint);
    }

    /// [`NodeTable::hints`].
    fn hints(&self) -> BoxStream<'static, Hint> {
        self.inner().hints()
    }

    /// [`Store::close`].
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner().close()
    }
}

impl<L: Layer> EventLog for L {
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Layer::get_or_create(self, tenant, first, token, owner)
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Layer::append(self, append)
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        self.passed(self.inner().answer(thread, token))
    }

    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        Layer::head(self, thread)
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        Layer::read(self, thread, after, limit, filter)
    }
}

impl<L: Layer> NodeTable for L {
    fn is_shared(&self) -> bool {
        Layer::is_shared(self)
    }

    fn join<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NodeId, StoreError>> {
        Layer::join(self, name)
    }

    fn renew(&self, node: NodeId) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Layer::renew(self, node)
    }

    fn leave(&self, node: NodeId) -> BoxFuture<'_, Result<(), StoreError>> {
        Layer::leave(self, node)
    }

    fn declare_dead(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Layer::declare_dead(self)
    }

    fn tails(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<(ThreadId, Seq)>, StoreError>> {
        Layer::tails(self, threads)
    }

    fn due(&self, search: DueSearch) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Layer::due(self, search)
    }

    fn owned(&self, node: NodeId) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Layer::owned(self, node)
    }

    fn announce(&self, hint: Hint) {
        Layer::announce(self, hint);
    }

    fn hints(&self) -> BoxStream<'static, Hint> {
        Layer::hints(self)
    }
}

impl<L: Layer> LogIndex for L {
    fn position_of<'a>(
        &'a self,
        thread: &'a ThreadId,
        landmark: Landmark<'a>,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        self.passed(self.inner().position_of(thread, landmark))
    }

    fn nearest_triggers<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        self.passed(self.inner().nearest_triggers(thread, side, limit))
    }

    fn nearest_run<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
    ) -> BoxFuture<'a, Result<Option<FoundExecution>, StoreError>> {
        self.passed(self.inner().nearest_run(thread, side))
    }

    fn removals<'a>(
        &'a self,
        thread: &'a ThreadId,
        of: Vec<Removed>,
    ) -> BoxFuture<'a, Result<Vec<(Removed, Seq)>, StoreError>> {
        self.passed(self.inner().removals(thread, of))
    }

    fn compactions<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        self.passed(self.inner().compactions(thread, before, limit))
    }
}

impl<L: Layer> ThreadTable for L {
    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        Layer::find(self, tenant, key)
    }

    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        Layer::row(self, thread)
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: ThreadRows,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        self.passed(self.inner().list(tenant, page))
    }

    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        Layer::forks(self, thread)
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
        tail: Option<Seq>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Layer::delete(self, tenant, thread, tail)
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Layer::unfinished(self)
    }
}

impl<L: Layer> TextIndex for L {
    fn search<'a>(
        &'a self,
        tenant: &'a TenantId,
        search: Search,
    ) -> BoxFuture<'a, Result<FoundThreads, StoreError>> {
        self.passed(self.inner().search(tenant, search))
    }

    fn previews(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<ThreadPreview>, StoreError>> {
        self.passed(self.inner().previews(threads))
    }
}

impl<L: Layer> WaitIndex for L {
    fn waiting<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: WaitingRows,
    ) -> BoxFuture<'a, Result<Vec<WaitingRow>, StoreError>> {
        self.passed(self.inner().waiting(tenant, page))
    }

    fn settle<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.passed(self.inner().settle(thread, seq))
    }
}

impl<L: Layer> Store for L {
    fn objects(&self) -> &dyn ObjectTable {
        Layer::objects(self)
    }

    fn checkpoints(&self) -> &dyn CheckpointTable {
        self.inner().checkpoints()
    }

    fn usage(&self) -> BoxFuture<'_, Result<Vec<(TenantId, StorageUsage)>, StoreError>> {
        self.passed(self.inner().usage())
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Layer::close(self)
    }
}
