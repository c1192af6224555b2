//! Threads in a few words.

use loomline_thread::render::RenderOptions;
use loomline_thread::{Json, Object, Thread};

pub(super) const AT: &str = "2026-04-01T10:00:00Z";

pub(super) fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

pub(super) fn text(content: &str) -> Json {
    Json::object([("part_kind", "text".into()), ("content", content.into())])
}

pub(super) fn call(id: &str) -> Json {
    json(&format!(
        r#"{{"part_kind":"tool-call","tool_name":"lookup","tool_call_id":"{id}","args":{{"q":1.0}}}}"#
    ))
}

pub(super) fn answer(id: &str) -> Json {
    json(&format!(
        r#"{{"part_kind":"tool-return","tool_name":"lookup","tool_call_id":"{id}","status":"success","content":"found"}}"#
    ))
}

pub(super) fn retry(id: &str) -> Json {
    json(&format!(
        r#"{{"part_kind":"retry-prompt","tool_name":"lookup","tool_call_id":"{id}","content":"again"}}"#
    ))
}

pub(super) fn message(kind: &str, agent: &str, parts: Vec<Json>) -> Json {
    Object::new()
        .with("message_type", kind)
        .with("timestamp", AT)
        .with("agent_id", agent)
        .with("parts", parts)
        .into()
}

pub(super) fn agent_turn(agent: &str, messages: Vec<Json>) -> Json {
    Object::new()
        .with("turn_type", "agent")
        .with("agent_id", agent)
        .with("started_at", AT)
        .with("completion_status", "complete")
        .with("messages", messages)
        .into()
}

pub(super) fn user_turn(parts: Vec<Json>) -> Json {
    Object::new()
        .with("turn_type", "user")
        .with("submitted_at", AT)
        .with("parts", parts)
        .with("client_metadata", json(r#"{"ui:theme":"dark"}"#))
        .into()
}

pub(super) fn prompt(content: &str) -> Json {
    Json::object([
        ("part_kind", "user-prompt".into()),
        ("content", content.into()),
    ])
}

pub(super) fn thread(turns: Vec<Json>) -> Thread {
    let mut thread = Thread::new("0b6f7f0e-3d3e-4a57-9d0f-4b8e2f6f7a01", AT);
    for (id, name) in [("a", "Ada"), ("b", "Bo")] {
        let agent = Object::new().with("agent_id", id).with("agent_name", name);
        thread.put_agent(id, agent).expect("a registry");
    }
    for turn in turns {
        thread.push_turn(turn).expect("turns");
    }
    thread
}

pub(super) fn options(agent: &str) -> RenderOptions {
    RenderOptions::new(agent)
}
