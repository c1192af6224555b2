//! Agents as the reactors of a runtime, by name.

use crate::agent::AgentReactor;
use crate::handoff::{self, HandoffError};
use crate::reactor::{Reactor, Reactors};
use agents::Agent;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a registry can't be built from agents.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Two agents have one name.
    #[error("two agents are named {0:?}")]
    Duplicate(String),
    /// The default agent is not among the agents.
    #[error("the default agent {0:?} is none of the agents")]
    NoDefault(String),
    /// An agent can hand over to an agent that does not exist.
    #[error(transparent)]
    Handoff(#[from] HandoffError),
}

/// Agents by name, one of them the default. Each can run as a sub-agent of another, on a thread of
/// its own, and can receive handoffs.
#[derive(Clone)]
pub struct AgentReactors {
    agents: Arc<BTreeMap<String, Arc<AgentReactor>>>,
    default: Arc<str>,
}

impl AgentReactors {
    /// A registry of the agents by their names; `default` answers if a run names none.
    pub fn new(
        agents: impl IntoIterator<Item = Agent>,
        default: &str,
    ) -> Result<Self, RegistryError> {
        let agents: Vec<Agent> = agents.into_iter().collect();
        handoff::check(&agents)?;
        let mut by_name = BTreeMap::new();
        for agent in agents {
            let name = agent.name().to_owned();
            let reactor = Arc::new(AgentReactor::new(agent));
            if by_name.insert(name.clone(), reactor).is_some() {
                return Err(RegistryError::Duplicate(name));
            }
        }
        if !by_name.contains_key(default) {
            return Err(RegistryError::NoDefault(default.to_owned()));
        }
        Ok(Self {
            agents: Arc::new(by_name),
            default: default.into(),
        })
    }
}

impl Reactors for AgentReactors {
    fn find(&self, agent: Option<&str>) -> Option<Arc<dyn Reactor>> {
        let found = self.agents.get(agent.unwrap_or(&self.default))?;
        Some(Arc::clone(found) as Arc<dyn Reactor>)
    }

    fn has(&self, agent: &str) -> bool {
        self.agents.contains_key(agent)
    }

    fn name(&self, agent: Option<&str>) -> Option<String> {
        Some(agent.unwrap_or(&self.default).to_owned())
    }
}
