//! The work of an operator on a durable store: its check, its proofs, its sizes, and erasing.
//!
//! [`DurableStore`] is all of it, with the [`Store`] that the runtime works with.

mod evidence;
mod fault;
mod health;
mod line;
mod removed;
mod samples;
mod space;
mod transfer;

pub use evidence::{Chain, ChainBlock, ChainEnd, Compared};
pub use fault::{Remedy, StoreFault};
pub use health::StoreHealth;
pub use line::Transferred;
pub use samples::{FoundSamples, Samples, Searched};
pub use space::{StoreStorage, TenantStorage, ThreadStorage};
pub use transfer::TransferError;

pub(crate) use evidence::{Chaining, StoredNumbers};
pub(crate) use health::{Health, violation};
#[cfg(feature = "postgres")]
pub(crate) use removed::ValueRange;
pub(crate) use removed::{NewRanges, Plan, RowKey, RowValue};
pub(crate) use samples::{InValues, Matcher, SAMPLE};
pub(crate) use space::{kind_of_event, kind_of_table};
pub(crate) mod lines {
    pub(crate) use super::line::{
        CheckpointLine, ContentLine, EventsLine, Line, ObjectLine, TenantLine, ThreadLine,
        TokenLine,
    };
    pub(crate) use super::transfer::{LineReader, LineWriter, MAX_LINE, next, whole};
}

use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use store::{Store, StoreError, TenantId, ThreadRow};
use timeline::ThreadId;

/// Whether a store is served or only looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenMode {
    /// Served: it can be written.
    #[default]
    ReadWrite,
    /// For reading only. Nothing is created or migrated. Writes fail with [`StoreError::InUse`].
    ReadOnly,
}

/// How large a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Threads.
    pub n_threads: u64,
    /// Events in all logs.
    pub n_events: u64,
    /// The bytes of the events.
    pub event_bytes: u64,
    /// The schema's version.
    pub schema_version: u64,
}

/// An execution that was ended because too many processes died with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoisonedRun {
    /// The tenant.
    pub tenant: String,
    /// The key of its thread.
    pub key: String,
    /// Its id.
    pub execution_id: String,
}

/// Counters of a store's work since it was opened, and its size on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The bytes of the file; 0 if the store is a database server.
    pub file_bytes: u64,
    /// The bytes of the write-ahead log; 0 if the store is a database server. Far above 64 MiB, a reader prevents its
    /// truncation.
    pub wal_bytes: u64,
    /// Transactions committed.
    pub n_commits: u64,
    /// Requests in them; over `n_commits`, how many share one.
    pub n_requests: u64,
    /// Commits and writes that failed.
    pub n_failures: u64,
    /// Operations that found damage.
    pub n_damaged: u64,
    /// Whether the store can do its work.
    pub health: StoreHealth,
}

/// The counts of an erasure of removed entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedEntries {
    /// Removed items, steps and compactions whose content is erased.
    pub entries: u64,
    /// Blocks that were written anew.
    pub blocks: u64,
    /// Removed entries that stay, because a fork was made before their removal and shows them.
    pub shown_by_forks: u64,
    /// Entries that stay, because only a fork has removed them: they are in the log of its parent.
    pub in_parents: u64,
}

/// The counts of an erasure of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedTenant {
    /// Objects, such as files and assistants.
    pub objects: u64,
    /// Checkpoints of agents that run in memory.
    pub checkpoints: u64,
}

/// The space that was returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// The bytes of the free pages that the file has no more.
    pub bytes: u64,
    /// Whether the write-ahead log has no deleted content. Another process that reads the store can prevent it. None if
    /// the log is that of a database server.
    pub is_log_empty: Option<bool>,
}

/// A [`Store`] with the work of an operator.
pub trait DurableStore: Store + Upkeep + Evidence + Erasure {}

impl<S: Store + Upkeep + Evidence + Erasure> DurableStore for S {}

/// The state of a store.
pub trait Upkeep {
    /// Whether it can do its work. While commits fail, one is tried once per second at most.
    fn health(&self) -> BoxFuture<'_, StoreHealth>;

    /// Counters of its work, and its size on the disk. Reads nothing from the database.
    fn activity(&self) -> Activity;

    /// Its faults; empty if it has none. Reads all data, as it was at one moment. A database server needs the privilege
    /// `TEMPORARY` for it.
    fn findings(&self) -> BoxFuture<'_, Result<Vec<StoreFault>, StoreError>>;

