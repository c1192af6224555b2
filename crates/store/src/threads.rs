//! Threads as rows of a list.

use crate::StoreError;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use timeline::{Seq, Thread, ThreadId};

/// The tenant of a thread. There is no default tenant (EK §12).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(Arc<str>);

impl TenantId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TenantId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl std::fmt::Display for TenantId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// The thread's tenant.
    pub tenant: TenantId,
    /// The current thread.
    pub thread: Thread,
    /// The last event.
    pub tail: Seq,
    /// The size of its events in the log, in bytes.
    pub bytes: u64,
    /// The number of its last change among its tenant's threads, in the order of the writes. Lists use
    /// this order, independent of clocks.
    pub change: u64,
}

/// A page of a list: the most recently changed first.
#[derive(Clone, Debug, Default)]
pub struct ThreadRows {
    /// Only threads after the one with this [`change`](ThreadRow::change) in the list.
    pub after: Option<u64>,
    /// Only threads whose key has this prefix.
    pub prefix: Option<String>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// The threads as rows.
pub trait ThreadTable: Send + Sync {
    /// Finds a thread by its key.
    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>>;

    /// Finds a thread of any tenant by its id; for following forks and for recovery.
    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>>;

    /// Lists the tenant's threads.
    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: ThreadRows,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>>;

    /// The threads that are forked from this one itself, in the order they were made.
    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>>;

    /// Deletes a thread with all its data, and its sidecar [objects](crate::ObjectTable).
    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The threads with an execution to resume or a trigger to answer.
    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>>;
}
