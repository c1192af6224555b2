//! The steps 2.0.0 → 0.0.3 → 0.0.4.

use super::Origin;
use crate::cycles::{Finding, Ledger, Reason};
use crate::document::Thread;
use crate::json::{Json, Object};
use crate::versioned::{ChangeKind, Changes, events, items_mut, rebuild};

const PARENT: &str = "parent_thread_id";

/// 2.0.0 → 0.0.3: the parent that 1.0.0 names becomes a link.
pub(super) fn to_0_0_3(thread: &mut Thread, changes: &mut Changes) {
    let root = thread.root_mut();
    let Some(parent) = root.get_str(PARENT).map(str::to_owned) else {
        return;
    };
    let pointer = format!("/{PARENT}");
    let link = Json::from(
        Object::new()
            .with("thread_id", parent)
            .with("relation", "spawned_from"),
    );
    match root.get_mut("relationships").map(links) {
        None => {
            let mut link = Some(link);
            rebuild(root, |key, value| match link.take_if(|_| *key == *PARENT) {
                Some(link) => {
                    let links = Object::new().with("links", Json::Array(vec![link]));
                    [Some(("relationships".into(), links.into()))]
                }
                None => [Some((key, value))],
            });
        }
        Some(Some(links)) => {
            links.push(link);
            root.remove(PARENT);
        }
        Some(None) => {
            let what = "`relationships` can't take the link to it";
            return changes.add(ChangeKind::Kept, pointer, what);
        }
    }
    let what = "the parent is a `spawned_from` link of `relationships`";
    changes.add(ChangeKind::Moved, pointer, what);
}

fn links(relationships: &mut Json) -> Option<&mut Vec<Json>> {
    let relationships = relationships.as_object_mut()?;
    if !relationships.contains_key("links") {
        relationships.insert("links", Json::Array(Vec::new()));
    }
    relationships.get_mut("links")?.as_array_mut()
}

/// 0.0.3 → 0.0.4: every turn was complete, and the protocol's own events have a prefix.
pub(super) fn to_0_0_4(thread: &mut Thread, changes: &mut Changes, origin: &Origin) {
    for (place, turn) in items_mut(thread.root_mut(), "turns").iter_mut().enumerate() {
        let Some(turn) = turn.as_object_mut() else {
            continue;
        };
        if turn.get_str("turn_type") == Some("agent") {
            complete(turn, changes, || origin.turn(place));
            for (message, json) in items_mut(turn, "messages").iter_mut().enumerate() {
                let pointer = || origin.message(place, message, "event_type", "action_type");
                if let Some(message) = json.as_object_mut() {
                    rename(message, changes, pointer);
                }
            }
        }
    }
    for finding in Ledger::read(thread) {
        if let Finding::Unanswered { call, reason } = finding
            && reason != Reason::Pending
        {
            let pointer = origin.part(call.turn, Some(call.message), call.part);
            let what = "the call has no answer, which 0.0.4 does not allow here";
            changes.add(ChangeKind::Kept, pointer, what);
        }
    }
}

fn complete(turn: &mut Object, changes: &mut Changes, pointer: impl Fn() -> String) {
    if turn.contains_key("completion_status") {
        let what = "0.0.4 reads the turn's own `completion_status`";
        return changes.add(ChangeKind::Kept, pointer(), what);
    }
    let status = || Some(("completion_status".into(), Json::from("complete")));
    rebuild(turn, |key, value| {
        let before = if *key == *"messages" { status() } else { None };
        [before, Some((key, value))]
    });
    if !turn.contains_key("completion_status") {
        turn.insert("completion_status", "complete");
    }
    let what = "`completion_status` is `complete`";
    changes.add(ChangeKind::Added, pointer(), what);
}

fn rename(message: &mut Object, changes: &mut Changes, pointer: impl Fn() -> String) {
    if message.get_str("message_type") != Some("system") {
        return;
    }
    let Some(name) = message.get_str("event_type") else {
        return;
    };
    if let Some(newer) = events::newer(name) {
        let what = format!("{name} is {newer}");
        changes.add(ChangeKind::Renamed, pointer(), what);
        message.insert("event_type", newer);
    } else if events::is_newer(name) {
        let what = format!("0.0.4 gives {name} a meaning of its own");
        changes.add(ChangeKind::Kept, pointer(), what);
    }
}
