//! Events of a step as system messages of its turn (0.0.4 "Tier 1").

use super::agents::{Registry, agent_id};
use super::clock::{Clock, rfc3339};
use super::delta::{is_plain, read_object, stored};
use crate::parts::{EventPart, ThreadEvent};
use thread::document::{AgentTurn, CompletionStatus};
use thread::{Json, Object};
use timeline::{PartRecord, Reaction};

/// The agent of events that belong to the thread and to no execution.
pub(super) const SYSTEM: &str = "system";

/// The events of one step, as messages around the returns of its calls.
#[derive(Default)]
pub(super) struct Events<'a> {
    before: Vec<(EventPart, &'a PartRecord)>,
    after: Vec<(EventPart, &'a PartRecord)>,
}

impl<'a> Events<'a> {
    /// Accepts a part if it is an event. A handoff happens after the step; all other events happen
    /// while the step's tools run.
    pub(super) fn take(&mut self, part: &'a PartRecord) -> bool {
        let Some(event) = EventPart::read(&part.part) else {
            return false;
        };
        if event.is_handoff() {
            self.after.push((event, part));
        } else {
            self.before.push((event, part));
        }
        true
    }

    /// The messages before the returns.
    pub(super) fn before(&self, agent_id: &str, clock: &mut Clock) -> Vec<Json> {
        messages(&self.before, agent_id, clock)
    }

    /// The messages after the returns.
    pub(super) fn after(&self, agent_id: &str, clock: &mut Clock) -> Vec<Json> {
        messages(&self.after, agent_id, clock)
    }
}

fn messages(events: &[(EventPart, &PartRecord)], source: &str, clock: &mut Clock) -> Vec<Json> {
    let message = |(event, part): &(EventPart, &PartRecord)| {
        let mut data = read_object(Some(&event.data));
        let mut target = None;
        if event.is_handoff() {
            data.insert("from", source);
            target = data.get_str("to").map(agent_id);
            if let Some(to) = &target {
                data.insert("to", to.as_str());
            }
        }
        let targets: Option<Json> = target.map(|to| Json::Array(vec![to.into()]));
        Object::new()
            .with("message_type", "system")
            .with("timestamp", clock.at(part.created_at))
            .with("event_type", event.part_type.as_str())
            .with("event_data", data)
            .with("source_agent", source)
            .with_some("target_agents", targets)
            .into()
    };
    events.iter().map(message).collect()
}

/// Registers the targets of handoffs: they are named before their first turn.
pub(super) fn note_targets(reaction: &Reaction, registry: &mut Registry) {
    for part in reaction.steps.iter().flat_map(|step| &step.parts) {
        let event = EventPart::read(&part.part);
        let handoff = event.filter(EventPart::is_handoff);
        if let Some(to) = handoff.and_then(|event| event.data.str_field("to")) {
            registry.note_speaker(&to, rfc3339(part.created_at));
        }
    }
}

/// An event outside of any execution, as a turn with one system message.
pub(super) fn event_turn(event: &ThreadEvent, at: &str) -> Object {
    let id = agent_id(SYSTEM);
    let message = Object::new()
        .with("message_type", "system")
        .with("timestamp", at)
        .with("event_type", event.part_type.as_str())
        .with("event_data", read_object(Some(&event.data)))
        .with("source_agent", id.as_str());
    Object::new()
        .with("turn_type", "agent")
        .with("agent_id", id)
        .with("started_at", at)
        .with("completed_at", at)
        .with("completion_status", CompletionStatus::Complete.as_str())
        .with("messages", Json::Array(vec![message.into()]))
}

/// The event and its instant, if a turn has exactly the form that [`event_turn`] writes.
pub(super) fn read_event_turn(turn: AgentTurn<'_>) -> Option<(ThreadEvent, &str)> {
    let [message] = turn.object().get("messages")?.as_array()? else {
        return None;
    };
    let part_type = message.get("event_type")?.as_str()?;
    let data = stored(message.get("event_data")?).ok()?;
    if !part_type.starts_with("data-") || !is_plain(&data) {
        return None;
    }
    let event = ThreadEvent {
        part_type: part_type.to_owned(),
        id: String::new(),
        data,
    };
    let at = turn.started_at()?;
    let own = at.parse().is_ok_and(|instant| rfc3339(instant) == at);
    (own && event_turn(&event, at) == *turn.object()).then_some((event, at))
}
