//! A tool whose code is an agent (UAP §8.2, §8.4).

use super::Spawn;
use crate::agent::{Agent, AgentOptions};
use crate::error::{OptionsError, chain};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use upp::{Effect, Message, Model, Tool, ToolContext, ToolFailure, ToolOutput};

type Make =
    dyn Fn(Arc<dyn Model>, Arc<Map<String, Value>>) -> Result<Agent, OptionsError> + Send + Sync;

/// The agent behind a sub-agent tool (UAP §8.4). Clones share it.
#[derive(Clone)]
pub enum SubAgent {
    /// An agent with its own model, whatever its caller's model is.
    Fixed(Agent),
    /// An agent that is made for each call, with the caller's model and parameters.
    Inheriting(Arc<Make>),
}

impl SubAgent {
    /// A sub-agent with the model and the provider-native parameters of its caller. `options` is
    /// called at each call, with that call's model. If the options make no valid agent, the call
    /// gets an error result.
    pub fn inheriting(
        options: impl Fn(Arc<dyn Model>, Arc<Map<String, Value>>) -> AgentOptions
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self::Inheriting(Arc::new(move |model, params| {
            Agent::new(options(model, params))
        }))
    }

    /// The agent for one call.
    fn resolve(&self, context: &ToolContext) -> Result<Agent, ToolFailure> {
        match self {
            Self::Fixed(agent) => Ok(agent.clone()),
            Self::Inheriting(make) => {
                let model = context.parent_model.as_ref().ok_or_else(|| {
                    ToolFailure::new("The sub-agent has no model, and its caller has none either.")
                })?;
                make(Arc::clone(model), Arc::clone(&context.parent_params)).map_err(|error| {
                    ToolFailure::new(format!("The sub-agent can't be made: {}", chain(&error)))
                })
            }
        }
    }
}

impl From<Agent> for SubAgent {
    fn from(agent: Agent) -> Self {
        Self::Fixed(agent)
    }
}

impl std::fmt::Debug for SubAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(agent) => f.debug_tuple("Fixed").field(&agent.name()).finish(),
            Self::Inheriting(_) => f.write_str("Inheriting"),
        }
    }
}

/// Builds a sub-agent's prompt from the arguments of its call.
pub type Prompt = Arc<dyn Fn(&Value) -> Result<Message, ToolFailure> + Send + Sync>;

/// The options of a sub-agent tool, with everything that the model sees of it (UAP §8.2).
#[derive(Clone)]
pub struct SubAgentTool {
    /// The tool's name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// A JSON Schema for the model; its root is an object.
    pub parameters: Value,
    /// The agent.
    pub agent: SubAgent,
    /// The sub-agent's type in events and traces. Default: the tool's name.
    pub subagent_type: Option<String>,
    /// Makes the task.
    pub prompt: Prompt,
    /// Whether the parent's stream has the events of the run.
    pub propagate_events: bool,
}

impl SubAgentTool {
    /// A sub-agent whose events are shown.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        agent: impl Into<SubAgent>,
        prompt: impl Fn(&Value) -> Result<Message, ToolFailure> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
            agent: agent.into(),
            subagent_type: None,
            prompt: Arc::new(prompt),
            propagate_events: true,
        }
    }
}

impl std::fmt::Debug for SubAgentTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubAgentTool")
            .field("name", &self.name)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

/// Makes a tool that runs a sub-agent on each call and returns its text. A failure of the sub-agent
/// is an error result for the caller's model (UAP §8.7 SHOULD 1). The tool is idempotent: a host
/// that runs sub-agents on threads finds the run again after a crash.
///
/// ```
/// use loomline_agents::{Agent, AgentOptions, AgentState, SubAgent, SubAgentTool, subagent_tool};
/// use serde_json::json;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let helper = subagent_tool(SubAgentTool::new(
///     "helper",
///     "Does one task.",
///     json!({"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}),
///     SubAgent::inheriting(|model, _params| AgentOptions::new("helper", model)),
///     |arguments| Ok(arguments["task"].as_str().unwrap_or_default().into()),
/// ));
/// let mut options = AgentOptions::new("lead", Arc::new(upp::Scripted::new()));
/// options.tools = vec![helper];
/// let result = Agent::new(options)?.generate("helper rest", AgentState::initial()).await?;
/// assert_eq!(result.turn.tool_executions[0].result, "You said: rest");
/// assert_eq!(result.state.subagent_traces().len(), 1);
/// # Ok(())
/// # }
/// ```
pub fn subagent_tool(definition: SubAgentTool) -> Tool {
    let SubAgentTool {
        name,
        description,
        parameters,
        agent,
        subagent_type,
        prompt,
        propagate_events,
    } = definition;
    let kind: Arc<str> = subagent_type.unwrap_or_else(|| name.clone()).into();
    let run = move |arguments: Value, context: ToolContext| -> BoxFuture<'static, ToolOutput> {
        let (agent, prompt, kind) = (agent.clone(), Arc::clone(&prompt), Arc::clone(&kind));
        async move {
            let spawn = Spawn {
                subagent_type: kind,
                propagate: propagate_events,
                ..Spawn::new(agent.resolve(&context)?, prompt(&arguments)?, &context)
            };
            match spawn.run(&context).await.turn {
                Ok(turn) => Ok(Value::String(turn.response.joined_text())),
                Err(error) => Err(ToolFailure::new(format!(
                    "The sub-agent failed: {}",
                    chain(&error)
                ))),
            }
        }
        .boxed()
    };
    // What runs it on a thread of its own finds that run again; what runs it in memory says so.
    Tool::new(name, description, parameters, run).with_effect(Effect::Idempotent)
}
