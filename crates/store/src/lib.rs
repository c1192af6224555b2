//! The store contract: what the runtime asks of a store, and what a store needs to know for that.
//!
//! Read [`Store`] first. This crate has its types, [`MemoryStore`], which keeps everything in memory,
//! and behind the feature `suite` the tests that every store passes. Durable stores are in the crate
//! `stores`; neither they nor this crate know the engine.

mod checkpoints;
mod error;
mod index;
mod limit;
mod log;
mod memory;
pub mod objects;
mod quota;
mod run;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
mod threads;

pub use checkpoints::{CheckpointRow, CheckpointTable};
pub use error::{KeyError, StoreError};
pub use index::{Landmark, Ran};
pub use limit::{LimitKind, LimitReached};
pub use log::{
    Append, Claim, Created, Epoch, Filter, Head, LargeRecord, Logged, NewRecord, PAGE_BYTES,
    PageSize, Token,
};
pub use memory::MemoryStore;
pub use objects::ObjectTable;
pub use quota::{Quotas, Refusals, StorageLimits, Usage};
pub use run::{ParentRun, Run, inherited};
pub use threads::{Page, TenantId, ThreadRow};

use futures_util::future::BoxFuture;
use timeline::{Removed, Seq, ThreadId};

/// A store of threads: an append-only log each, and what can be looked up in it.
///
/// Every method is atomic. What a call has answered is durable: a store that is opened again has
/// it. The suite (feature `suite`) holds every implementation to this.
pub trait Store: Send + Sync {
    /// Finds the tenant's thread by the key in `first`, or makes it with these first records. Of
    /// any number of callers at once, exactly one makes it (EK-2), and has claimed it with that.
    ///
    /// `first` begins with the `thread.created` and `context.created` events of the new thread. The
    /// token is that of what `first` goes on with; it is kept with a thread that is made.
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
    ) -> BoxFuture<'a, Result<Created, StoreError>>;

    /// Finds a thread by its key.
    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>>;

    /// Finds a thread by its id, whoever asks; for following forks and for recovery.
    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>>;

    /// Lists the tenant's threads.
    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: Page,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>>;

    /// The threads that are forked from this one itself, in the order they were made.
    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>>;

    /// Deletes a thread, everything of it, and the [objects](ObjectTable) that lie beside it.
    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Where a thread's log stands, without a claim: for readers. Costs what a claim costs.
    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>>;

    /// Becomes the only writer of a thread. Costs what the running step holds, not the thread.
    fn claim<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Appends all records, or none: refused when the claim is void or the log ends elsewhere.
    /// Answers with the new end of the log, once that is durable.
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, StoreError>>;

    /// What was answered to this token on this thread, if it was used.
    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Reads a page of the records after `after`, in order: at most `limit` records, and at most
    /// [`PAGE_BYTES`] unless one record alone is larger. Only an empty page means that there are no
    /// more.
    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>>;

    /// Where in the thread's own log something stands: the event that made it. What a fork has of
    /// its parent is in the parent's log.
    fn place_of<'a>(
        &'a self,
        thread: &'a ThreadId,
        landmark: Landmark<'a>,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>>;

    /// The places, before this one in the thread's own log, of messages that were said to the
    /// agents: kept, or answered by an execution. The last comes first.
    fn triggers_before<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>>;

    /// The same after a place. The first comes first.
    fn triggers_after<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>>;

    /// The last execution that began before this place of the thread's own log.
    fn run_before<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
    ) -> BoxFuture<'a, Result<Option<Ran>, StoreError>>;

    /// The first execution that began after this place of the thread's own log.
    fn run_after<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
    ) -> BoxFuture<'a, Result<Option<Ran>, StoreError>>;

    /// Which of these the thread's own log has removed, and where.
    fn removals<'a>(
        &'a self,
        thread: &'a ThreadId,
        of: Vec<Removed>,
    ) -> BoxFuture<'a, Result<Vec<(Removed, Seq)>, StoreError>>;

    /// The threads with an execution to resume or a trigger to answer.
    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>>;

    /// What each tenant stores that has stored something. Reads no thread.
    fn usage(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Usage)>, StoreError>>;

    /// The checkpoints that lie beside the threads.
    fn checkpoints(&self) -> &dyn CheckpointTable;

    /// The objects that lie beside the threads.
    fn objects(&self) -> &dyn ObjectTable;

    /// Writes out what is buffered and closes. Later calls answer [`StoreError::Closed`].
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}
