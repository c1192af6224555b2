//! The registry of the agents that took turns.

use super::clock::rfc3339;
use super::delta::read_object;
use super::turns::read_response;
use thread::{Json, Object};
use timeline::{Execution, Reaction};
use uuid::Uuid;

/// The namespace of the ids of this system's agents; it never changes.
const NAMESPACE: Uuid = Uuid::from_u128(0x6f1c_52de_37a4_4c0b_9a5e_7b1d_2f08_c4e3);

/// The name of an agent that a run does not name.
const DEFAULT: &str = "default";

/// The name of an agent without a name.
pub const UNNAMED: &str = "agent";

/// The id of the agent of this name: the same in every document.
pub fn agent_id(name: &str) -> String {
    Uuid::new_v5(&NAMESPACE, name.as_bytes()).to_string()
}

/// The name and id of the agent that ran.
pub(super) fn agent_of(execution: &Execution) -> (String, String) {
    let run = read_object(execution.run.as_ref());
    let name = run.get_str("agent").unwrap_or(DEFAULT).to_owned();
    let imported = run
        .get("threadprotocol")
        .and_then(|kept| kept.get("agent_id"));
    let id = imported
        .and_then(Json::as_str)
        .map_or_else(|| agent_id(&name), str::to_owned);
    (name, id)
}

/// The registry, which grows turn by turn; imported entries stay unchanged.
#[derive(Default)]
pub(super) struct Registry {
    agents: Object,
    imported: Object,
}

impl Registry {
    pub(super) fn new(imported: Object) -> Self {
        Self {
            agents: imported.clone(),
            imported,
        }
    }

    /// Registers the agent of a reaction with its model.
    pub(super) fn note(&mut self, reaction: &Reaction) {
        let (name, id) = agent_of(&reaction.execution);
        if self.imported.contains_key(&id) {
            return;
        }
        let mut answers = reaction.steps.iter().rev();
        let last = answers.find_map(|step| step.response.as_ref());
        let last = last
            .map(|(response, _)| read_response(response))
            .unwrap_or_default();
        let known = self.agents.get(&id).and_then(Json::as_object);
        let known = |key: &str| {
            known
                .and_then(|known| known.get_str(key))
                .map(str::to_owned)
        };
        let created_at = known("created_at");
        let created_at = created_at.unwrap_or_else(|| rfc3339(reaction.execution.created_at));
        let config = Object::new()
            .with("agent_id", id.as_str())
            .with("agent_name", name)
            .with_some("model_name", last.model.or_else(|| known("model_name")))
            .with_some(
                "provider_name",
                last.provider.or_else(|| known("provider_name")),
            )
            .with("created_at", created_at);
        self.agents.insert(id, config);
    }

    /// Registers the author of a message without a run.
    pub(super) fn note_speaker(&mut self, name: &str, created_at: String) {
        let id = agent_id(name);
        if !self.agents.contains_key(&id) {
            let config = Object::new()
                .with("agent_id", id.as_str())
                .with("agent_name", name)
                .with("created_at", created_at);
            self.agents.insert(id, config);
        }
    }

    pub(super) fn into_object(self) -> Object {
        self.agents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_id_follows_from_its_name() {
        assert_eq!(agent_id("demo"), agent_id("demo"));
        assert_ne!(agent_id("demo"), agent_id("other"));
        assert_eq!(agent_id("demo").len(), 36);
    }
}
