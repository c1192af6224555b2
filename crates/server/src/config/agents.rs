//! The configuration of agents.

use super::remote::RemoteConfig;
use super::template::PromptTemplate;
use runtime::WorkerPolicy;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use upp::ToolChoice;

/// An agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSettings {
    /// The name of its model; empty for a remote agent and for an agent with workers.
    pub model: String,
    /// The remote agent that it forwards to.
    pub remote: Option<RemoteConfig>,
    /// The limits of its steps, if workers answer them.
    pub worker: Option<WorkerPolicy>,
    /// Its purpose, for people and for agents that hand over to it.
    pub description: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// A file with the system prompt.
    pub system_file: Option<PathBuf>,
    /// Its tools.
    pub tools: Vec<ToolRef>,
    /// Tools whose results clients send.
    pub external: Vec<ExternalTool>,
    /// Agents it calls as tools.
    pub subagents: Vec<SubagentConfig>,
    /// Agents it may hand the conversation over to, by name.
    pub handoffs: Vec<String>,
    /// Tools whose calls need an approval.
    pub requires_approval: BTreeSet<ToolRef>,
    /// Whether the model must call a tool in its first response to an input.
    pub tool_choice: ToolChoice,
    /// Its strategy.
    pub strategy: StrategyConfig,
    /// Maximum number of tool rounds; unbounded when absent.
    pub max_tool_rounds: Option<NonZeroU32>,
    /// The JSON Schema of the final answer.
    pub structure: Option<Value>,
    /// A file with the JSON Schema of the final answer.
    pub structure_file: Option<PathBuf>,
    /// The middleware of its requests, the outermost first.
    pub middleware: Vec<MiddlewareConfig>,
    /// When a summary represents older runs of its threads.
    pub compaction: Option<CompactionConfig>,
    /// Provider-native parameters, passed unchanged; they override the model's.
    pub params: Map<String, Value>,
}

/// A reference to a tool, or to all tools of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolRef {
    /// A tool by its name.
    Named(String),
    /// `mcp:SERVER`: all tools of a server.
    Server(String),
    /// `mcp:SERVER/TOOL`: one tool, by its name on the server.
    OfServer {
        /// The server.
        server: String,
        /// The tool, without the prefix.
        tool: String,
    },
}

impl ToolRef {
    /// Reads a reference.
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix("mcp:") {
            None => Self::Named(text.to_owned()),
            Some(rest) => match rest.split_once('/') {
                None => Self::Server(rest.to_owned()),
                Some((server, tool)) => Self::OfServer {
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                },
            },
        }
    }

    /// The MCP server of the reference.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Named(_) => None,
            Self::Server(server) | Self::OfServer { server, .. } => Some(server),
        }
    }
}

impl std::fmt::Display for ToolRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Server(server) => write!(f, "mcp:{server}"),
            Self::OfServer { server, tool } => write!(f, "mcp:{server}/{tool}"),
        }
    }
}

/// A tool whose result a client sends: a run that calls it waits for the result.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalTool {
    /// Its name.
    pub name: String,
    /// Shown to the model.
    pub description: String,
    /// A JSON Schema whose root is an object.
    pub parameters: Value,
    /// A JSON Schema of the results; any value if absent.
    pub result: Option<Value>,
}

/// An agent that is called as a tool (UAP §8.2).
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentConfig {
    /// The name of the agent that runs.
    pub agent: String,
    /// The tool's name.
    pub name: String,
    /// Shown to the model.
    pub description: String,
    /// A JSON Schema whose root is an object.
    pub parameters: Value,
    /// The template of the sub-agent's message, filled in with the arguments.
    pub prompt: PromptTemplate,
    /// Whether the caller's stream shows the sub-agent's events.
    pub propagate_events: bool,
}

/// The strategy of an agent (UAP §5).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StrategyConfig {
    /// Model and tools in turn.
    Loop {
        /// Maximum number of tool rounds.
        max_iterations: Option<NonZeroU32>,
    },
    /// Reason, act, observe.
    React {
        /// Maximum number of steps of a run.
        max_steps: Option<NonZeroU32>,
        /// The prompt for the model's reasoning before it acts.
        reasoning_prompt: Option<String>,
    },
    /// Plan first, then execute.
    Plan {
        /// Maximum number of steps of a plan.
        max_plan_steps: Option<NonZeroU32>,
        /// Whether the model plans again when a step fails. Default true.
        #[serde(default = "yes")]
        allow_replan: bool,
        /// The JSON Schema of a plan.
        plan_schema: Option<Value>,
    },
}

impl Default for StrategyConfig {
    fn default() -> Self {
        Self::Loop {
            max_iterations: None,
        }
    }
}

impl StrategyConfig {
    /// The strategy's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Loop { .. } => "loop",
            Self::React { .. } => "react",
            Self::Plan { .. } => "plan",
        }
    }
}

/// When a summary represents the older runs of a thread, and its author.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionConfig {
    /// Maximum number of tokens of a step's messages.
    pub at_tokens: u64,
    /// Number of the latest finished runs that stay.
    pub keep_runs: usize,
    /// The name of the model that writes the summary.
    pub model: String,
    /// The model's instructions, placed above the conversation.
    pub prompt: Option<String>,
    /// Parameters of the model's call.
    pub params: Map<String, Value>,
}

impl CompactionConfig {
    /// The number of runs that stay if the configuration has none.
    pub const KEEP_RUNS: usize = 3;
}

/// A middleware of an agent (UAP §9).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MiddlewareConfig {
    /// Logs the beginning and the end of requests.
    Logging {
        /// The level of its log lines.
        #[serde(default)]
        level: LevelConfig,
        /// Whether to log messages in full; they may be confidential.
        #[serde(default)]
        include_messages: bool,
        /// Whether to log the duration of a request.
        #[serde(default = "yes")]
        include_timing: bool,
    },
    /// Clears old tool outputs.
    PruneToolOutputs {
        /// Maximum number of tokens of a conversation.
        usable: Option<u64>,
        /// Number of the latest tokens whose outputs are not cleared.
        protect_recent: Option<u64>,
        /// The text that replaces a cleared output.
        placeholder: Option<String>,
    },
    /// Keeps the latest messages.
    SlidingWindow {
        /// Maximum number of messages.
        max_messages: NonZeroUsize,
    },
    /// Replaces the older part of a long conversation by a summary.
    Summarise {
        /// The name of the model that writes the summary.
        model: String,
        /// Number of tokens from which a conversation is summarised.
        threshold: Option<u64>,
        /// Number of the latest messages that are not summarised.
        keep_recent: Option<usize>,
        /// The model's instructions, placed above the conversation.
        prompt: Option<String>,
        /// Parameters of the model's call.
        #[serde(default)]
        params: Map<String, Value>,
    },
}

impl MiddlewareConfig {
    /// The layer's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Logging { .. } => "logging",
            Self::PruneToolOutputs { .. } => "prune-tool-outputs",
            Self::SlidingWindow { .. } => "sliding-window",
            Self::Summarise { .. } => "summarise",
        }
    }
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelConfig {
    /// Details.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// Possible problems.
    Warn,
    /// Failures.
    Error,
}

fn yes() -> bool {
    true
}
