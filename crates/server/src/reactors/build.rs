//! Builds agents from their configuration.

use super::mcp::{McpServers, is_meant};
use super::models::text_of;
use super::{AgentsError, Models, position};
use crate::config::{
    AgentSettings, Config, ExternalTool, LevelConfig, MiddlewareConfig, RemoteConfig,
    StrategyConfig, SubagentConfig, ToolRef,
};
use crate::metrics::Metrics;
use crate::outbound::Outbound;
use crate::remote;
use crate::tools;
use agents::middleware::{
    LogLevel, LoggingOptions, PruneToolOutputs, SlidingWindow, Summarise, logging,
};
use agents::{
    Agent, AgentOptions, ExecutionStrategy, Limit, Loop, Middleware, Plan, React, SubAgentTool,
    subagent_tool,
};
use runtime::ExternalReactor;
use serde_json::Value;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use upp::Tool;

/// The texts of an agent's files.
#[derive(Default)]
pub(super) struct Texts {
    system: Option<Arc<str>>,
    structure: Option<Arc<Value>>,
}

impl Texts {
    pub(super) fn read(name: &str, agent: &AgentSettings) -> Result<Self, AgentsError> {
        let read = |path: &Path| {
            text_of(path).map_err(|source| AgentsError::NoFile {
                agent: name.to_owned(),
                path: path.to_owned(),
                source,
            })
        };
        let system = match (&agent.system, &agent.system_file) {
            (Some(text), _) => Some(text.as_str().into()),
            (None, Some(path)) => Some(read(path)?.into()),
            (None, None) => None,
        };
        let structure = match (&agent.structure, &agent.structure_file) {
            (Some(schema), _) => Some(schema.clone()),
            (None, Some(path)) => Some(schema_of(name, path, &read(path)?)?),
            (None, None) => None,
        };
        Ok(Self {
            system,
            structure: structure.map(Arc::new),
        })
    }
}

fn schema_of(name: &str, path: &Path, text: &str) -> Result<Value, AgentsError> {
    let bad = |what: String| AgentsError::BadStructure {
        agent: name.to_owned(),
        path: path.to_owned(),
        what,
    };
    let schema: Value = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    if let Err(refused) = upp::schema::check(&schema) {
        let (line, column) = position::of(text, &refused.pointer);
        let what = refused.fault.expected();
        return Err(bad(format!(
            "expected {what} at line {line}, column {column}"
        )));
    }
    match jsonschema::options().offline().build(&schema) {
        Ok(_) => Ok(schema),
        Err(error) => Err(bad(error.to_string())),
    }
}

/// Builds the agents of a configuration, sub-agents first.
pub(super) struct Builder<'a> {
    pub(super) config: &'a Config,
    pub(super) files: &'a Path,
    pub(super) models: &'a Models,
    pub(super) outbound: &'a Outbound,
    pub(super) texts: &'a BTreeMap<String, Texts>,
    pub(super) servers: &'a McpServers,
    pub(super) metrics: &'a Metrics,
    pub(super) made: BTreeMap<String, Agent>,
}

