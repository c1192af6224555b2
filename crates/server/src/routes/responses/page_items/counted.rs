//! A store that counts what is read of it.

use futures_util::future::BoxFuture;
use runtime::{Filter, Logged, Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::suite::Layer;
use timeline::{Seq, ThreadId};

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

    /// The number of chunks of answers that were read.
    pub(super) fn pieces_read(&self) -> usize {
        self.n_pieces.load(Ordering::SeqCst)
    }
}

impl Layer for Counted {
    fn inner(&self) -> &dyn Store {
        &*self.inner
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
}
