//! What an agent is made of (UAP §4.2).

use crate::checkpoint::Checkpoints;
use crate::hooks::{AgentStrategy, NoHooks};
use crate::middleware::Middleware;
use crate::strategy::{ExecutionStrategy, Loop};
use serde_json::{Map, Value};
use std::sync::Arc;
use upp::{Model, Tool, ToolChoice, ToolUseStrategy};

/// What an agent is made of (UAP §4.2): all that a model call takes, passed through untouched, and
/// what makes it an agent. Cloning shares.
#[derive(Clone)]
pub struct AgentOptions {
    /// The agent's name.
    pub name: String,
    /// The agent's id; a random UUID (v4) unless it is given (UAP §3.4).
    pub id: Option<Arc<str>>,
    /// The model, bound to its provider.
    pub model: Arc<dyn Model>,
    /// Provider-native parameters.
    pub params: Arc<Map<String, Value>>,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The tools.
    pub tools: Vec<Tool>,
    /// Whether calls of other tools than these wait for results from outside, as the calls of external
    /// tools do. So it is where the model is an agent elsewhere, which has tools of its own; a model
    /// that calls a tool that there is not is told so.
    pub foreign_calls: bool,
    /// Whether the model must call one, in its first answer to an input.
    pub tool_choice: ToolChoice,
    /// The JSON Schema of the final answer.
    pub structure: Option<Arc<Value>>,
    /// Hooks around tool calls, and their limit (UAP §10.4). An agent has no limit unless it is
    /// given, so one's own begins with [`ToolUseStrategy::unlimited`], not with its default.
    pub tool_strategy: ToolUseStrategy,
    /// How the agent runs (UAP §5).
    pub execution: Arc<dyn ExecutionStrategy>,
    /// Hooks around steps (UAP §10).
    pub strategy: Arc<dyn AgentStrategy>,
    /// Layers around requests, the outermost first (UAP §9).
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// Where the state is saved after each step (UAP §12.4); nowhere unless it is given.
    pub checkpoints: Option<Checkpoints>,
    /// The session; put into the state's metadata as `sessionId` (UAP §3.4). Any text will do, as
    /// UAP §12.4.2 has it. Where checkpoints are kept and none is given, the session of the state
    /// goes on, or else one that is made for the agent.
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
