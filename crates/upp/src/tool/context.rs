//! The call's properties that a running tool can read (UAP §8.4).

use super::ToolCallId;
use crate::model::Model;
use crate::signal::Signal;
use serde_json::{Map, Value};
use std::any::Any;
use std::sync::Arc;

/// The call's properties that a running tool can read (UAP §8.4). Cloning shares.
#[derive(Clone)]
pub struct ToolContext {
    /// The call's id.
    pub tool_call_id: ToolCallId,
    /// Equal for every attempt at this call: derived from thread and call, never from the attempt.
    pub idempotency_key: Arc<str>,
    /// The calling agent's id.
    pub agent_id: Arc<str>,
    /// The id of the agent's state with this call at its end; empty without a state.
    pub state_id: Arc<str>,
    /// The caller's model, for tools that need one and have none configured.
    pub parent_model: Option<Arc<dyn Model>>,
    /// The caller's provider-native parameters (UAP `parentConfig`).
    pub parent_params: Arc<Map<String, Value>>,
    /// Whether a person or an application has approved this call ([`Tool`](super::Tool)'s
    /// `requires_approval`).
    pub approved: bool,
    /// Cancelled when the result is no longer needed.
    pub signal: Signal,
    /// A value that the caller passes to its tools, of a type both know. `agents` puts the object here
    /// that runs sub-agents.
    pub host: Option<Arc<dyn Any + Send + Sync>>,
}

impl ToolContext {
    /// A context without a caller: the key is the call's id, and there is nothing to inherit.
    pub fn new(tool_call_id: ToolCallId, signal: impl Into<Signal>) -> Self {
        Self {
            idempotency_key: Arc::clone(&tool_call_id.0),
            tool_call_id,
            agent_id: "".into(),
            state_id: "".into(),
            parent_model: None,
            parent_params: Arc::default(),
            approved: false,
            signal: signal.into(),
            host: None,
        }
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let model = self.parent_model.as_ref().map(|model| model.model_id());
        f.debug_struct("ToolContext")
            .field("tool_call_id", &self.tool_call_id)
            .field("idempotency_key", &self.idempotency_key)
            .field("agent_id", &self.agent_id)
            .field("state_id", &self.state_id)
            .field("parent_model", &model)
            .field("approved", &self.approved)
            .finish_non_exhaustive()
    }
}
