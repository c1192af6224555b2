//! The configured agents, as reactors by name.

mod advice;
mod build;
mod limited;
mod mcp;
mod models;
mod position;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::outbound::{Outbound, OutboundError};
use agents::mcp::McpError;
use agents::middleware::Summarise;
use agents::{Agent, OptionsError};
use build::{Builder, Texts};
use mcp::McpServers;
use models::model_of;
use runtime::{
    AgentReactor, CompactionPolicy, ExternalReactor, OptionsRefused, Reactor, Reactors, Run,
    WorkerPolicy,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use upp::{Effect, Model, ScriptError, Tool};

/// Errors of building the configured agents.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// A script can't be opened.
    #[error("the script {path} of the model {model:?} can't be opened")]
    NoScript {
        /// The model.
        model: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A script makes no sense.
    #[error("the script {path} of the model {model:?} can't be used")]
    BadScript {
        /// The model.
        model: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: ScriptError,
    },
    /// A model's configuration is not usable.
    #[error("the model {model:?} can't be made")]
    Model {
        /// The model.
        model: String,
        /// Why.
        source: upp::Error,
    },
    /// An agent can't be built from its parts.
    #[error("the agent {agent:?} can't be made")]
    Agent {
        /// The agent.
        agent: String,
        /// Why.
        source: OptionsError,
    },
    /// A file of an agent can't be read.
    #[error("the file {path} of the agent {agent:?} can't be read")]
    NoFile {
        /// The agent.
        agent: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The schema file of an agent's answer contains no schema.
    #[error("the file {path} of the agent {agent:?} is no usable JSON Schema: {what}")]
    BadStructure {
        /// The agent.
        agent: String,
        /// The file.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// Requests to remote agents are impossible.
    #[error("remote agents can't be called")]
    Outbound(#[source] OutboundError),
    /// An MCP server can't be used as configured.
    #[error(transparent)]
    Mcp(McpError),
    /// An agent refers to an unknown name.
    #[error("the agent {agent:?} names {name:?}, and there is no such model, tool or agent")]
    Unknown {
        /// The agent.
        agent: String,
        /// The unknown name.
        name: String,
    },
}

/// An agent in the form that clients see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSummary {
    /// Its name.
    pub name: String,
    /// Its provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The configured description.
    pub description: Option<String>,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// Its tools, in the order of their names.
    pub tool_details: Vec<ToolSummary>,
    /// The names of its sub-agents.
    pub subagents: Vec<String>,
    /// The names of the agents that it can hand over to.
    pub handoffs: Vec<String>,
    /// Whether it answers messages that name no agent.
    pub is_default: bool,
}

/// A tool of an agent in the form that clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSummary {
    /// Its name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The effect of a call, which decides about a call with an unknown outcome.
    pub effect: Effect,
    /// Whether each call needs an approval.
    pub needs_approval: bool,
    /// Whether the client executes the calls.
    pub is_external: bool,
    /// The JSON Schema of the results of an external tool, if it declares one.
    pub result: Option<Arc<Value>>,
}

impl From<&Tool> for ToolSummary {
    fn from(tool: &Tool) -> Self {
        Self {
            name: tool.name.clone(),
            description: tool.description.clone(),
            effect: tool.effect,
            needs_approval: tool.requires_approval || tool.approval.is_some(),
            is_external: tool.external,
            result: tool.result.clone(),
        }
    }
}

type Models = BTreeMap<String, Arc<dyn Model>>;

/// The agents of a configuration by name, one of them the default. Clones share them.
#[derive(Clone)]
pub(crate) struct ConfiguredAgents {
    inner: Arc<Inner>,
}

struct Inner {
    config: Arc<Config>,
    /// The directory of the tool `read_file`.
    files: PathBuf,
    models: Models,
    outbound: Outbound,
    texts: BTreeMap<String, Texts>,
    servers: McpServers,
    metrics: Metrics,
    /// The agents; rebuilt when the servers were reached, so that they have the current tools.
    agents: RwLock<Arc<BTreeMap<String, Agent>>>,
}

impl ConfiguredAgents {
    /// Builds the agents without network requests. Their MCP tools come from the stored lists in
    /// `lists`, or from the names in the configuration.
    pub(crate) fn new(
        config: Arc<Config>,
        files: &Path,
        lists: Option<PathBuf>,
        metrics: &Metrics,
    ) -> Result<Self, AgentsError> {
        let mut models = BTreeMap::new();
        for (name, model) in &config.models {
            let mut model = metrics.of_model(model_of(name, model, config.is_development())?);
            if let Some(max) = config.limits.model_runs.get(name) {
                model = limited::limited(model, *max);
            }
            models.insert(name.clone(), model);
        }
        let mut texts = BTreeMap::new();
        for (name, agent) in &config.agents {
            texts.insert(name.clone(), Texts::read(name, agent)?);
        }
        let inner = Inner {
            files: files.to_owned(),
            models,
            outbound: Outbound::new(config.outbound.clone()).map_err(AgentsError::Outbound)?,
            texts,
            servers: McpServers::new(&config, lists)?,
            metrics: metrics.clone(),
            agents: RwLock::default(),
            config,
        };
        let mut builder = inner.builder();
        for name in inner.config.agents.keys() {
            builder.agent(name)?;
        }
        inner.put(builder.made);
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Connects to the MCP servers, and rebuilds the agents with their tools. A server that can't be
    /// reached is logged. An agent that can't be rebuilt remains as it was.
    pub(crate) async fn connect(&self) {
        if !self.inner.servers.connect().await {
            return;
        }
        let old = self.inner.agents();
        let mut builder = self.inner.builder();
        for name in self.inner.config.agents.keys() {
            if let Err(error) = builder.agent(name) {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, cause, "an agent continues without the new tools of its MCP servers");
                if let Some(agent) = old.get(name) {
                    builder.made.insert(name.clone(), agent.clone());
                }
            }
        }
        self.inner.put(builder.made);
    }

    /// Closes the connections to MCP servers, and ends those that are child processes.
    pub(crate) async fn close(&self) {
        self.inner.servers.close().await;
    }

    /// The agents, by name.
    pub(crate) fn agents(&self) -> Arc<BTreeMap<String, Agent>> {
        self.inner.agents()
    }

    pub(crate) fn list(&self) -> Vec<AgentSummary> {
        let default = self.inner.config.default_agent.as_str();
        let summary = |(name, agent): (&String, &Agent)| AgentSummary {
            name: name.clone(),
            provider: agent.model().provider().to_owned(),
            model: agent.model().model_id().to_owned(),
            tools: agent.tools().iter().map(|tool| tool.name.clone()).collect(),
            tool_details: agent.tools().iter().map(Into::into).collect(),
            is_default: name == default,
            ..self.configured(name)
        };
        self.agents().iter().map(summary).collect()
    }

    /// The members of a summary that only the configuration has.
    fn configured(&self, name: &str) -> AgentSummary {
        let Some(agent) = self.inner.config.agents.get(name) else {
            return AgentSummary::default();
        };
        let subagents = agent.subagents.iter();
        AgentSummary {
            description: agent.description.clone(),
            subagents: subagents.map(|it| it.agent.clone()).collect(),
            handoffs: agent.handoffs.clone(),
            ..AgentSummary::default()
        }
    }

    /// The tool of an agent; the default agent if none is named.
    pub(crate) fn tool(&self, agent: Option<&str>, tool: &str) -> Option<ToolSummary> {
        let agents = self.agents();
        let agent = agents.get(agent.unwrap_or(&self.inner.config.default_agent))?;
        let found = agent.tools().iter().find(|it| it.name == tool);
        found.map(Into::into)
    }

    /// The names of the models, each with the provider's name.
    pub(crate) fn models(&self) -> Vec<(String, String)> {
        let models = self.inner.models.iter();
        let named = models.map(|(name, model)| (name.clone(), model.provider().to_owned()));
        named.collect()
    }

    /// Checks that an agent can run with these parameters; the default agent if none is named.
    pub(crate) fn check_params(
        &self,
        agent: Option<&str>,
        params: Option<&Value>,
    ) -> Result<(), OptionsRefused> {
        let reactor = self.reactor(agent);
        reactor.map_or(Ok(()), |reactor| reactor.check_params(params))
    }

    fn reactor(&self, agent: Option<&str>) -> Option<AgentReactor> {
        let agents = self.agents();
        let agent = agents.get(agent.unwrap_or(&self.inner.config.default_agent))?;
        let reactor = AgentReactor::new(agent.clone());
        if agent.options().foreign_calls {
            return Some(reactor);
        }
        let reactor = if self.inner.worker(agent.name()).is_some() {
            reactor
        } else {
            // The server does not know the model of a worker or of a remote agent.
            reactor.with_models(Arc::clone(&self.inner) as Arc<dyn runtime::Models>)
        };
        Some(match self.inner.compaction(agent.name()) {
            Some(policy) => reactor.with_compaction(policy),
            None => reactor,
        })
    }
}

/// Finds a model for a run by one of three names: its name in the configuration; the name of an agent
/// that uses it; the provider's name for it, which an agent's assistant shows. This order decides
/// between several matches, then the first name.
impl runtime::Models for Inner {
    fn find(&self, name: &str) -> Option<Arc<dyn Model>> {
        let by_agent = || {
            let agents = self.agents();
            let agent = agents.get(name)?;
            // A remote agent and an agent with workers have models that this server can't call.
            let is_ours = !agent.options().foreign_calls && self.worker(name).is_none();
            is_ours.then(|| Arc::clone(agent.model()))
        };
        let by_id = || {
            self.models
                .values()
                .find(|model| model.model_id() == name)
                .map(Arc::clone)
        };
        let by_name = self.models.get(name).map(Arc::clone);
        by_name.or_else(by_agent).or_else(by_id)
    }
}

impl Inner {
    /// The configured name of the model that [`runtime::Models::find`] finds for this name.
    fn model_name(&self, name: &str) -> Option<String> {
        if self.models.contains_key(name) {
            return Some(name.to_owned());
        }
        let by_id = || {
            let mut models = self.models.iter();
            let found = models.find(|(_, model)| model.model_id() == name);
            found.map(|(name, _)| name.clone())
        };
        self.model_name_of(name).or_else(by_id)
    }

    /// The limits of an agent's steps, if workers answer them.
    fn worker(&self, agent: &str) -> Option<WorkerPolicy> {
        self.config.agents.get(agent)?.worker
    }

    /// The configured name of an agent's model. A remote agent and an agent with workers have none.
    fn model_name_of(&self, agent: &str) -> Option<String> {
        let agent = self.config.agents.get(agent)?;
        let has_model = agent.remote.is_none() && agent.worker.is_none();
        has_model.then(|| agent.model.clone())
    }

    fn builder(&self) -> Builder<'_> {
        Builder {
            config: &self.config,
            files: &self.files,
            models: &self.models,
            outbound: &self.outbound,
            texts: &self.texts,
            servers: &self.servers,
            metrics: &self.metrics,
            made: BTreeMap::new(),
        }
    }

    fn agents(&self) -> Arc<BTreeMap<String, Agent>> {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&agents)
    }

    /// When the threads of an agent are compacted.
    fn compaction(&self, agent: &str) -> Option<CompactionPolicy> {
        let wanted = self.config.agents.get(agent)?.compaction.as_ref()?;
        let by = self.models.get(&wanted.model)?;
        let usual = Summarise::with_model(Arc::clone(by));
        let of_model = self.config.models.get(&wanted.model);
        let mut params = of_model.map(|it| it.params().clone()).unwrap_or_default();
        params.extend(wanted.params.clone());
        Some(CompactionPolicy {
            summarise: Summarise {
                threshold: wanted.at_tokens,
                prompt: wanted.prompt.clone().unwrap_or(usual.prompt),
                params: Arc::new(params),
                ..usual
            },
            keep_runs: wanted.keep_runs,
        })
    }

    fn put(&self, agents: BTreeMap<String, Agent>) {
        let mut place = self.agents.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(agents);
    }
}

impl Reactors for ConfiguredAgents {
    fn find(&self, agent: Option<&str>) -> Option<Arc<dyn Reactor>> {
        let reactor = self.reactor(agent)?;
        let name = agent.unwrap_or(&self.inner.config.default_agent);
        Some(match self.inner.worker(name) {
            Some(policy) => Arc::new(ExternalReactor::new(reactor, policy)),
            None => Arc::new(reactor),
        })
    }

    fn has(&self, agent: &str) -> bool {
        self.agents().contains_key(agent)
    }

    fn model(&self, run: &Run) -> Option<String> {
        let config = &self.inner.config;
        if config.limits.model_runs.is_empty() {
            return None;
        }
        let asked = run.params.as_ref().and_then(|it| it.get("model"));
        if let Some(name) = asked.and_then(Value::as_str) {
            return self.inner.model_name(name);
        }
        let agent = run.agent.as_deref().unwrap_or(&config.default_agent);
        self.inner.model_name_of(agent)
    }

    fn name(&self, agent: Option<&str>) -> Option<String> {
        let default = self.inner.config.default_agent.as_str();
        Some(agent.unwrap_or(default).to_owned())
    }
}

#[cfg(test)]
mod tests;
