//! The agents of an archive's runs.

use crate::archive::Archive;
use crate::convert::AttributedFields;
use crate::document::{UNNAMED, agent_id};
use thread::Object;

/// The agent of a run, from the caller's attribution.
pub(super) struct Agents<'a> {
    /// The entries with a message count, and the number of the message after which each ends.
    counted: Vec<(usize, &'a AttributedFields)>,
    /// The entry that counts none.
    any: Option<&'a AttributedFields>,
}

impl<'a> Agents<'a> {
    pub(super) fn of(attribution: &'a [AttributedFields]) -> Self {
        let mut end = 0_usize;
        let counted = attribution.iter().filter_map(|who| {
            end = end.saturating_add(who.n_messages?);
            Some((end, who))
        });
        let counted = counted.collect();
        let mut rest = attribution.iter();
        Self {
            counted,
            any: rest.find(|who| who.n_messages.is_none() && who.run_id.is_none()),
        }
    }

    /// Registers and returns the agent of a run whose first message is number `place` of its source.
    pub(super) fn registered(&self, archive: &mut Archive, place: usize, at: &str) -> String {
        let first = self.counted.partition_point(|(end, _)| *end <= place);
        let who = self.counted.get(first).map(|(_, who)| *who).or(self.any);
        let name = who.map_or(UNNAMED, |who| who.agent.as_str());
        let id = who.and_then(|who| who.agent_id.clone());
        let id = id.unwrap_or_else(|| agent_id(name));
        let config = Object::new()
            .with("agent_id", id.as_str())
            .with("agent_name", name)
            .with("created_at", at);
        archive.register(&id, config);
        id
    }
}
