//! System messages and the payloads of the protocol's own events.

use super::context::Context;
use super::ty::{Type, is, member, object_or_null, reference, texts, when};
use crate::document::Version;
use crate::json::Object;
use crate::validate::events::{PAYLOAD, SYSTEM, payload};
use crate::validate::fields::{Shape, optional, required};
use crate::versioned::events::CANONICAL;

/// System messages and, since 0.0.4, the payloads of the protocol's events.
pub(super) fn types(context: Context<'_>) -> Vec<(&'static str, Object)> {
    let mut system = Type::new(context, "SystemMessage")
        .tagged("message_type", &["system"])
        .fields(SYSTEM);
    if *context.version < Version::V0_0_4 {
        return vec![system.finish()];
    }
    let mut payloads = Vec::new();
    for (_, event) in CANONICAL {
        let Some((name, ty, must)) = carried(context, event) else {
            continue;
        };
        let holder = if must {
            member("event_data", reference(name)).with("required", texts(&["event_data"]))
        } else {
            member("event_data", object_or_null(name))
        };
        system = system.rule(when(is("event_type", &[event]), holder));
        payloads.push((name, ty));
    }
    let mut types = vec![system.finish()];
    types.extend(payloads);
    types
}

/// The name of a payload, its type, and whether the event requires it.
fn carried(context: Context<'_>, event: &str) -> Option<(&'static str, Object, bool)> {
    let name = event.strip_prefix("data-tp-")?;
    let payload = payload(name)?;
    let ty = match name {
        "agent_handoff" => "AgentHandoff",
        "thread_spawn" => "ThreadSpawn",
        "thread_merge" => "ThreadMerge",
        "thread_end" => "ThreadEnd",
        "error" => "ErrorEvent",
        _ => return None,
    };
    let mut fields = Vec::new();
    for text in payload.texts {
        let field = if payload.required == Some(*text) {
            required
        } else {
            optional
        };
        fields.push(field(text, Shape::Text));
    }
    let (ty, schema) = Type::new(context, ty)
        .fields(&fields)
        .fields(PAYLOAD)
        .finish();
    Some((ty, schema, payload.required.is_some()))
}
