//! Threads as rows of a list.

use crate::StoreError;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::sync::Arc;
use timeline::{Seq, Thread, ThreadId, ThreadStatus};

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

impl ThreadRow {
    /// Refuses the position of a reader that has events after the end of the log.
    ///
    /// # Errors
    ///
    /// [`StoreError::AheadOfLog`] if the log ends before it.
    pub fn check_position(&self, at: Seq) -> Result<(), StoreError> {
        let tail = self.tail;
        if at > tail {
            return Err(StoreError::AheadOfLog { at, tail });
        }
        Ok(())
    }
}

/// Keys of threads: one key, or all with a prefix. It is plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPattern {
    /// This key.
    Key(String),
    /// All keys with this prefix.
    Prefix(String),
}

impl KeyPattern {
    /// Whether the pattern matches this key.
    pub fn covers(&self, key: &str) -> bool {
        match self {
            Self::Key(one) => key == one,
            Self::Prefix(prefix) => key.starts_with(prefix),
        }
    }
}

/// Which threads are listed or found. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFilter {
    /// Only threads of this status.
    pub status: Option<ThreadStatus>,
    /// Only threads whose last own run names this agent.
    pub agent: Option<String>,
    /// Only threads that changed at this instant or later.
    pub since: Option<Timestamp>,
    /// Only threads in which something waits for a person, or may: those of
    /// [`WaitIndex::waiting`](crate::WaitIndex::waiting).
    pub may_wait: bool,
}

impl ThreadFilter {
    /// Whether it accepts a thread whose last own run names this agent, and in which something waits or
    /// may.
    pub fn accepts(&self, thread: &Thread, agent: Option<&str>, may_wait: bool) -> bool {
        let changed = thread.updated_at.unwrap_or(thread.created_at);
        self.status.is_none_or(|status| thread.status == status)
            && self.since.is_none_or(|since| changed >= since)
            && (self.agent.is_none() || self.agent.as_deref() == agent)
            && (may_wait || !self.may_wait)
    }
}

/// A page of a list: the most recently changed first.
#[derive(Clone, Debug, Default)]
pub struct ThreadRows {
    /// Only threads after the one with this [`change`](ThreadRow::change) in the list.
    pub after: Option<u64>,
    /// Only threads whose key matches this.
    pub key: Option<KeyPattern>,
    /// Only these threads.
    pub filter: ThreadFilter,
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

    /// Deletes a thread with all its data, and its sidecar [objects](crate::ObjectTable). With `tail`, only
    /// if its log still ends there.
    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
        tail: Option<Seq>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The threads with an execution to resume or a trigger to answer.
    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>>;
}
