//! The runtime's database as a store of checkpoints (UAP §12.4.6).
//!
//! An agent that runs in memory can store its checkpoints in the database of the threads, with one
//! backup for both. An agent that runs under the runtime needs none, as the log has each step.
//!
//! ```
//! use agents::checkpoint::{CheckpointStore, Checkpoints};
//! use agents::{Agent, AgentOptions, AgentState};
//! use loomline_runtime::checkpoint::StoreCheckpoints;
//! use store::{MemoryStore, Store};
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

use agents::checkpoint::{CheckpointError, CheckpointMetadata, CheckpointStore};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use store::{CheckpointRow, Store, TenantId};

/// A tenant's checkpoints in a runtime's store.
#[derive(Clone)]
pub struct StoreCheckpoints {
    store: Arc<dyn Store>,
    tenant: TenantId,
}

impl StoreCheckpoints {
    /// The checkpoints of a tenant in a store, which is not accessed yet.
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
            let row = CheckpointRow {
                session_id: about.session_id,
                checkpoint_id: about.checkpoint_id,
                timestamp: about.timestamp,
                step: about.step,
                agent_id: about.agent_id,
            };
            let saved = self.store.checkpoints().save(&self.tenant, row, state);
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
            let found = self.store.checkpoints().row(&self.tenant, session_id);
            let row = found.await.map_err(CheckpointError::store)?;
            Ok(row.map(|row| CheckpointMetadata {
                session_id: row.session_id,
                checkpoint_id: row.checkpoint_id,
                timestamp: row.timestamp,
                step: row.step,
                agent_id: row.agent_id,
            }))
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
