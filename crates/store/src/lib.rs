//! The contract between the runtime and a store, with the types that both need.
//!
//! Read [`Store`] first. This crate has its types, [`MemoryStore`], which has no durable data, and
//! behind the feature `suite` the tests that every store passes. Durable stores are in the crate
//! `stores`. Neither crate depends on the engine.

mod checkpoints;
mod error;
mod index;
mod limit;
mod log;
mod memory;
mod nodes;
pub mod objects;
mod quota;
pub mod rows;
mod run;
pub mod search;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
mod threads;
pub mod waits;

pub use checkpoints::{CheckpointRow, CheckpointTable};
pub use error::{KeyError, StoreError};
pub use index::{FoundExecution, Landmark, LogIndex, Side};
pub use limit::{LimitKind, LimitReached};
pub use log::{
    Append, Appended, Created, Epoch, EventLog, Filter, Head, LargeRecord, Logged, NewRecord,
    PAGE_BYTES, PageSize, Token,
};
pub use memory::MemoryStore;
pub use nodes::{DueSearch, Hint, Lease, NodeId, NodeTable, Ownership};
pub use objects::ObjectTable;
pub use quota::{Quotas, Refusals, StorageLimits, StorageUsage};
pub use run::{ParentRun, Run, inherited};
pub use search::TextIndex;
pub use threads::{KeyPattern, TenantId, ThreadFilter, ThreadRow, ThreadRows, ThreadTable};
pub use waits::{WaitIndex, WaitingRow, WaitingRows};

use futures_util::future::BoxFuture;

/// A store: logs of threads, the nodes that run them, their index, their rows, their full-text index, the list of threads
/// that may have pending calls or open requests, and a tenant's sidecar objects.
///
/// The suite (feature `suite`) tests every implementation against this.
pub trait Store: EventLog + NodeTable + LogIndex + ThreadTable + TextIndex + WaitIndex {
    /// The sidecar objects.
    fn objects(&self) -> &dyn ObjectTable;

    /// The checkpoints of agents that run in memory.
    fn checkpoints(&self) -> &dyn CheckpointTable;

    /// The usage of each tenant that has stored something. Reads no thread.
    fn usage(&self) -> BoxFuture<'_, Result<Vec<(TenantId, StorageUsage)>, StoreError>>;

    /// Writes out what is buffered and closes. Later calls answer [`StoreError::Closed`].
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}
