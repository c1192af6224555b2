//! Keeping the agents that the merged turns name.

use super::{Conflict, ConflictKind, Merged};
use crate::document::{Message, Thread, Turn};
use crate::json::{Json, Object};
use crate::path::{Step, pointer};
use std::collections::BTreeSet;

/// Puts back each agent that one side removed and that the merged turns, or the conflicts that
/// may yet become turns, name.
pub(super) fn restore(merged: &mut Merged, roots: [&Object; 3]) {
    let registries = roots.map(|root| root.get("agents").and_then(Json::as_object));
    let [Some(base), Some(ours), Some(theirs)] = registries else {
        return;
    };
    let Some(kept) = merged.thread.root().get("agents").and_then(Json::as_object) else {
        return;
    };
    let gone: Vec<_> = base
        .iter()
        .filter(|(id, _)| !kept.contains_key(id))
        .collect();
    if gone.is_empty() {
        return;
    }
    let named = named(merged);
    for (id, config) in gone {
        let (one, other) = (ours.get(id), theirs.get(id));
        let Some(left) = one.or(other).filter(|_| named.contains(id)) else {
            continue;
        };
        let restored = merged.thread.put_agent(id, left.clone());
        debug_assert!(restored.is_ok(), "there is a registry");
        merged.conflicts.push(Conflict {
            kind: ConflictKind::RemovedAndChanged,
            pointer: pointer([Step::Key("agents"), Step::Key(id)]),
            base: Some(config.clone()),
            ours: one.cloned(),
            theirs: other.cloned(),
        });
    }
}

/// The agents that turns, messages, events and conflicts name.
fn named(merged: &Merged) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let mut name = |id: Option<&str>| named.extend(id.map(str::to_owned));
    each_name(&merged.thread, &mut name);
    for conflict in &merged.conflicts {
        for value in [&conflict.ours, &conflict.theirs].into_iter().flatten() {
            name(value.as_str());
            let items = value.as_array().unwrap_or(std::slice::from_ref(value));
            for item in items {
                turn(item, &mut name);
                message(item, &mut name);
            }
        }
    }
    named
}

fn each_name(thread: &Thread, name: &mut impl FnMut(Option<&str>)) {
    let turns = thread.root().get("turns").and_then(Json::as_array);
    for json in turns.unwrap_or_default() {
        turn(json, name);
    }
}

fn turn(json: &Json, name: &mut impl FnMut(Option<&str>)) {
    if let Turn::Agent(turn) = Turn::new(json) {
        name(turn.agent_id());
        let messages = turn.object().get("messages").and_then(Json::as_array);
        for json in messages.unwrap_or_default() {
            message(json, name);
        }
    }
}

fn message(json: &Json, name: &mut impl FnMut(Option<&str>)) {
    match Message::new(json) {
        Message::Request(request) => name(request.agent_id()),
        Message::Response(response) => name(response.agent_id()),
        Message::System(event) => {
            name(event.source_agent());
            event.target_agents().for_each(|id| name(Some(id)));
            if event.event_type().is_some_and(is_handoff) {
                let to = event.event_data().and_then(|data| data.get("to"));
                name(to.and_then(Json::as_str));
            }
        }
        Message::Unknown(_) => {}
    }
}

/// Whether an event hands over to another agent, by its name since 0.0.4 or before.
fn is_handoff(event_type: &str) -> bool {
    matches!(event_type, "data-tp-agent_handoff" | "agent.handoff")
}
