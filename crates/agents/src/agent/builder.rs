//! A builder of agents.

use super::{Agent, AgentOptions};
use crate::checkpoint::Checkpoints;
use crate::error::OptionsError;
use crate::hooks::AgentStrategy;
use crate::middleware::Middleware;
use crate::strategy::ExecutionStrategy;
use serde_json::{Map, Value};
use std::sync::Arc;
use upp::{Model, Tool, ToolChoice, ToolUseStrategy};

/// Puts an [`Agent`] together, one of its [options](AgentOptions) after another.
///
/// ```
/// use loomline_agents::{Agent, React};
///
/// let agent = Agent::builder("clerk", upp::Scripted::new())
///     .system("You are brief.")
///     .execution(React::default())
///     .build()?;
/// assert_eq!(agent.system(), Some("You are brief."));
/// # Ok::<(), loomline_agents::OptionsError>(())
/// ```
#[must_use = "nothing is made before `build`"]
#[derive(Clone, Debug)]
pub struct AgentBuilder {
    options: AgentOptions,
}

impl Agent {
    /// Starts an agent from a name and a model; all other options have defaults.
    pub fn builder(name: impl Into<String>, model: impl Model + 'static) -> AgentBuilder {
        AgentBuilder::of(AgentOptions::new(name, Arc::new(model)))
    }
}

impl AgentBuilder {
    /// Starts from these options.
    pub fn of(options: AgentOptions) -> Self {
        Self { options }
    }

    /// The agent's id, in place of a random one.
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.options.id = Some(id.into());
        self
    }

    /// The system prompt.
    pub fn system(mut self, text: impl Into<Arc<str>>) -> Self {
        self.options.system = Some(text.into());
        self
    }

    /// One more tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.options.tools.push(tool);
        self
    }

    /// More tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.options.tools.extend(tools);
        self
    }

    /// Whether the model must call a tool, in its first answer to an input.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.options.tool_choice = choice;
        self
    }

    /// Hooks around tool calls, and their limit.
    pub fn tool_strategy(mut self, hooks: ToolUseStrategy) -> Self {
        self.options.tool_strategy = hooks;
        self
    }

    /// Provider-native parameters.
    pub fn params(mut self, params: Map<String, Value>) -> Self {
        self.options.params = Arc::new(params);
        self
    }

    /// The JSON Schema of the final answer.
    pub fn structure(mut self, schema: Value) -> Self {
        self.options.structure = Some(Arc::new(schema));
        self
    }

    /// How the agent runs, in place of the unbounded loop.
    pub fn execution(mut self, strategy: impl ExecutionStrategy) -> Self {
        self.options.execution = Arc::new(strategy);
        self
    }

    /// Hooks around steps.
    pub fn hooks(mut self, hooks: impl AgentStrategy + 'static) -> Self {
        self.options.strategy = Arc::new(hooks);
        self
    }

    /// One more layer around requests, inside those before it.
    pub fn layer(mut self, layer: impl Middleware + 'static) -> Self {
        self.options.middleware.push(Arc::new(layer));
        self
    }

    /// Where the state is saved after each step.
    pub fn checkpoints(mut self, checkpoints: impl Into<Checkpoints>) -> Self {
        self.options.checkpoints = Some(checkpoints.into());
        self
    }

    /// The session id of the checkpoints.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.options.session_id = Some(id.into());
        self
    }

    /// Builds the agent.
    ///
    /// # Errors
    ///
    /// The errors of [`Agent::new`].
    pub fn build(self) -> Result<Agent, OptionsError> {
        Agent::new(self.options)
    }
}
