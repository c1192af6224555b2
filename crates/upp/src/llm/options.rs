//! The options of an [`Llm`](super::Llm) (UPP §2).

use crate::model::{Model, ToolChoice};
use crate::strategy::ToolUseStrategy;
use crate::tool::Tool;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The options of an [`Llm`](super::Llm) (UPP §2).
#[derive(Clone)]
pub struct LlmOptions {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The tools it may call; each name once.
    pub tools: Vec<Tool>,
    /// Whether it must call one. It holds for the first model call only, or the turn could not end.
    pub tool_choice: ToolChoice,
    /// Hooks and the limit; ten tool rounds unless set.
    pub tool_strategy: ToolUseStrategy,
    /// Provider-native parameters, passed unchanged.
    pub params: Map<String, Value>,
    /// The JSON Schema of the answer.
    pub structure: Option<Value>,
}

impl LlmOptions {
    /// Options with only a model.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            system: None,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            tool_strategy: ToolUseStrategy::default(),
            params: Map::new(),
            structure: None,
        }
    }
}

impl std::fmt::Debug for LlmOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlmOptions")
            .field("model", &self.model.model_id())
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
