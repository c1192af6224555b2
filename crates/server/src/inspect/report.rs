//! Reports of agents, made from their configuration.

use crate::config::{
    AgentSettings, Config, MiddlewareConfig, ModelConfig, RemoteConfig, StrategyConfig,
    SubagentConfig, ToolRef,
};
use crate::tools;
use serde::Serialize;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;
use upp::{Effect, RetryConfig, ToolChoice};

/// An agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    /// Its name.
    pub name: String,
    /// Whether it answers messages that name no agent.
    pub is_default: bool,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its model.
    pub model: ModelReport,
    /// Its strategy, with its limits.
    pub strategy: String,
    /// Whether its answers follow a JSON Schema.
    pub structure: bool,
    /// Whether it must call a tool, and which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<String>,
    /// Its tools, sub-agents included.
    pub tools: Vec<ToolReport>,
    /// Its sub-agents, with theirs.
    pub subagents: Vec<SubagentReport>,
    /// The agents that it may hand over to.
    pub handoffs: Vec<String>,
    /// The middleware of its requests, the outermost first.
    pub middleware: Vec<String>,
    /// When a summary represents older runs of its threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<String>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelReport {
    /// Its name in the configuration.
    pub name: String,
    /// The name of its provider in the configuration.
    pub provider: String,
    /// Its id at the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The environment variables that were searched for keys.
    pub key_envs: Vec<String>,
    /// Number of keys.
    pub n_keys: usize,
    /// The requests that are sent again after an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
}

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolKind {
    /// A built-in tool of the server.
    BuiltIn,
    /// A tool of an MCP server.
    Mcp,
    /// All tools of an MCP server; they are known once it is reached.
    McpServer,
    /// Executed by the client.
    External,
    /// A sub-agent.
    Subagent,
}

impl ToolKind {
    /// Its word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Mcp => "mcp",
            Self::McpServer => "mcp-server",
            Self::External => "external",
            Self::Subagent => "subagent",
        }
    }
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolReport {
    /// Its name, as the model sees it; for a whole server, the reference.
    pub name: String,
    /// Its origin.
    pub kind: ToolKind,
    /// The effect, which decides whether an interrupted call runs again. An MCP server's own annotations
    /// may say otherwise if the configuration trusts them.
    pub effect: Effect,
    /// Whether each call needs an approval.
    pub requires_approval: bool,
}

/// A sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentReport {
    /// The name of the tool.
    pub tool: String,
    /// The agent.
    pub agent: String,
    /// Its sub-agents; empty if the report has listed them before.
    pub subagents: Vec<Self>,
}

pub(super) fn agents(config: &Config) -> Vec<AgentReport> {
    let report = |(name, agent): (&String, &AgentSettings)| AgentReport {
        name: name.clone(),
        is_default: *name == config.default_agent,
        description: agent.description.clone(),
        model: match &agent.remote {
            Some(remote) => elsewhere(remote),
            None if agent.worker.is_some() => ModelReport {
                provider: "external".to_owned(),
                ..model(name, config)
            },
            None => model(&agent.model, config),
        },
        strategy: match &agent.remote {
            Some(remote) => format!("remote, by {}", remote.protocol.as_str()),
            None => strategy(agent),
        },
        structure: agent.structure.is_some() || agent.structure_file.is_some(),
        tool_choice: tool_choice(&agent.tool_choice),
        tools: tool_list(agent, config),
        subagents: subagents(agent, config, &mut BTreeSet::new()),
        handoffs: agent.handoffs.clone(),
        middleware: agent.middleware.iter().map(layer).collect(),
        compaction: agent.compaction.as_ref().map(|it| {
            format!(
                "from {} tokens, by {}, after {} runs",
                it.at_tokens, it.model, it.keep_runs
            )
        }),
    };
    config.agents.iter().map(report).collect()
}

fn elsewhere(remote: &RemoteConfig) -> ModelReport {
    ModelReport {
        name: remote.url.clone(),
        provider: remote.protocol.as_str().to_owned(),
        id: remote.agent.clone(),
        key_envs: Vec::new(),
        n_keys: usize::from(remote.key.is_some()),
        retry: None,
    }
}

fn model(name: &str, config: &Config) -> ModelReport {
    let mut report = ModelReport {
        name: name.to_owned(),
        provider: "scripted".to_owned(),
        id: None,
        key_envs: Vec::new(),
        n_keys: 0,
        retry: None,
    };
    match config.models.get(name) {
        Some(ModelConfig::Remote(model)) => {
            model.provider.as_str().clone_into(&mut report.provider);
            report.id = Some(model.model.clone());
            report.key_envs.clone_from(&model.key_envs);
            report.n_keys = model.keys.len();
            report.retry = model.retry.as_ref().map(|it| retry(it).to_owned());
        }
        Some(ModelConfig::Scripted { model, .. }) => report.id.clone_from(model),
        None => {}
    }
    report
}

