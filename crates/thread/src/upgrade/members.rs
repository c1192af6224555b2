//! The members of actions under their names since 2.0.0.

use crate::json::{Json, Object};

/// The prefix of a member whose name 2.0.0 uses for another purpose.
const FOREIGN: &str = "1.0.0:";

/// The members of an action, or of a part of one, in order: some dropped, some renamed. Members at
/// the place of a renamed or reserved one get a name of their own.
pub(super) fn rewrite(
    source: Object,
    dropped: &[&str],
    renamed: &[(&str, &str)],
    reserved: &[&str],
) -> Object {
    let foreign = |key: &str| {
        let goes = dropped.contains(&key) || renamed.iter().any(|(old, _)| *old == key);
        let needed = renamed.iter().any(|(_, new)| *new == key) || reserved.contains(&key);
        needed && !goes
    };
    let names: Vec<Box<str>> = source
        .keys()
        .filter(|key| foreign(key))
        .map(|key| spare(&source, key))
        .collect();
    let mut names = names.into_iter();
    let members = source.into_iter().filter_map(|(key, value)| {
        if let Some((_, new)) = renamed.iter().find(|(old, _)| **old == *key) {
            return Some((Box::from(*new), value));
        }
        if foreign(&key) {
            return Some((names.next()?, value));
        }
        (!dropped.contains(&&*key)).then_some((key, value))
    });
    members.collect()
}

/// A name for a member that `taken` does not have.
pub(super) fn spare(taken: &Object, key: &str) -> Box<str> {
    let mut name = format!("{FOREIGN}{key}");
    while taken.contains_key(&name) {
        name.insert_str(0, FOREIGN);
    }
    name.into()
}

/// An action as a part; `message_at` is the instant of the message that it goes into.
pub(super) fn part(action: Object, kind: &str, message_at: Option<&Json>) -> Object {
    let mut dropped = vec!["sequence"];
    if action.get_str("agent_id").is_some() {
        dropped.push("agent_id");
    }
    if action.get("timestamp") == message_at {
        dropped.push("timestamp");
    }
    let mut part = rewrite(action, &dropped, &[("action_type", "part_kind")], &[]);
    part.insert("part_kind", kind);
    part
}

/// An action that is a message by itself: an event, or of a type that 1.0.0 does not have.
pub(super) fn message(action: Object) -> Object {
    let action_type = action.get_str("action_type").unwrap_or_default().to_owned();
    match action_type.strip_prefix("system.") {
        Some(event_type) => system(action, event_type),
        None => unknown(action, &action_type),
    }
}

fn system(action: Object, event_type: &str) -> Object {
    let renamed = [("action_type", "event_type"), ("data", "event_data")];
    let members = rewrite(action, &["sequence"], &renamed, &["message_type"]);
    let mut message: Object = std::iter::once(("message_type".into(), "system".into()))
        .chain(members)
        .collect();
    message.insert("event_type", event_type);
    message
}

fn unknown(action: Object, action_type: &str) -> Object {
    let mut message = rewrite(
        action,
        &["sequence"],
        &[("action_type", "message_type")],
        &[],
    );
    if ["request", "response", "system"].contains(&action_type) {
        message.insert("message_type", format!("{FOREIGN}{action_type}"));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_whose_name_is_needed_gets_another() {
        let action = r#"{"part_kind":1,"action_type":"thinking","1.0.0:part_kind":2,"x":3}"#;
        let action = Json::parse(action).unwrap().into_object().unwrap();
        assert_eq!(
            Json::from(part(action, "thinking", None)).to_text(),
            r#"{"1.0.0:1.0.0:part_kind":1,"part_kind":"thinking","1.0.0:part_kind":2,"x":3}"#
        );
    }
}
