//! A store that holds writes back until it is told, and counts what is read.

use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::checkpoint::CheckpointTable;
use runtime::{
    Append, Claim, Created, Filter, Head, Landmark, Logged, MemoryStore, NewRecord, Page, Ran,
    Store, StoreError, TenantId, ThreadRow, Token,
};
use std::sync::{Arc, Mutex};
use timeline::{Command, Removed, Seq, ThreadId};
use tokio::sync::watch;

/// A store with a gate before the writes to one thread.
pub(crate) struct Gate {
    inner: Arc<MemoryStore>,
    shut: watch::Sender<Option<ThreadId>>,
    n_waiting: watch::Sender<usize>,
    /// The reads that would have got everything: thread and place.
    whole_reads: Mutex<Vec<(ThreadId, Seq)>>,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::new(MemoryStore::new()),
            shut: watch::Sender::new(None),
            n_waiting: watch::Sender::new(0),
            whole_reads: Mutex::default(),
        })
    }

    /// From here on writes to this thread wait.
    pub(crate) fn shut(&self, thread: &ThreadId) {
        self.shut.send_replace(Some(thread.clone()));
    }

    pub(crate) fn open(&self) {
        self.shut.send_replace(None);
    }

    /// Waits until a write waits.
    pub(crate) async fn until_one_waits(&self) {
        let mut waiting = self.n_waiting.subscribe();
        waiting.wait_for(|n| *n > 0).await.unwrap();
    }

    /// From where a thread's log was read, chunks included.
    pub(crate) fn whole_reads(&self, thread: &ThreadId) -> Vec<Seq> {
        let reads = self.whole_reads.lock().unwrap();
        let own = reads.iter().filter(|(read, _)| read == thread);
        own.map(|(_, after)| *after).collect()
    }
}

/// Writes what a command comes to, as a process would that dies right after.
pub(crate) async fn write(store: &dyn Store, thread: &ThreadId, command: Command) {
    let claim = store.claim(thread).await.unwrap();
    let at = claim.head.last_at;
    let events = claim.head.state.decide(command, at).unwrap();
    let records = events.into_iter().map(|event| NewRecord {
        at,
        text: event.encode().unwrap().into(),
        event,
    });
    let append = Append {
        thread: thread.clone(),
        epoch: claim.epoch,
        tail: claim.head.tail,
        records: records.collect(),
        token: None,
    };
    store.append(append).await.unwrap();
}

impl Store for Gate {
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
        Box::pin(async move {
            let mut shut = self.shut.subscribe();
            let is_shut = |shut: &Option<ThreadId>| shut.as_ref() == Some(&append.thread);
            if is_shut(&shut.borrow()) {
                self.n_waiting.send_modify(|n| *n += 1);
                shut.wait_for(|shut| !is_shut(shut)).await.unwrap();
                self.n_waiting.send_modify(|n| *n -= 1);
            }
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
        if filter == Filter::All {
            let read = (thread.clone(), after);
            self.whole_reads.lock().unwrap().push(read);
        }
        self.inner.read(thread, after, limit, filter)
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

    fn objects(&self) -> &dyn runtime::objects::ObjectTable {
        self.inner.objects()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        // It outlives the processes that use it.
        Box::pin(std::future::ready(Ok(())))
    }
}
