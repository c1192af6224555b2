//! Checkpoints of agents that run in memory, stored separately from the threads (UAP §12.4).

use crate::{StoreError, TenantId};
use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// A checkpoint without its state (UAP §12.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRow {
    /// The session, as the application named it.
    pub session_id: String,
    /// The checkpoint's own id.
    pub checkpoint_id: String,
    /// When it was saved.
    pub timestamp: Timestamp,
    /// The number of steps before this state.
    pub step: u64,
    /// The agent, if the state names it.
    pub agent_id: Option<String>,
}

/// The latest state of each session of the agents that run in memory, by tenant.
///
/// Checkpoints belong to no thread and no log. A save atomically replaces the previous state, which is
/// not recoverable. A state is returned byte for byte. A session may be any text; two tenants may use
/// the same one. The suite tests every store against this.
pub trait CheckpointTable: Send + Sync {
    /// Replaces the checkpoint of the session that `about` names.
    fn save<'a>(
        &'a self,
        tenant: &'a TenantId,
        about: CheckpointRow,
        state: String,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The session's state; `None` if nothing was saved.
    fn load<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// The session's checkpoint without its state.
    fn row<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointRow>, StoreError>>;

    /// Deletes the session's checkpoint; succeeds if there is none.
    fn forget<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The tenant's sessions, sorted.
    fn sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;
}