impl Builder<'_> {
    /// The agent with this name, made on first use. Sub-agents have no cycles in a configuration, so the
    /// recursion ends.
    pub(super) fn agent(&mut self, name: &str) -> Result<Agent, AgentsError> {
        if let Some(agent) = self.made.get(name) {
            return Ok(agent.clone());
        }
        let unknown = |what: &str| AgentsError::Unknown {
            agent: name.to_owned(),
            name: what.to_owned(),
        };
        let agent = self.config.agents.get(name);
        let agent = agent.ok_or_else(|| unknown(name))?;
        if let Some(elsewhere) = &agent.remote {
            return self.elsewhere(name, agent, elsewhere);
        }
        let model = match self.models.get(&agent.model) {
            Some(model) => Arc::clone(model),
            None if agent.worker.is_some() => ExternalReactor::model(name),
            None => return Err(unknown(&agent.model)),
        };
        let mut options = AgentOptions::new(name, model);
        // The same in every process, so that a resumed run is the same agent's.
        options.id = Some(name.into());
        if let Some(texts) = self.texts.get(name) {
            options.system.clone_from(&texts.system);
            options.structure.clone_from(&texts.structure);
        }
        let params = self.config.models.get(&agent.model);
        let mut params = params
            .map(|model| model.params().clone())
            .unwrap_or_default();
        params.extend(agent.params.clone());
        options.params = Arc::new(params);
        options.tool_choice = agent.tool_choice.clone();
        options.tool_strategy.max_iterations = agent.max_tool_rounds.map(NonZeroU32::get);
        options.execution = strategy(&agent.strategy);
        options.middleware = self.middleware(name, agent)?;
        options.tools = self.tools(name, agent)?;
        let made = Agent::new(options).map_err(|source| AgentsError::Agent {
            agent: name.to_owned(),
            source,
        })?;
        self.made.insert(name.to_owned(), made.clone());
        Ok(made)
    }

    /// A remote agent. It is called like a model, but stores the conversation itself and has its own
    /// tools.
    fn elsewhere(
        &mut self,
        name: &str,
        agent: &AgentSettings,
        elsewhere: &RemoteConfig,
    ) -> Result<Agent, AgentsError> {
        let params = agent.params.clone();
        let mut options = remote::options(name, elsewhere.clone(), params, self.outbound.clone());
        options.model = self.metrics.of_model(options.model);
        let made = Agent::new(options).map_err(|source| AgentsError::Agent {
            agent: name.to_owned(),
            source,
        })?;
        self.made.insert(name.to_owned(), made.clone());
        Ok(made)
    }

    fn tools(&mut self, name: &str, agent: &AgentSettings) -> Result<Vec<Tool>, AgentsError> {
        let mut all = Vec::new();
        let max_bytes = self.config.limits.message_bytes;
        for reference in &agent.tools {
            if reference.server().is_some() {
                let tools = self.servers.tools(reference).into_iter();
                all.extend(tools.map(|tool| self.metrics.of_tool(tools::bounded(tool, max_bytes))));
                continue;
            }
            let text = reference.to_string();
            let tool = tools::find(&text, &self.config.tools, self.files);
            let tool = tool.ok_or_else(|| AgentsError::Unknown {
                agent: name.to_owned(),
                name: text,
            })?;
            all.push(self.metrics.of_tool(tools::bounded(tool, max_bytes)));
        }
        all.extend(agent.external.iter().map(external));
        for subagent in &agent.subagents {
            let agent = self.agent(&subagent.agent)?;
            all.push(subagent_of(subagent, agent));
        }
        for target in &agent.handoffs {
            let about = self.config.agents.get(target);
            let about = about.and_then(|agent| agent.description.clone());
            let about =
                about.unwrap_or_else(|| format!("Hands the conversation over to {target}."));
            all.push(runtime::handoff::tool(target, &about));
        }
        for tool in &mut all {
            let asks = |reference| is_meant(reference, tool);
            tool.requires_approval |= agent.requires_approval.iter().any(asks);
        }
        for reference in &agent.requires_approval {
            require_approval_of_server(name, reference, &mut all);
        }
        Ok(all)
    }

    fn middleware(
        &self,
        name: &str,
        agent: &AgentSettings,
    ) -> Result<Vec<Arc<dyn Middleware>>, AgentsError> {
        let layers = agent.middleware.iter().map(|layer| self.layer(name, layer));
        layers.collect()
    }

    fn layer(
        &self,
        agent: &str,
        layer: &MiddlewareConfig,
    ) -> Result<Arc<dyn Middleware>, AgentsError> {
        Ok(match layer {
            MiddlewareConfig::Logging {
                level,
                include_messages,
                include_timing,
            } => Arc::new(logging(LoggingOptions {
                level: log_level(*level),
                include_messages: *include_messages,
                include_timing: *include_timing,
                ..LoggingOptions::default()
            })),
            MiddlewareConfig::PruneToolOutputs {
                usable,
                protect_recent,
                placeholder,
            } => {
                let usual = PruneToolOutputs::default();
                Arc::new(PruneToolOutputs {
                    usable: usable.unwrap_or(usual.usable),
                    protect_recent: protect_recent.unwrap_or(usual.protect_recent),
                    placeholder: placeholder.clone().unwrap_or(usual.placeholder),
                    estimate: usual.estimate,
                })
            }
            MiddlewareConfig::SlidingWindow { max_messages } => {
                Arc::new(SlidingWindow::new(*max_messages))
            }
            MiddlewareConfig::Summarise {
                model,
                threshold,
                keep_recent,
                prompt,
                params,
            } => {
                let by = self.models.get(model).ok_or_else(|| AgentsError::Unknown {
                    agent: agent.to_owned(),
                    name: model.clone(),
                })?;
                let usual = Summarise::with_model(Arc::clone(by));
                let of_model = self.config.models.get(model);
                let mut all = of_model.map(|it| it.params().clone()).unwrap_or_default();
                all.extend(params.clone());
                Arc::new(Summarise {
                    threshold: threshold.unwrap_or(usual.threshold),
                    keep_recent: keep_recent.unwrap_or(usual.keep_recent),
                    prompt: prompt.clone().unwrap_or(usual.prompt),
                    params: Arc::new(all),
                    by: usual.by,
                    estimate: usual.estimate,
                })
            }
        })
    }
}

