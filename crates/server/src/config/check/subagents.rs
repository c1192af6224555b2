//! Sub-agents.

use super::Checker;
use crate::config::file::Subagent;
use crate::config::{ConfigError, PromptTemplate, SubagentConfig};

impl Checker<'_> {
    pub(super) fn subagent(&self, subagent: Subagent) -> Result<SubagentConfig, ConfigError> {
        self.parameters(&subagent.parameters)?;
        let (prompt, schema) = (&subagent.prompt, subagent.parameters.get_ref());
        let template = PromptTemplate::parse(prompt.get_ref(), schema);
        let template = template.map_err(|error| self.wrong(prompt, error.to_string()))?;
        Ok(SubagentConfig {
            agent: subagent.agent.into_inner(),
            name: subagent.name.into_inner(),
            description: subagent.description,
            parameters: subagent.parameters.into_inner(),
            prompt: template,
            propagate_events: subagent.propagate_events.unwrap_or(true),
        })
    }
}
