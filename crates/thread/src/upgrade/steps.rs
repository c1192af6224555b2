//! The steps 2.0.0 → 0.0.3 → 0.0.4.

use super::Origin;
use crate::cycles::{Finding, Ledger, Reason};
use crate::document::{Message, Part, PartKind, Thread, Turn};
use crate::json::{Json, Object};
use crate::versioned::{ChangeKind, Changes, events, items_mut, rebuild};

const PARENT: &str = "parent_thread_id";

/// 2.0.0 → 0.0.3: the parent that 1.0.0 names becomes a link, and members of the document's own
/// get a meaning.
pub(super) fn to_0_0_3(thread: &mut Thread, changes: &mut Changes, origin: &Origin) {
    if thread.root().get("relationships").is_some_and(is_malformed) {
        let what = "0.0.3 has links in `relationships`, and this can't be read as links";
        changes.add(ChangeKind::Unchanged, "/relationships".to_owned(), what);
    }
    for (place, turn) in thread.turns().enumerate() {
        match turn {
            Turn::User(turn) => {
                if present(turn.object(), "client_metadata") {
                    let pointer = format!("{}/client_metadata", origin.turn(place));
                    let what = "0.0.3 reads the turn's own `client_metadata`";
                    changes.add(ChangeKind::Unchanged, pointer, what);
                }
                stored(turn.parts(), changes, |part| origin.part(place, None, part));
            }
            Turn::Agent(turn) => {
                for (message, view) in turn.messages().enumerate() {
                    let pointer = |part| origin.part(place, Some(message), part);
                    match view {
                        Message::Request(request) => stored(request.parts(), changes, pointer),
                        Message::Response(response) => stored(response.parts(), changes, pointer),
                        Message::System(_) | Message::Unknown(_) => {}
                    }
                }
            }
            Turn::Unknown(_) => {}
        }
    }
    link_parent(thread.root_mut(), changes);
}

/// Reports the returns that have a reference to content of their own.
fn stored<'a>(
    parts: impl Iterator<Item = Part<'a>>,
    changes: &mut Changes,
    pointer: impl Fn(usize) -> String,
) {
    for (place, part) in parts.enumerate() {
        let object = part.object();
        if part.kind() == PartKind::ToolReturn
            && object.is_some_and(|object| present(object, "content_ref"))
        {
            let pointer = format!("{}/content_ref", pointer(place));
            let what = "0.0.3 reads the part's own `content_ref`";
            changes.add(ChangeKind::Unchanged, pointer, what);
        }
    }
}

fn present(object: &Object, key: &str) -> bool {
    object.get(key).is_some_and(|value| !value.is_null())
}

/// Whether 0.0.3 can't read a value as relationships.
fn is_malformed(relationships: &Json) -> bool {
    let is_link = |link: &Json| {
        let link = link.as_object();
        link.is_some_and(|link| {
            let metadata = link.get("metadata");
            link.get_str("thread_id").is_some()
                && link.get_str("relation").is_some()
                && metadata.is_none_or(|it| it.is_null() || it.as_object().is_some())
        })
    };
    let links = match relationships {
        Json::Null => None,
        Json::Object(object) => object.get("links").filter(|links| !links.is_null()),
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => return true,
    };
    links.is_some_and(|links| !links.as_array().is_some_and(|it| it.iter().all(is_link)))
}

fn link_parent(root: &mut Object, changes: &mut Changes) {
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
            return changes.add(ChangeKind::Unchanged, pointer, what);
        }
    }
    let what = "the parent is a `spawned_from` link of `relationships`";
    changes.add(ChangeKind::Moved, pointer, what);
}

fn links(relationships: &mut Json) -> Option<&mut Vec<Json>> {
    if relationships.is_null() {
        *relationships = Object::new().into();
    }
    let relationships = relationships.as_object_mut()?;
    if !present(relationships, "links") {
        relationships.insert("links", Json::Array(Vec::new()));
    }
    relationships.get_mut("links")?.as_array_mut()
}

/// 0.0.3 → 0.0.4: every turn was complete, and the protocol's own events have a prefix.
pub(super) fn to_0_0_4(thread: &mut Thread, changes: &mut Changes, origin: &Origin) {
    turns_to_0_0_4(thread, changes, origin);
    unanswered(thread, changes, origin);
}

/// Upgrades the turns from 0.0.3 to 0.0.4, one by one.
pub(super) fn turns_to_0_0_4(thread: &mut Thread, changes: &mut Changes, origin: &Origin) {
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
}

/// Reports the calls without an answer that 0.0.4 does not allow.
pub(super) fn unanswered(thread: &Thread, changes: &mut Changes, origin: &Origin) {
    for finding in Ledger::read(thread) {
        if let Finding::Unanswered { call, reason } = finding
            && reason != Reason::Pending
        {
            let pointer = origin.part(call.turn, Some(call.message), call.part);
            let what = "the call has no answer, which 0.0.4 does not allow here";
            changes.add(ChangeKind::Unchanged, pointer, what);
        }
    }
}

fn complete(turn: &mut Object, changes: &mut Changes, pointer: impl Fn() -> String) {
    if turn.contains_key("completion_status") {
        let what = "0.0.4 reads the turn's own `completion_status`";
        return changes.add(ChangeKind::Unchanged, pointer(), what);
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
        changes.add(ChangeKind::Unchanged, pointer(), what);
    }
}
