//! System messages and the payloads of the protocol's own events.

use super::fields::{self, Field, Shape, expected, optional, required};
use super::turns::{Registry, check_registered};
use super::{Report, Rule, instants};
use crate::document::{System, Tier, Version, items};
use crate::json::{Json, Object};
use crate::path::Path;
use crate::versioned::events;

pub(crate) const SYSTEM: &[Field] = &[
    expected("timestamp", Shape::Timestamp),
    required("event_type", Shape::Text),
    expected("event_data", Shape::Any),
    optional("source_agent", Shape::Text),
    optional("target_agents", Shape::Texts),
];

/// The optional member of every payload of a protocol event, since 0.0.4.
pub(crate) const PAYLOAD: &[Field] = &[optional("timestamp", Shape::Timestamp)];

/// The payload of a protocol event (0.0.4 "Tier 1").
pub(crate) struct Payload {
    /// Strings that may be there.
    pub(crate) texts: &'static [&'static str],
    /// The string that the event must have.
    pub(crate) required: Option<&'static str>,
    /// The strings of which the event must have one, if the specification requires no single one.
    one_of: &'static [&'static str],
}

pub(crate) fn payload(event: &str) -> Option<Payload> {
    let (texts, required, one_of): (&'static [_], _, &'static [_]) = match event {
        "agent_handoff" => (&["from", "to", "reason"], None, &["to"]),
        "thread_spawn" => (&["spawned_thread_id"], Some("spawned_thread_id"), &[]),
        "thread_merge" => (
            &["merged_thread_id", "source_thread_id"],
            None,
            &["merged_thread_id", "source_thread_id"],
        ),
        "thread_end" => (&["reason"], None, &[]),
        "error" => (&["message", "code"], None, &["message", "code"]),
        _ => return None,
    };
    Some(Payload {
        texts,
        required,
        one_of,
    })
}

/// Checks a system message.
pub(super) fn check(
    report: &mut Report<'_>,
    path: Path<'_>,
    system: System<'_>,
    registry: &Registry<'_>,
) {
    fields::check(report, path, system.object(), SYSTEM);
    let source = path.key("source_agent");
    check_registered(
        report,
        Rule::AgentRef,
        source,
        system.source_agent(),
        registry,
    );
    let targets = path.key("target_agents");
    for (place, target) in items(system.object(), "target_agents").iter().enumerate() {
        check_registered(
            report,
            Rule::AgentRef,
            targets.index(place),
            target.as_str(),
            registry,
        );
    }
    if let Some(event) = system.event_type()
        && Tier::of(event, &report.version) == Tier::Canonical
    {
        let targeted = system.target_agents().next().is_some();
        check_payload(
            report,
            path,
            ["event_type", "event_data"],
            system.object(),
            event,
            targeted,
        );
    }
}

/// Checks the payload of a protocol event. `places` are the members with its name and its payload;
/// `targeted` states whether the message itself names the agents.
pub(super) fn check_payload(
    report: &mut Report<'_>,
    path: Path<'_>,
    places: [&'static str; 2],
    holder: &Object,
    event: &str,
    targeted: bool,
) {
    let [name_place, data_place] = places;
    let newer = events::newer(event);
    let name = newer.as_deref().unwrap_or(event);
    let name = name.strip_prefix("data-tp-").unwrap_or(name);
    // Before 0.0.4 the names were the protocol's, and the payloads nobody's.
    let rule = if report.version < Version::V0_0_4 {
        Rule::EventPayloadField
    } else {
        Rule::EventPayload
    };
    let Some(payload) = payload(name) else {
        let message = format!("the protocol has no event {event:?}");
        report.add(Rule::EventName, path.key(name_place), message);
        return;
    };
    let path = path.key(data_place);
    let empty = Object::new();
    let data = match holder.get(data_place) {
        None | Some(Json::Null) => &empty,
        Some(Json::Object(object)) => object,
        Some(Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_)) => {
            report.add(rule, path, format!("the payload of {event} is an object"));
            return;
        }
    };
    if report.version >= Version::V0_0_4 {
        fields::check(report, path, data, PAYLOAD);
    } else {
        check_early_instant(report, path, data);
    }
    for key in payload.texts {
        if data
            .get(key)
            .is_some_and(|value| !value.is_null() && value.as_str().is_none())
        {
            report.add(rule, path.key(key), format!("`{key}` is a string"));
        }
    }
    let present = |key: &&str| data.get(key).is_some_and(|value| !value.is_null());
    if let Some(key) = payload.required.filter(|key| !present(key)) {
        report.add(rule, path, format!("`{key}` is missing"));
    }
    let is_handoff = name == "agent_handoff";
    let names_a_fact = payload.one_of.is_empty() || payload.one_of.iter().any(present);
    let names_a_target = is_handoff && targeted;
    if !names_a_fact && !names_a_target {
        let message = format!("{event} has none of {}", payload.one_of.join(", "));
        let rule = if is_handoff && report.version >= Version::V0_0_4 {
            Rule::HandoffTarget
        } else {
            Rule::EventPayloadField
        };
        report.add(rule, path, message);
    }
}

/// Checks a timestamp before 0.0.4: an unreadable one only makes a later upgrade fail.
fn check_early_instant(report: &mut Report<'_>, path: Path<'_>, data: &Object) {
    let legal = |value: &Json| value.is_null() || value.as_str().is_some_and(instants::is_legal);
    if data.get("timestamp").is_some_and(|value| !legal(value)) {
        let message = "`timestamp` is no instant in ISO 8601";
        report.add(Rule::EventPayloadField, path.key("timestamp"), message);
    }
}
