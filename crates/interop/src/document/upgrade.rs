//! Documents of earlier versions, read as the newest.

use super::import::ImportError;
use std::borrow::Cow;
use thread::{Json, Object, Thread, Version};

/// Names that 0.0.4 changed (ruling 6).
const EVENTS: [(&str, &str); 5] = [
    ("agent.handoff", "data-tp-agent_handoff"),
    ("thread.spawn", "data-tp-thread_spawn"),
    ("thread.merge", "data-tp-thread_merge"),
    ("thread.end", "data-tp-thread_end"),
    ("error", "data-tp-error"),
];

/// The document in the newest version: all turns of 2.0.0 and 0.0.3 were complete.
pub(crate) fn newest(thread: &Thread) -> Result<Cow<'_, Thread>, ImportError> {
    match thread.version() {
        Version::V0_0_4 => return Ok(Cow::Borrowed(thread)),
        Version::V2_0_0 | Version::V0_0_3 => {}
        version @ (Version::V1_0_0 | Version::Other(_)) => {
            return Err(ImportError::Version(version.as_str().to_owned()));
        }
    }
    let mut thread = thread.clone();
    let root = thread.root_mut();
    root.insert("version", Version::NEWEST.as_str());
    let turns = root.get_mut("turns").and_then(Json::as_array_mut);
    let turns = turns.into_iter().flatten().filter_map(Json::as_object_mut);
    for turn in turns.filter(|turn| turn.get_str("turn_type") == Some("agent")) {
        if !turn.contains_key("completion_status") {
            turn.insert("completion_status", "complete");
        }
        let messages = turn.get_mut("messages").and_then(Json::as_array_mut);
        for message in messages.into_iter().flatten() {
            message.as_object_mut().map(rename_event);
        }
    }
    Ok(Cow::Owned(thread))
}

fn rename_event(message: &mut Object) {
    if message.get_str("message_type") != Some("system") {
        return;
    }
    let Some(name) = message.get_str("event_type") else {
        return;
    };
    let canonical = EVENTS.iter().find(|(old, _)| *old == name);
    let telemetry = || {
        name.strip_prefix("meta:")
            .map(|name| format!("data-sys-{name}"))
    };
    let renamed = canonical
        .map(|(_, new)| (*new).to_owned())
        .or_else(telemetry);
    if let Some(renamed) = renamed {
        message.insert("event_type", renamed);
    }
}