fn retry(retry: &RetryConfig) -> &'static str {
    match retry {
        RetryConfig::ExponentialBackoff { .. } => "exponential-backoff",
        RetryConfig::LinearBackoff { .. } => "linear-backoff",
        RetryConfig::NoRetry {} => "none",
        RetryConfig::TokenBucket { .. } => "token-bucket",
        RetryConfig::RetryAfter { .. } => "retry-after",
    }
}

fn strategy(agent: &AgentSettings) -> String {
    let most = |limit: Option<NonZeroU32>, what: &str| {
        limit.map_or_else(String::new, |limit| format!(", at most {limit} {what}"))
    };
    let rounds = |limit: Option<NonZeroU32>| most(limit, "rounds of tools");
    let name = agent.strategy.name();
    let limits = match &agent.strategy {
        StrategyConfig::Loop { max_iterations } => {
            let both = [*max_iterations, agent.max_tool_rounds];
            rounds(both.into_iter().flatten().min())
        }
        StrategyConfig::React { max_steps, .. } => most(*max_steps, "steps"),
        StrategyConfig::Plan {
            max_plan_steps,
            allow_replan,
            ..
        } => {
            let again = if *allow_replan { "" } else { ", no other plan" };
            let steps = most(*max_plan_steps, "steps in a plan");
            format!("{steps}{again}{}", rounds(agent.max_tool_rounds))
        }
    };
    format!("{name}{limits}")
}

fn tool_choice(choice: &ToolChoice) -> Option<String> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".to_owned()),
        ToolChoice::Required => Some("required".to_owned()),
        ToolChoice::Tool(name) => Some(format!("the tool {name}")),
    }
}

fn tool_list(agent: &AgentSettings, config: &Config) -> Vec<ToolReport> {
    let asks = |reference: &ToolRef| {
        let all = reference.server().map(|name| ToolRef::Server(name.into()));
        let approvals = &agent.requires_approval;
        approvals.contains(reference) || all.is_some_and(|all| approvals.contains(&all))
    };
    let mut list = Vec::new();
    for reference in &agent.tools {
        list.push(tool(reference, asks(reference), config));
        // A tool of a server whose tools are not known yet.
        let ToolRef::Server(name) = reference else {
            continue;
        };
        for approval in &agent.requires_approval {
            if approval != reference && approval.server() == Some(name) {
                list.push(tool(approval, true, config));
            }
        }
    }
    let declared = |name: &str, kind: ToolKind, effect: Effect| ToolReport {
        name: name.to_owned(),
        kind,
        effect,
        requires_approval: asks(&ToolRef::Named(name.to_owned())),
    };
    let external = agent.external.iter();
    list.extend(external.map(|tool| declared(&tool.name, ToolKind::External, Effect::Effect)));
    let subagents = agent.subagents.iter();
    list.extend(subagents.map(|it| declared(&it.name, ToolKind::Subagent, Effect::Idempotent)));
    list
}

fn tool(reference: &ToolRef, requires_approval: bool, config: &Config) -> ToolReport {
    let server = reference.server().and_then(|name| config.mcp.get(name));
    let (name, kind, effect) = match reference {
        ToolRef::Named(name) => {
            let found = tools::find(name, &config.tools, Path::new(""));
            let effect = found.map(|tool| tool.effect).unwrap_or_default();
            (name.clone(), ToolKind::BuiltIn, effect)
        }
        ToolRef::Server(_) => {
            let effect = server.map(|server| server.default_effect);
            let name = reference.to_string();
            (name, ToolKind::McpServer, effect.unwrap_or_default())
        }
        ToolRef::OfServer { tool, .. } => {
            let prefix = server.map_or("", |server| server.prefix.as_str());
            let effect = server.map(|server| {
                let own = server.effects.get(tool);
                own.copied().unwrap_or(server.default_effect)
            });
            let name = format!("{prefix}{tool}");
            (name, ToolKind::Mcp, effect.unwrap_or_default())
        }
    };
    ToolReport {
        name,
        kind,
        effect,
        requires_approval,
    }
}

/// The sub-agents of an agent. Each agent's sub-agents are listed only once, to keep the report short.
fn subagents<'a>(
    agent: &'a AgentSettings,
    config: &'a Config,
    said: &mut BTreeSet<&'a str>,
) -> Vec<SubagentReport> {
    let mut report = |subagent: &'a SubagentConfig| {
        let called = config.agents.get(&subagent.agent);
        let called = called.filter(|_| said.insert(&subagent.agent));
        SubagentReport {
            tool: subagent.name.clone(),
            agent: subagent.agent.clone(),
            subagents: called.map_or_else(Vec::new, |agent| subagents(agent, config, said)),
        }
    };
    agent.subagents.iter().map(&mut report).collect()
}

fn layer(layer: &MiddlewareConfig) -> String {
    match layer {
        MiddlewareConfig::Logging { .. } | MiddlewareConfig::PruneToolOutputs { .. } => {
            layer.name().to_owned()
        }
        MiddlewareConfig::SlidingWindow { max_messages } => {
            format!("{} of {max_messages} messages", layer.name())
        }
        MiddlewareConfig::Summarise { model, .. } => format!("{} by {model}", layer.name()),
    }
}
