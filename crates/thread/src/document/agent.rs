//! The view of an agent's configuration.

use crate::json::Object;

/// The entry of an agent in the registry (2.0.0 "Agent Configuration").
#[derive(Clone, Copy, Debug)]
pub struct AgentConfig<'a>(&'a Object);

impl<'a> AgentConfig<'a> {
    pub(crate) fn new(object: &'a Object) -> Self {
        Self(object)
    }

    /// The JSON object.
    #[must_use]
    pub fn object(self) -> &'a Object {
        self.0
    }

    /// The agent's id.
    #[must_use]
    pub fn agent_id(self) -> Option<&'a str> {
        self.0.get_str("agent_id")
    }

    /// The agent's display name.
    #[must_use]
    pub fn agent_name(self) -> Option<&'a str> {
        self.0.get_str("agent_name")
    }

    /// The model of the agent.
    #[must_use]
    pub fn model_name(self) -> Option<&'a str> {
        self.0.get_str("model_name")
    }

    /// The model's provider.
    #[must_use]
    pub fn provider_name(self) -> Option<&'a str> {
        self.0.get_str("provider_name")
    }

    /// When the configuration was created.
    #[must_use]
    pub fn created_at(self) -> Option<&'a str> {
        self.0.get_str("created_at")
    }

    /// The location of the prompt and tool configuration.
    #[must_use]
    pub fn config_ref(self) -> Option<&'a str> {
        self.0.get_str("config_ref")
    }
}