    /// Rebuilds the nine tables, the full-text index and the list of what waits from the log. Other writes wait for it.
    fn rebuild_tables(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The last 20 executions at most that were ended because processes died with them, newest first. Reads all
    /// executions.
    fn poisoned(&self) -> BoxFuture<'_, Result<Vec<PoisonedRun>, StoreError>>;

    /// How large it is.
    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>>;

    /// The space of the whole store.
    fn storage(&self) -> BoxFuture<'_, Result<StoreStorage, StoreError>>;

    /// The largest threads of a tenant.
    fn largest_threads<'a>(
        &'a self,
        tenant: &'a TenantId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ThreadStorage>, StoreError>>;

    /// The content of a thread. Reads its log.
    fn thread_storage<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<ThreadStorage, StoreError>>;
}

/// The chains of the logs.
pub trait Evidence {
    /// The chain of a thread's log, checked.
    fn chain<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Chain, StoreError>>;

    /// Where the chains of all threads end, at one moment.
    fn chain_ends(&self) -> BoxFuture<'_, Result<Vec<ChainEnd>, StoreError>>;

    /// Compares a thread with where it was sealed.
    fn compare(&self, sealed: ChainEnd) -> BoxFuture<'_, Result<Compared, StoreError>>;
}

/// Erasing: removed messages of threads that stay, all data of a tenant, and the space of what was deleted.
pub trait Erasure {
    /// The threads of a tenant that changed first, after a place in the order of changes.
    fn oldest_threads<'a>(
        &'a self,
        tenant: &'a TenantId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>>;

    /// The threads of a tenant with removed entries.
    fn with_removed<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<ThreadId>, StoreError>>;

    /// Erases the content of the removed items and steps of a thread, and of its withdrawn compactions. The chain of
    /// its log still holds. Other writes go between the blocks. An entry that a fork still shows stays, and so does one
    /// that is in the log of the thread's parent.
    fn erase_removed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<ErasedEntries, StoreError>>;

    /// The counts of [`erase_removed`](Self::erase_removed), if nothing is changed.
    fn erasable<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<ErasedEntries, StoreError>>;

    /// Erases the objects, contents and checkpoints of a tenant whose threads are deleted.
    fn erase_tenant<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<ErasedTenant, StoreError>>;

    /// Samples of what [`erase_removed`](Self::erase_removed) erases.
    fn samples_of_removed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Samples, StoreError>>;

    /// Samples of everything that a thread has.
    fn samples_of_thread<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Samples, StoreError>>;

    /// Samples of a tenant's objects, contents and checkpoints.
    fn samples_of_tenant<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Samples, StoreError>>;

    /// Searches for samples in everything that can be read, and in the files of a store that has its own. The files of a
    /// database server are not searched: its pages, its write-ahead log, its standby servers and its backups can still have
    /// erased content. Then [`Searched::has_read_files`] is false.
    fn search_for(&self, samples: Arc<Samples>) -> BoxFuture<'_, Result<Searched, StoreError>>;

    /// Announces deletions of threads with this number of bytes together. Their words are deleted in the way that is
    /// fastest for all of them, from the first one on.
    fn announce_deletions(&self, bytes: u64);

    /// Whether the space of deleted content may still have to be [reclaimed](Self::reclaim).
    fn has_deleted(&self) -> bool;

    /// Returns the space of deleted content, and its copies in a log of the store's own. Other writes go between the
    /// steps. Readers can prevent it: it is tried for some seconds. A database server does it by `VACUUM`: the space is
    /// used again, and the bytes of erased content can be in unused parts of pages until then.
    fn reclaim(&self) -> BoxFuture<'_, Result<Reclaimed, StoreError>>;

    /// Does what [`reclaim`](Self::reclaim) does, but tries only once. Each trial delays commits.
    fn reclaim_at_once(&self) -> BoxFuture<'_, Result<Reclaimed, StoreError>>;

    /// Whether space is returned without the store being written anew.
    fn returns_space(&self) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Writes the whole store anew. All other writes wait for it. It needs the size of the store twice on the disk. A
    /// database server does it by `VACUUM FULL`, one table after the other; readers of that table wait too.
    fn compact(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Copies of the store in the file system that still have what was erased.
    fn copies(&self) -> Vec<PathBuf>;
}
