//! System messages and the payloads of the protocol's own events.

use super::fields::{self, Field, Shape, expected, optional, required};
use super::turns::{Registry, check_registered};
use super::{Report, Rule};
use crate::document::{System, Tier, Version, items};
use crate::json::{Json, Object};
use crate::path::Path;

const SYSTEM: &[Field] = &[
    expected("timestamp", Shape::Timestamp),
    required("event_type", Shape::Text),
    expected("event_data", Shape::Any),
    optional("source_agent", Shape::Text),
    optional("target_agents", Shape::Texts),
];

/// What an event of the protocol carries (0.0.4 "Tier 1").
struct Payload {
    /// Strings that may be there.
    texts: &'static [&'static str],
    /// The string without which the spec's event says nothing.
    required: Option<&'static str>,
    /// The strings one of which says which fact it is, where the spec names none.
    one_of: &'static [&'static str],
}

fn payload(event: &str) -> Option<Payload> {
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
    if report.version < Version::V0_0_4 {
        return;
    }
    if let Some(event) = system.event_type()
        && Tier::of(event, &report.version) == Tier::Canonical
    {
        check_event(report, path, system, event);
    }
}

fn check_event(report: &mut Report<'_>, path: Path<'_>, system: System<'_>, event: &str) {
    let name = event.strip_prefix("data-tp-").unwrap_or(event);
    let Some(payload) = payload(name) else {
        let message = format!("the protocol has no event {event:?}");
        report.add(Rule::EventName, path.key("event_type"), message);
        return;
    };
    let path = path.key("event_data");
    let empty = Object::new();
    let data = match system.event_data() {
        None | Some(Json::Null) => &empty,
        Some(Json::Object(object)) => object,
        Some(Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_)) => {
            report.add(
                Rule::EventPayload,
                path,
                format!("the payload of {event} is an object"),
            );
            return;
        }
    };
    fields::check(
        report,
        path,
        data,
        &[optional("timestamp", Shape::Timestamp)],
    );
    for key in payload.texts {
        if data
            .get(key)
            .is_some_and(|value| !value.is_null() && value.as_str().is_none())
        {
            report.add(
                Rule::EventPayload,
                path.key(key),
                format!("`{key}` is a string"),
            );
        }
    }
    let present = |key: &&str| data.get(key).is_some_and(|value| !value.is_null());
    if let Some(key) = payload.required.filter(|key| !present(key)) {
        report.add(Rule::EventPayload, path, format!("`{key}` is missing"));
    }
    let targeted = name == "agent_handoff" && system.target_agents().next().is_some();
    if !payload.one_of.is_empty() && !payload.one_of.iter().any(present) && !targeted {
        let message = format!("{event} has none of {}", payload.one_of.join(", "));
        report.add(Rule::EventPayloadField, path, message);
    }
}
