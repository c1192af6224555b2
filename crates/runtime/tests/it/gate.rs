//! A store that holds writes back until it is told, and counts what is read.

use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex};
use store::suite::Layer;
use store::{
    Append, Appended, EventLog as _, Filter, Logged, MemoryStore, NewRecord, Ownership, Store,
    StoreError,
};
use timeline::{Command, Seq, ThreadId};
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
    let head = store.head(thread).await.unwrap();
    let at = head.last_at;
    let events = head.state.decide(command, at).unwrap();
    let records = events
        .into_iter()
        .map(|event| NewRecord::new(at, event).unwrap());
    let append = Append {
        thread: thread.clone(),
        epoch: head.epoch,
        tail: head.tail,
        records: records.collect(),
        token: None,
        is_limited: true,
        ownership: Ownership::Keep,
        unmoved: Vec::new(),
    };
    store.append(append).await.unwrap();
}

impl Layer for Gate {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
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

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        // It outlives the processes that use it.
        Box::pin(std::future::ready(Ok(())))
    }
}
