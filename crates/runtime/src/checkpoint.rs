//! The runtime's database as a store of checkpoints (UAP §12.4.6).
//!
//! An agent that runs in memory can keep its checkpoints beside the threads, in one database with
//! one backup. What an agent does *under* the runtime needs none: there the log has each step.
//!
//! ```
//! use agents::checkpoint::{CheckpointStore, Checkpoints};
//! use agents::{Agent, AgentOptions, AgentState};
//! use loomline_runtime::checkpoint::StoreCheckpoints;
//! use loomline_runtime::{MemoryStore, Store};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store: Arc<dyn Store> = Arc::new(MemoryStore::new()); // or `stores::SqliteStore`
//! let checkpoints = Arc::new(StoreCheckpoints::new(store, "acme".into()));
//!
//! let mut options = AgentOptions::new("echo", Arc::new(upp::Scripted::new()));
//! options.checkpoints = Some(Checkpoints::new(checkpoints.clone()));
//! options.session_id = Some("monday".to_owned());
//! let agent = Agent::new(options.clone())?;
//! agent.ask("Hello", AgentState::initial()).await?;
//!
//! options.checkpoints.unwrap().flush().await; // only before the process ends
//! let saved = checkpoints.load("monday").await?.ok_or("a checkpoint")?;
//! assert_eq!(AgentState::from_json(&saved)?.messages().len(), 2);
//! # Ok(())
//! # }
//! ```

use crate::store::{Store, StoreError, TenantId};
pub use agents::checkpoint::CheckpointMetadata;
use agents::checkpoint::{CheckpointError, CheckpointStore};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// What a store keeps of agents that run in memory: the latest state of each session, by tenant.
///
/// Checkpoints are no part of any thread and of no log: a save replaces the one before at once or
/// not at all, and what it replaced is gone. A state comes out as it went in, to the byte. A session
/// may be any text; two tenants may use the same. [`suite`](crate::suite) holds every store to this.
pub trait CheckpointTable: Send + Sync {
    /// Replaces the checkpoint of the session that `about` names.
    fn save<'a>(
        &'a self,
        tenant: &'a TenantId,
        about: CheckpointMetadata,
        state: String,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The session's state; none when nothing was saved.
    fn load<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// What is known of the session's state, without reading that.
    fn load_metadata<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointMetadata>, StoreError>>;

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

/// A tenant's checkpoints in a runtime's store, as agents use them.
#[derive(Clone)]
pub struct StoreCheckpoints {
    store: Arc<dyn Store>,
    tenant: TenantId,
}

impl StoreCheckpoints {
    /// The checkpoints of a tenant in a store. Nothing is touched yet.
    pub fn new(store: Arc<dyn Store>, tenant: TenantId) -> Self {
        Self { store, tenant }
    }
}

impl CheckpointStore for StoreCheckpoints {
    fn save<'a>(
        &'a self,
        session_id: &'a str,
        state: String,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        Box::pin(async move {
            let about = CheckpointMetadata::of(session_id, &state)?;
            let saved = self.store.checkpoints().save(&self.tenant, about, state);
            saved.await.map_err(CheckpointError::store)
        })
    }

    fn load<'a>(
        &'a self,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, CheckpointError>> {
        Box::pin(async move {
            let loaded = self.store.checkpoints().load(&self.tenant, session_id);
            loaded.await.map_err(CheckpointError::store)
        })
    }

    fn load_metadata<'a>(
        &'a self,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointMetadata>, CheckpointError>> {
        Box::pin(async move {
            let table = self.store.checkpoints();
            let loaded = table.load_metadata(&self.tenant, session_id);
            loaded.await.map_err(CheckpointError::store)
        })
    }

    fn delete<'a>(&'a self, session_id: &'a str) -> BoxFuture<'a, Result<(), CheckpointError>> {
        Box::pin(async move {
            let deleted = self.store.checkpoints().forget(&self.tenant, session_id);
            deleted.await.map_err(CheckpointError::store)
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, CheckpointError>> {
        Box::pin(async move {
            let listed = self.store.checkpoints().sessions(&self.tenant);
            listed.await.map_err(CheckpointError::store)
        })
    }
}
