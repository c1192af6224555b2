//! The configured agents, as reactors by name.

use crate::config::{AgentConfig, Config, ModelConfig};
use crate::tools;
use agents::{Agent, AgentOptions, Limit, Loop, OptionsError};
use runtime::{AgentReactor, Reactor, Reactors};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use upp::{
    ChatCompletions, Dialect, Model, Provider, ProviderConfig, Script, ScriptError, Scripted,
};

/// Why the configured agents can't be made.
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
    /// A model can't be reached as configured.
    #[error("the model {model:?} can't be made")]
    Model {
        /// The model.
        model: String,
        /// Why.
        source: upp::Error,
    },
    /// An agent can't be made of its parts.
    #[error("the agent {agent:?} can't be made")]
    Agent {
        /// The agent.
        agent: String,
        /// Why.
        source: OptionsError,
    },
    /// An agent names a model or a tool that there is not.
    #[error("the agent {agent:?} names {name:?}, and there is no such model or tool")]
    Unknown {
        /// The agent.
        agent: String,
        /// What it names.
        name: String,
    },
}

/// An agent as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSummary {
    /// Its name.
    pub name: String,
    /// Its provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// Whether it answers when a message names none.
    pub is_default: bool,
}

/// The agents of a configuration by name, one of them the default.
#[derive(Clone)]
pub(crate) struct ConfiguredAgents {
    agents: Arc<BTreeMap<String, Agent>>,
    default: Arc<str>,
}

impl ConfiguredAgents {
    pub(crate) fn new(config: &Config, files: &Path) -> Result<Self, AgentsError> {
        let mut models = BTreeMap::new();
        for (name, model) in &config.models {
            models.insert(name.as_str(), model_of(name, model)?);
        }
        let mut agents = BTreeMap::new();
        for (name, agent) in &config.agents {
            let unknown = |what: &str| AgentsError::Unknown {
                agent: name.clone(),
                name: what.to_owned(),
            };
            let model = models
                .get(agent.model.as_str())
                .ok_or_else(|| unknown(&agent.model))?;
            let mut options = options(name, agent, Arc::clone(model));
            for tool in &agent.tools {
                options
                    .tools
                    .push(tools::find(tool, &config.tools, files).ok_or_else(|| unknown(tool))?);
            }
            let made = Agent::new(options).map_err(|source| AgentsError::Agent {
                agent: name.clone(),
                source,
            })?;
            agents.insert(name.clone(), made);
        }
        Ok(Self {
            agents: agents.into(),
            default: config.default_agent.as_str().into(),
        })
    }

    pub(crate) fn list(&self) -> Vec<AgentSummary> {
        let summary = |(name, agent): (&String, &Agent)| AgentSummary {
            name: name.clone(),
            provider: agent.model().provider().to_owned(),
            model: agent.model().model_id().to_owned(),
            tools: agent.tools().iter().map(|tool| tool.name.clone()).collect(),
            is_default: name.as_str() == &*self.default,
        };
        self.agents.iter().map(summary).collect()
    }
}

impl Reactors for ConfiguredAgents {
    fn find(&self, agent: Option<&str>) -> Option<Arc<dyn Reactor>> {
        let agent = self.agents.get(agent.unwrap_or(&self.default))?;
        Some(Arc::new(AgentReactor::new(agent.clone())))
    }

    fn has(&self, agent: &str) -> bool {
        self.agents.contains_key(agent)
    }

    fn name(&self, agent: Option<&str>) -> Option<String> {
        Some(agent.unwrap_or(&self.default).to_owned())
    }
}

fn options(name: &str, agent: &AgentConfig, model: Arc<dyn Model>) -> AgentOptions {
    let mut options = AgentOptions::new(name, model);
    // The same in every process, so that a resumed run is the same agent's.
    options.id = Some(name.into());
    options.system = agent.system.as_deref().map(Into::into);
    options.params = Arc::new(agent.params.clone());
    if let Some(rounds) = agent.max_tool_rounds {
        options.execution = Arc::new(Loop {
            max_iterations: Limit::AtMost(rounds),
        });
    }
    options
}

fn model_of(name: &str, model: &ModelConfig) -> Result<Arc<dyn Model>, AgentsError> {
    match model {
        ModelConfig::Scripted {
            model,
            delay,
            script,
        } => {
            let mut scripted = match script {
                Some(path) => Scripted::with_script(script_of(name, path)?),
                None => Scripted::new(),
            };
            if let Some(id) = model {
                scripted = scripted.with_model_id(id.as_str());
            }
            if let Some(delay) = delay {
                scripted = scripted.with_delay(*delay);
            }
            Ok(Arc::new(scripted))
        }
        ModelConfig::ChatCompletions {
            model,
            base_url,
            api_key,
        } => {
            let mut config = ProviderConfig::default().with_base_url(base_url);
            if let Some(key) = api_key {
                config = config.with_api_key(key.clone());
            }
            let codec = ChatCompletions::new(Dialect::compatible(name, base_url), model);
            let made = Provider::new(codec, config);
            Ok(Arc::new(made.map_err(|source| AgentsError::Model {
                model: name.to_owned(),
                source,
            })?))
        }
    }
}

fn script_of(name: &str, path: &Path) -> Result<Script, AgentsError> {
    let (model, path) = (name.to_owned(), path.to_owned());
    match std::fs::read_to_string(&path) {
        Ok(text) => Script::from_json(&text).map_err(|source| AgentsError::BadScript {
            model,
            path,
            source,
        }),
        Err(source) => Err(AgentsError::NoScript {
            model,
            path,
            source,
        }),
    }
}
