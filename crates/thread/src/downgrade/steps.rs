//! The steps 0.0.4 → 0.0.3 → 2.0.0.

use crate::cycles::{Finding, Ledger, OpenToolCall, Reason};
use crate::document::{AgentTurn, CompletionStatus, Thread, Turn};
use crate::json::{Json, Object};
use crate::path::Path;
use crate::versioned::{ChangeKind, Changes, events, items_mut, rebuild};
use std::collections::BTreeSet;

/// 0.0.4 → 0.0.3: complete turns only, events with their former names. Returns the index in the
/// source of each remaining turn.
pub(super) fn to_0_0_3(thread: &mut Thread, changes: &mut Changes) -> Vec<usize> {
    let before = unanswered(thread, None);
    let places = drop_interrupted(thread, changes);
    let turns = items_mut(thread.root_mut(), "turns");
    for (turn, place) in turns.iter_mut().zip(&places) {
        let Some(turn) = turn.as_object_mut().filter(|turn| is_agent(turn)) else {
            continue;
        };
        let turns = Path::ROOT.key("turns");
        let path = turns.index(*place);
        for key in ["completion_status", "interruption"] {
            if let Some(value) = turn.remove(key) {
                let what = format!("`{key}`, {}", json_text(&value));
                changes.add(ChangeKind::Dropped, path.key(key).to_pointer(), what);
            }
        }
        let path = path.key("messages");
        for (message, json) in items_mut(turn, "messages").iter_mut().enumerate() {
            let path = path.index(message);
            if let Some(message) = json.as_object_mut() {
                rename(message, changes, path.key("event_type"));
            }
        }
    }
    if places.len() < before.turns {
        for pointer in unanswered(thread, Some(&places)).pointers {
            if !before.pointers.contains(&pointer) {
                let what = "the answer to the call stood in a turn that was dropped";
                changes.add(ChangeKind::Unchanged, pointer, what);
            }
        }
    }
    places
}

fn is_agent(turn: &Object) -> bool {
    turn.get_str("turn_type") == Some("agent")
}

fn json_text(value: &Json) -> String {
    match value {
        Json::String(text) => format!("{text:?}"),
        Json::Null => "null".to_owned(),
        Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            format!("a value of type {}", value.type_name())
        }
    }
}

fn drop_interrupted(thread: &mut Thread, changes: &mut Changes) -> Vec<usize> {
    let mut places = Vec::new();
    let turns = thread.root_mut().get_mut("turns");
    let Some(turns) = turns.and_then(Json::as_array_mut) else {
        return places;
    };
    let mut place = 0;
    turns.retain(|json| {
        let interrupted = match Turn::new(json) {
            Turn::Agent(turn) => interrupted(turn),
            Turn::User(_) | Turn::Unknown(_) => None,
        };
        if let Some(turn) = interrupted {
            let n_messages = turn.messages().len();
            let what = format!("an interrupted turn with {n_messages} messages");
            let pointer = Path::ROOT.key("turns").index(place).to_pointer();
            changes.add(ChangeKind::Dropped, pointer, what);
        } else {
            places.push(place);
        }
        place += 1;
        interrupted.is_none()
    });
    places
}

fn interrupted(turn: AgentTurn<'_>) -> Option<AgentTurn<'_>> {
    (turn.completion_status() == Some(CompletionStatus::Interrupted)).then_some(turn)
}

/// The calls that have no answer and are not pending, by their pointers in the source.
struct Unanswered {
    turns: usize,
    pointers: BTreeSet<String>,
}

fn unanswered(thread: &Thread, places: Option<&[usize]>) -> Unanswered {
    let findings = Ledger::read(thread).into_iter();
    let pointers = findings.filter_map(|finding| match finding {
        Finding::Unanswered { call, reason } if reason != Reason::Pending => {
            let place = |turn: usize| places.map_or(Some(turn), |places| places.get(turn).copied());
            let turn = place(call.turn)?;
            Some(OpenToolCall { turn, ..call }.pointer())
        }
        Finding::Unanswered { .. }
        | Finding::Orphan { .. }
        | Finding::Repeated { .. }
        | Finding::Misplaced { .. }
        | Finding::Renamed { .. } => None,
    });
    Unanswered {
        turns: thread.turns().len(),
        pointers: pointers.collect(),
    }
}

fn rename(message: &mut Object, changes: &mut Changes, path: Path<'_>) {
    if message.get_str("message_type") != Some("system") {
        return;
    }
    let Some(name) = message.get_str("event_type") else {
        return;
    };
    if let Some(older) = events::older(name) {
        let what = format!("{name} is {older}");
        changes.add(ChangeKind::Renamed, path.to_pointer(), what);
        message.insert("event_type", older);
    } else if events::newer(name).is_some() {
        let what = format!("before 0.0.4, {name} has a meaning of its own");
        changes.add(ChangeKind::Unchanged, path.to_pointer(), what);
    }
}

/// 0.0.3 → 2.0.0: drops relationships, client metadata and content references. `places` has the
/// index of each turn in the source.
pub(super) fn to_2_0_0(thread: &mut Thread, changes: &mut Changes, places: &[usize]) {
    let root = thread.root_mut();
    if root.remove("relationships").is_some() {
        let what = "the links to other threads";
        changes.add(ChangeKind::Dropped, "/relationships".to_owned(), what);
    }
    if root.get_str("parent_thread_id").is_some() {
        let what = "an upgrade takes it for the parent that 1.0.0 names";
        changes.add(ChangeKind::Unchanged, "/parent_thread_id".to_owned(), what);
    }
    let turns = Path::ROOT.key("turns");
    for (turn, place) in items_mut(root, "turns").iter_mut().zip(places) {
        let path = turns.index(*place);
        let Some(turn) = turn.as_object_mut() else {
            continue;
        };
        if is_agent(turn) {
            let path = path.key("messages");
            for (message, json) in items_mut(turn, "messages").iter_mut().enumerate() {
                let path = path.index(message);
                if let Some(message) = json.as_object_mut().filter(|message| has_parts(message)) {
                    inline(message, changes, path);
                }
            }
        } else if turn.get_str("turn_type") == Some("user") {
            if turn.remove("client_metadata").is_some() {
                let pointer = path.key("client_metadata").to_pointer();
                changes.add(ChangeKind::Dropped, pointer, "what the client added");
            }
            inline(turn, changes, path);
        }
    }
}

fn has_parts(message: &Object) -> bool {
    matches!(
        message.get_str("message_type"),
        Some("request" | "response")
    )
}

/// Removes the content references from tool returns.
fn inline(holder: &mut Object, changes: &mut Changes, path: Path<'_>) {
    let path = path.key("parts");
    for (place, json) in items_mut(holder, "parts").iter_mut().enumerate() {
        let path = path.index(place);
        let Some(part) = json.as_object_mut() else {
            continue;
        };
        if part.get_str("part_kind") != Some("tool-return") || !part.contains_key("content_ref") {
            continue;
        }
        let pointer = path.key("content_ref").to_pointer();
        changes.add(ChangeKind::Dropped, pointer, "where the content is kept");
        if part.contains_key("content") {
            part.remove("content_ref");
            continue;
        }
        rebuild(part, |key, value| match &*key {
            "content_ref" => [Some(("content".into(), Json::Null))],
            _ => [Some((key, value))],
        });
        changes.add(ChangeKind::Added, path.to_pointer(), "`content` is null");
    }
}
