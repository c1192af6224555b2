//! Checkpoints of agents that run in memory, beside the threads (UAP §12.4).

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
    /// How many steps the state has taken.
    pub step: u64,
    /// The agent, if the state names it.
    pub agent_id: Option<String>,
}

/// What a store keeps of agents that run in memory: the latest state of each session, by tenant.
///
/// Checkpoints are no part of any thread and of no log: a save replaces the one before at once or
/// not at all, and what it replaced is gone. A state comes out as it went in, to the byte. A session
/// may be any text; two tenants may use the same. The suite holds every store to this.
pub trait CheckpointTable: Send + Sync {
    /// Replaces the checkpoint of the session that `about` names.
    fn save<'a>(
        &'a self,
        tenant: &'a TenantId,
        about: CheckpointRow,
        state: String,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The session's state; none when nothing was saved.
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

    /// Forgets the session; one that is not there is no error.
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
