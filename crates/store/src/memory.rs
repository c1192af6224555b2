//! A store in memory: for tests, and for threads that need not outlive the process.

mod checkpoints;
mod landmarks;
mod nodes;
mod objects;
mod search;
mod stored;
mod waiting;
mod waits;

use crate::search::{FoundThreads, Search, ThreadPreview};
use crate::{
    Append, Appended, CheckpointTable, Created, DueSearch, EventLog, Filter, FoundExecution, Head,
    Landmark, Lease, LogIndex, Logged, NewRecord, NodeId, NodeTable, ObjectTable, Quotas, Side,
    StorageUsage, Store, StoreError, TenantId, TextIndex, ThreadRow, ThreadRows, ThreadTable,
    Token, WaitIndex, WaitingRow, WaitingRows,
};
use futures_util::future::BoxFuture;
use std::sync::{Mutex, PoisonError};
use stored::StoredThread;
use timeline::{Removed, Seq, ThreadId};

/// A [`Store`] in memory. Nothing is durable; its data exists as long as the value.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<StoredThread>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with limits for each tenant, and for the bytes of all tenants together.
    pub fn with_limits(quotas: Quotas, max_bytes: u64) -> Self {
        Self {
            kept: Mutex::new(StoredThread::with_limits(quotas, max_bytes)),
        }
    }

    // No caller awaits in `work`, so the lock is never held across a wait.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut StoredThread) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.closed {
            return Err(StoreError::Closed);
        }
        work(&mut kept)
    }
}

impl EventLog for MemoryStore {
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.create(tenant, first, token, owner)) })
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.append(append)) })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.log(thread)?.tokens.get(token).cloned())) })
    }

    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.head(thread)) })
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.read(thread, after, limit, filter)) })
    }
}

// Leases here do not end by themselves: a test lets the nodes leave that it declares dead.
impl NodeTable for MemoryStore {
    fn join<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NodeId, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.nodes.join(name))) })
    }

    fn renew(&self, node: NodeId) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.nodes.renew(node)) })
    }

    fn leave(&self, node: NodeId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                kept.nodes.leave(node);
                Ok(())
            })
        })
    }

    fn tails(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<(ThreadId, Seq)>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.tails(threads))) })
    }

    fn due(&self, search: DueSearch) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.due(&search))) })
    }

    fn owned(&self, node: NodeId) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.owned(node))) })
    }
}

impl LogIndex for MemoryStore {
    fn position_of<'a>(
        &'a self,
        thread: &'a ThreadId,
        landmark: Landmark<'a>,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(
            async move { self.with(|kept| Ok(kept.log(thread)?.landmarks.position_of(landmark))) },
        )
    }

    fn nearest_triggers<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        Box::pin(
            async move { self.with(|kept| Ok(kept.log(thread)?.landmarks.triggers(side, limit))) },
        )
    }

    fn nearest_run<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
    ) -> BoxFuture<'a, Result<Option<FoundExecution>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.log(thread)?.landmarks.run(side))) })
    }

    fn removals<'a>(
        &'a self,
        thread: &'a ThreadId,
        of: Vec<Removed>,
    ) -> BoxFuture<'a, Result<Vec<(Removed, Seq)>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.log(thread)?.landmarks.removals(of))) })
    }

    fn compactions<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        Box::pin(async move {
            self.with(|kept| Ok(kept.log(thread)?.landmarks.compactions(before, limit)))
        })
    }
}

impl ThreadTable for MemoryStore {
    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                let id = kept.keys.get(&(tenant.clone(), key.to_owned()));
                kept.row(id.ok_or(StoreError::NotFound)?)
            })
        })
    }

    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.row(thread)) })
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: ThreadRows,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.list(tenant, &page))) })
    }

    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                kept.log(thread)?;
                let forks = kept.forks.get(thread).into_iter().flatten();
                forks.map(|id| kept.row(id)).collect()
            })
        })
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
        tail: Option<Seq>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.with(|kept| kept.delete(tenant, thread, tail)) })
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.unfinished())) })
    }
}

impl TextIndex for MemoryStore {
    fn search<'a>(
        &'a self,
        tenant: &'a TenantId,
        search: Search,
    ) -> BoxFuture<'a, Result<FoundThreads, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.search(tenant, &search))) })
    }

    fn previews(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<ThreadPreview>, StoreError>> {
        Box::pin(async move {
            self.with(|kept| Ok(threads.iter().map(|id| kept.preview(id)).collect()))
        })
    }
}

impl WaitIndex for MemoryStore {
    fn waiting<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: WaitingRows,
    ) -> BoxFuture<'a, Result<Vec<WaitingRow>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.waiting(tenant, &page))) })
    }

    fn settle<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                kept.settle(thread, seq);
                Ok(())
            })
        })
    }
}

impl Store for MemoryStore {
    fn objects(&self) -> &dyn ObjectTable {
        self
    }

    fn checkpoints(&self) -> &dyn CheckpointTable {
        self
    }

    fn usage(&self) -> BoxFuture<'_, Result<Vec<(TenantId, StorageUsage)>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.usage())) })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .closed = true;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MemoryStore, Quotas};
    use crate::Store;
    use crate::suite::Subject;
    use futures_util::future::BoxFuture;
    use std::sync::Arc;

    // Nothing outlives it: opening it again is going on with it.
    struct Memory(Arc<MemoryStore>, Quotas);

    impl Default for Memory {
        fn default() -> Self {
            let quotas = Quotas::default();
            let store = MemoryStore::with_limits(quotas.clone(), u64::MAX);
            Self(Arc::new(store), quotas)
        }
    }

    impl Subject for Memory {
        fn store(&self) -> Arc<dyn Store> {
            self.0.clone()
        }

        fn quotas(&self) -> Quotas {
            self.1.clone()
        }

        fn reopen(&mut self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    crate::store_suite!(Memory::default());
    crate::shared_store_suite!(Memory::default());
}
