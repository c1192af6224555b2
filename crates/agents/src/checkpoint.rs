//! Checkpoints: a state saved after every step (UAP §12.4).
//!
//! ```
//! use loomline_agents::checkpoint::{Checkpoints, MemoryCheckpoints};
//! use loomline_agents::{Agent, AgentOptions, AgentState};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let checkpoints = Checkpoints::from(MemoryCheckpoints::new());
//! let mut options = AgentOptions::new("echo", Arc::new(upp::Scripted::new()));
//! options.checkpoints = Some(checkpoints.clone());
//! options.session_id = Some("my-session".to_owned());
//! let agent = Agent::new(options)?;
//! agent.ask("Hello", AgentState::initial()).await?;
//!
//! checkpoints.flush().await; // before the process ends
//! let state = match checkpoints.store().load("my-session").await? {
//!     Some(saved) => AgentState::from_json(&saved)?,
//!     None => AgentState::initial(),
//! };
//! let resumed = agent.ask("Go on", state).await?;
//! assert_eq!(resumed.state.messages().len(), 4);
//! # Ok(())
//! # }
//! ```

mod error;
mod file;
mod memory;
mod saver;
#[doc(hidden)]
pub mod suite;

pub use error::CheckpointError;
pub use file::{Compression, FileCheckpointOptions, FileCheckpoints};
pub use memory::MemoryCheckpoints;
pub use saver::Checkpoints;

use crate::id;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The metadata of a checkpoint (UAP §12.4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointMetadata {
    /// The session, as the application named it.
    pub session_id: String,
    /// The checkpoint's own id, a random UUID (v4).
    pub checkpoint_id: String,
    /// When it was saved.
    pub timestamp: jiff::Timestamp,
    /// Number of steps of the state.
    pub step: u64,
    /// The agent, where the state's metadata names it as `agentId`; agents that save do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// The fields that are read from a saved state.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "version")]
    _version: String,
    step: u64,
    metadata: serde_json::Map<String, Value>,
}

impl CheckpointMetadata {
    /// The metadata of a new checkpoint of this `AgentStateJSON`, saved now. Fails if the text is
    /// no JSON of a state; its messages are skipped without parsing.
    pub fn of(session_id: &str, state: &str) -> Result<Self, CheckpointError> {
        let head: Head = serde_json::from_str(state).map_err(CheckpointError::NotAState)?;
        let agent_id = head.metadata.get("agentId").and_then(Value::as_str);
        Ok(Self {
            session_id: session_id.to_owned(),
            checkpoint_id: id::random().to_string(),
            timestamp: jiff::Timestamp::now(),
            step: head.step,
            agent_id: agent_id.map(ToOwned::to_owned),
        })
    }
}

/// Stores the latest state of each session (UAP §12.4.1).
///
/// States are texts in the form `AgentStateJSON`, which a store must not change; parse them with
/// [`AgentState::from_json`](crate::AgentState::from_json). A session id may be any text. Calls
/// come from several tasks concurrently. A save replaces the session's checkpoint atomically. An
/// agent never saves one session twice at the same time; see [`Checkpoints`].
///
/// Every save has the whole state, as the specification requires, so a run of n steps writes O(n²)
/// bytes. For long threads use the runtime, whose log is written once.
pub trait CheckpointStore: Send + Sync {
    /// Replaces the session's checkpoint.
    fn save<'a>(
        &'a self,
        session_id: &'a str,
        state: String,
    ) -> BoxFuture<'a, Result<(), CheckpointError>>;

    /// The session's checkpoint; none if nothing was saved. An unreadable checkpoint is an error,
    /// never none.
    fn load<'a>(
        &'a self,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, CheckpointError>>;

    /// Reads the metadata of the session's checkpoint; none if there is no checkpoint.
    fn load_metadata<'a>(
        &'a self,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointMetadata>, CheckpointError>>;

    /// Deletes the session's checkpoint. An unknown session is no error.
    fn delete<'a>(&'a self, session_id: &'a str) -> BoxFuture<'a, Result<(), CheckpointError>>;

    /// The sessions that have a checkpoint, sorted.
    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, CheckpointError>>;
}
