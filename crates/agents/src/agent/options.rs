//! The options of an agent (UAP §4.2).

use crate::checkpoint::Checkpoints;
use crate::hooks::{AgentStrategy, NoHooks};
use crate::middleware::Middleware;
use crate::strategy::{ExecutionStrategy, Loop};
use serde_json::{Map, Value};
use std::sync::Arc;
use upp::{Model, Tool, ToolChoice, ToolUseStrategy};

/// The options of an agent (UAP §4.2): all options of a model call, passed on unchanged, and the
/// agent's own. Clones share their data.
#[derive(Clone)]
pub struct AgentOptions {
    /// The agent's name.
    pub name: String,
    /// The agent's id. Default: a random UUID (v4; UAP §3.4).
    pub id: Option<Arc<str>>,
    /// The model, bound to its provider.
    pub model: Arc<dyn Model>,
    /// Provider-native parameters.
    pub params: Arc<Map<String, Value>>,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The tools.
    pub tools: Vec<Tool>,
    /// Whether calls of unknown tools wait for outside results, as those of external tools do. Set
    /// it if the model is a remote agent, which has tools of its own. Otherwise the model gets an
    /// error result for an unknown tool.
    pub foreign_calls: bool,
    /// Whether the model must call one, in its first answer to an input.
    pub tool_choice: ToolChoice,
    /// The JSON Schema of the final answer.
    pub structure: Option<Arc<Value>>,
    /// Hooks around tool calls, and their limit (UAP §10.4). By default an agent has no limit.
    /// Start your own from [`ToolUseStrategy::unlimited`], as its `Default` has a limit.
    pub tool_strategy: ToolUseStrategy,
    /// How the agent runs (UAP §5).
    pub execution: Arc<dyn ExecutionStrategy>,
    /// Hooks around steps (UAP §10).
    pub strategy: Arc<dyn AgentStrategy>,
    /// Layers around requests, the outermost first (UAP §9).
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// The place where the state is saved after each step (UAP §12.4); none by default.
    pub checkpoints: Option<Checkpoints>,
    /// The session id, any text (UAP §12.4.2). It is stored in the state's metadata as `sessionId`
    /// (UAP §3.4). If there are checkpoints and no session is set, the state's session continues,
    /// else the agent generates one.
    pub session_id: Option<String>,
}

impl AgentOptions {
    /// A model and a name; no tools, no hooks, the unbounded loop (UAP §2.4).
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        Self {
            name: name.into(),
            id: None,
            model,
            params: Arc::default(),
            system: None,
            tools: Vec::new(),
            foreign_calls: false,
            tool_choice: ToolChoice::default(),
            structure: None,
            tool_strategy: ToolUseStrategy::unlimited(),
            execution: Arc::new(Loop::default()),
            strategy: Arc::new(NoHooks),
            middleware: Vec::new(),
            checkpoints: None,
            session_id: None,
        }
    }
}

impl std::fmt::Debug for AgentOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentOptions")
            .field("name", &self.name)
            .field("model", &self.model.model_id())
            .field("tools", &self.tools)
            .field("execution", &self.execution.name())
            .finish_non_exhaustive()
    }
}