fn log_level(level: LevelConfig) -> LogLevel {
    match level {
        LevelConfig::Debug => LogLevel::Debug,
        LevelConfig::Info => LogLevel::Info,
        LevelConfig::Warn => LogLevel::Warn,
        LevelConfig::Error => LogLevel::Error,
    }
}

fn strategy(strategy: &StrategyConfig) -> Arc<dyn ExecutionStrategy> {
    let limit = |limit: &Option<NonZeroU32>| limit.map_or(Limit::Unbounded, Limit::AtMost);
    match strategy {
        StrategyConfig::Loop { max_iterations } => Arc::new(Loop {
            max_iterations: limit(max_iterations),
        }),
        StrategyConfig::React {
            max_steps,
            reasoning_prompt,
        } => Arc::new(React {
            max_steps: limit(max_steps),
            reasoning_prompt: reasoning_prompt.as_deref().map(Into::into),
        }),
        StrategyConfig::Plan {
            max_plan_steps,
            allow_replan,
            plan_schema,
        } => Arc::new(Plan {
            max_plan_steps: limit(max_plan_steps),
            allow_replan: *allow_replan,
            plan_schema: plan_schema.clone().map(Arc::new),
        }),
    }
}

/// Requires an approval for all tools of an MCP server if the agent requires it for an unknown tool
/// of the server, whose name may be misspelt.
fn require_approval_of_server(agent: &str, reference: &ToolRef, tools: &mut [Tool]) {
    let ToolRef::OfServer { server, tool: name } = reference else {
        return;
    };
    if tools.iter().any(|tool| is_meant(reference, tool)) {
        return;
    }
    let all = ToolRef::Server(server.clone());
    let mut n_tools = 0;
    for tool in tools.iter_mut().filter(|tool| is_meant(&all, tool)) {
        tool.requires_approval = true;
        n_tools += 1;
    }
    if n_tools > 0 {
        tracing::warn!(
            agent,
            server,
            tool = name,
            n_tools,
            "requires_approval names a tool that the MCP server does not have; all its tools require an approval"
        );
    }
}

fn external(tool: &ExternalTool) -> Tool {
    let declared = Tool::external(
        tool.name.as_str(),
        tool.description.as_str(),
        tool.parameters.clone(),
    );
    match &tool.result {
        Some(schema) => declared.with_result(schema.clone()),
        None => declared,
    }
}

fn subagent_of(subagent: &SubagentConfig, agent: Agent) -> Tool {
    let prompt = subagent.prompt.clone();
    subagent_tool(SubAgentTool {
        propagate_events: subagent.propagate_events,
        ..SubAgentTool::new(
            subagent.name.as_str(),
            subagent.description.as_str(),
            subagent.parameters.clone(),
            agent,
            move |arguments: &Value| Ok(prompt.render(arguments).into()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str) -> Tool {
        let origin = json!({"server": "tickets", "tool": name});
        let mut tool = external(&ExternalTool {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            result: None,
        });
        tool.metadata.insert("mcp".to_owned(), origin);
        tool
    }

    fn approvals(name: &str) -> Vec<bool> {
        let mut tools = [tool("find"), tool("list")];
        let reference = ToolRef::parse(name);
        require_approval_of_server("a", &reference, &mut tools);
        tools.map(|tool| tool.requires_approval).into()
    }

    #[test]
    fn a_misspelt_approval_covers_all_tools_of_its_server() {
        assert_eq!(approvals("mcp:tickets/fnd"), [true, true]);
        assert_eq!(approvals("mcp:tickets/find"), [false, false]);
        assert_eq!(approvals("mcp:others/fnd"), [false, false]);
    }
}
