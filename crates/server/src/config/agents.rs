//! Agents: what they are made of.

use super::remote::RemoteConfig;
use super::template::PromptTemplate;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use upp::ToolChoice;

/// An agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSettings {
    /// The name of its model; empty where it is an agent elsewhere.
    pub model: String,
    /// The agent elsewhere that it is.
    pub remote: Option<RemoteConfig>,
    /// What it is for, for people and for agents that hand over to it.
    pub description: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// A file with the system prompt.
    pub system_file: Option<PathBuf>,
    /// Its tools.
    pub tools: Vec<ToolRef>,
    /// Tools that somebody else executes.
    pub external: Vec<ExternalTool>,
    /// Agents it calls as tools.
    pub subagents: Vec<SubagentConfig>,
    /// Agents it may hand the conversation over to, by name.
    pub handoffs: Vec<String>,
    /// Tools whose calls a person must allow.
    pub requires_approval: BTreeSet<ToolRef>,
    /// Whether the model must call a tool in its first answer to an input.
    pub tool_choice: ToolChoice,
    /// How it runs.
    pub strategy: StrategyConfig,
    /// How many rounds of tools may run; unbounded when absent.
    pub max_tool_rounds: Option<NonZeroU32>,
    /// The JSON Schema of the final answer.
    pub structure: Option<Value>,
    /// A file with the JSON Schema of the final answer.
    pub structure_file: Option<PathBuf>,
    /// Layers around its requests, the outermost first.
    pub middleware: Vec<MiddlewareConfig>,
    /// Provider-native parameters, passed unchanged; they win over the model's.
    pub params: Map<String, Value>,
}

/// A tool, or all tools of an MCP server, as a configuration names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolRef {
    /// A tool by its name.
    Named(String),
    /// `mcp:SERVER`: all tools of a server.
    Server(String),
    /// `mcp:SERVER/TOOL`: one tool, by the server's name of it.
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

    /// The MCP server it names.
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

/// A tool that somebody else executes: a run that comes to a call of it waits for the result.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalTool {
    /// Its name.
    pub name: String,
    /// Shown to the model.
    pub description: String,
    /// A JSON Schema whose root is an object.
    pub parameters: Value,
}

/// An agent that is called as a tool (UAP §8.2).
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentConfig {
    /// The agent that runs, by name.
    pub agent: String,
    /// The tool's name.
    pub name: String,
    /// Shown to the model.
    pub description: String,
    /// A JSON Schema whose root is an object.
    pub parameters: Value,
    /// What the agent is told, made of the arguments.
    pub prompt: PromptTemplate,
    /// Whether the caller's stream shows what happens inside.
    pub propagate_events: bool,
}

/// How an agent runs (UAP §5).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StrategyConfig {
    /// Model and tools in turn.
    Loop {
        /// How many rounds of tools may run.
        max_iterations: Option<NonZeroU32>,
    },
    /// Reason, act, observe.
    React {
        /// How many steps a run may have.
        max_steps: Option<NonZeroU32>,
        /// What the model is asked before it acts.
        reasoning_prompt: Option<String>,
    },
    /// Plan first, then execute.
    Plan {
        /// How many steps a plan may have.
        max_plan_steps: Option<NonZeroU32>,
        /// Whether there is another plan when a step fails; so unless it is said.
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

/// A layer around the requests of an agent (UAP §9).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MiddlewareConfig {
    /// Logs the beginning and the end of requests.
    Logging {
        /// The least important lines that are logged.
        #[serde(default)]
        level: LevelConfig,
        /// Whether messages are logged in full; they may be confidential.
        #[serde(default)]
        include_messages: bool,
        /// Whether the time a request took is logged.
        #[serde(default = "yes")]
        include_timing: bool,
    },
    /// Clears old tool outputs.
    PruneToolOutputs {
        /// How many tokens a conversation may have.
        usable: Option<u64>,
        /// How many of the latest tokens are left as they are.
        protect_recent: Option<u64>,
        /// What stands in place of an output.
        placeholder: Option<String>,
    },
    /// Keeps the latest messages.
    SlidingWindow {
        /// How many messages may stay.
        max_messages: NonZeroUsize,
    },
    /// Replaces the older part of a long conversation by a summary.
    Summarise {
        /// The name of the model that writes it.
        model: String,
        /// How many tokens a conversation may have.
        threshold: Option<u64>,
        /// How many of the latest messages are left as they are.
        keep_recent: Option<usize>,
        /// What the model is told, above the conversation.
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

/// How important a line of a log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelConfig {
    /// Details.
    Debug,
    /// What happens.
    #[default]
    Info,
    /// What may be a problem.
    Warn,
    /// What went wrong.
    Error,
}

fn yes() -> bool {
    true
}
