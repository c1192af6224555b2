//! The authors of messages, from the view of one agent.

use crate::document::Thread;

/// The registry, seen by one agent.
pub(super) struct Authors<'a> {
    thread: &'a Thread,
    viewing: &'a str,
}

impl<'a> Authors<'a> {
    pub(super) fn new(thread: &'a Thread, viewing: &'a str) -> Self {
        Self { thread, viewing }
    }

    /// The name of an agent other than the viewing one, or its id if the registry has no name.
    pub(super) fn foreign_name(&self, agent_id: Option<&'a str>) -> Option<&'a str> {
        let Some(agent_id) = agent_id else {
            return Some("unknown");
        };
        if agent_id == self.viewing {
            return None;
        }
        let config = self.thread.agent(agent_id);
        config
            .and_then(crate::document::AgentConfig::agent_name)
            .or(Some(agent_id))
    }
}
