//! Documents of our own, rich ones and random ones.

use loomline_thread::Version;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};

pub(crate) const A: &str = "5e0c7e0e-64c2-4a3f-9a43-3a2b6f0d1c01";
const B: &str = "5e0c7e0e-64c2-4a3f-9a43-3a2b6f0d1c02";
const AT: &str = "2026-04-01T12:00:00Z";

/// A valid document that has an object of every type of its version.
pub(crate) fn rich(version: &Version) -> Value {
    let all: Vec<usize> = (0..64).collect();
    match version {
        Version::V1_0_0 => root(version, &all, vec![]),
        _ => root(
            version,
            &all,
            vec![
                user(version, &all),
                agent(version, &all, 1, false),
                agent(version, &[], 0, true),
            ],
        ),
    }
}

/// A valid document.
pub(crate) fn document(version: Version) -> impl Strategy<Value = Value> {
    let choice = || subsequence((0..64).collect::<Vec<_>>(), 0..64);
    let turns = vec((any::<bool>(), choice(), 0usize..3, any::<bool>()), 0..4);
    (choice(), turns).prop_map(move |(chosen, turns)| {
        let turns = turns
            .into_iter()
            .map(|(is_user, chosen, n_cycles, interrupted)| {
                if is_user {
                    user(&version, &chosen)
                } else {
                    agent(&version, &chosen, n_cycles, interrupted)
                }
            });
        root(&version, &chosen, turns.collect())
    })
}

/// The members that are chosen; what is not optional is always.
fn members(chosen: &[usize], always: Value, optional: Value) -> Value {
    let (Value::Object(mut all), Value::Object(optional)) = (always, optional) else {
        panic!("members");
    };
    let optional = optional.into_iter().enumerate();
    all.extend(
        optional
            .filter(|(place, _)| chosen.contains(place))
            .map(|(_, member)| member),
    );
    Value::Object(all)
}

fn root(version: &Version, chosen: &[usize], turns: Vec<Value>) -> Value {
    let config = json!({"agent_id": A, "agent_name": "A", "created_at": AT});
    let more =
        json!({"model_name": "m", "provider_name": "p", "config_ref": "https://example.org/a"});
    let mut agents = json!({
        A: members(chosen, config, more),
        B: {"agent_id": B, "agent_name": "B", "created_at": AT, "x": null},
    });
    let mut optional = json!({"metadata": {"k": [1.5, null]}, "x_unknown": {"y": []}});
    let always = json!({"version": version.as_str(), "thread_id": "0d0a44f3-2f5f-4f0c-8f7e-0e6b1c2d3e01",
        "created_at": AT, "updated_at": "2026-04-01T12:30:00.25+02:00", "title": "T"});
    if *version == Version::V1_0_0 {
        agents[A]["agent_identifier"] = json!("a_v1");
        agents[B]["agent_identifier"] = json!("b_v1");
        optional["parent_thread_id"] = json!("0d0a44f3-2f5f-4f0c-8f7e-0e6b1c2d3e02");
    } else if *version >= Version::V0_0_3 {
        optional["relationships"] = json!({"links": [
            {"thread_id": "0d0a44f3-2f5f-4f0c-8f7e-0e6b1c2d3e03", "relation": "referenced", "metadata": {"a": 1}},
            {"thread_id": "0D0A44F3-2F5F-4F0C-8F7E-0E6B1C2D3E04", "relation": "of_our_own"},
        ]});
    }
    let mut root = members(chosen, always, optional);
    root["agents"] = agents;
    if *version == Version::V1_0_0 {
        root["actions"] = actions(chosen);
    } else {
        root["turns"] = turns.into();
    }
    root
}

/// The values that are chosen.
fn pick(chosen: &[usize], values: Value) -> Vec<Value> {
    let Value::Array(values) = values else {
        panic!("values");
    };
    let values = values.into_iter().enumerate();
    values
        .filter(|(place, _)| chosen.contains(place))
        .map(|(_, value)| value)
        .collect()
}

fn attachments() -> Value {
    json!([
        {"name": "a.pdf", "media_type": "application/pdf", "url": "https://example.org/a.pdf", "size_bytes": 12},
        {"name": "b.txt", "media_type": "text/plain", "data": "aGk=", "url": null},
    ])
}

fn user(version: &Version, chosen: &[usize]) -> Value {
    let mut content = vec![json!("Look:")];
    for kind in ["image-url", "audio-url", "video-url", "document-url"] {
        content.push(
            json!({"kind": kind, "url": "https://example.org/x", "identifier": "x",
            "force_download": true, "media_type": "image/png", "vendor_metadata": {"v": 1}}),
        );
    }
    content.push(
        json!({"kind": "binary", "data": "aGk=", "media_type": "image/png", "identifier": "y"}),
    );
    content.push(json!({"kind": "of-our-own", "z": 1}));
    let parts = json!([
        {"part_kind": "user-prompt", "content": pick(chosen, content.into()), "attachments": attachments()},
        {"part_kind": "user-prompt", "content": "Hello"},
        {"part_kind": "custom:seal", "content": 5},
    ]);
    let mut optional = json!({"attachments": attachments(), "x": 1});
    if *version >= Version::V0_0_3 {
        optional["client_metadata"] = json!({"web:locale": "en", "a.b": null, "c/d": {}});
    }
    let always = json!({"turn_type": "user", "submitted_at": AT, "parts": pick(chosen, parts)});
    members(chosen, always, optional)
}

/// A run: each cycle calls three tools and answers them.
fn agent(version: &Version, chosen: &[usize], n_cycles: usize, interrupted: bool) -> Value {
    let mut messages = Vec::new();
    for cycle in 0..n_cycles {
        messages.push(response(chosen, cycle));
        messages.push(answers(version, chosen, cycle));
    }
    let said = json!([
        {"part_kind": "text", "content": "Done.", "id": "t1"},
        {"part_kind": "file", "content": {"data": "aGk=", "media_type": "image/png", "identifier": "f"}, "id": null},
        {"part_kind": "custom:x"},
    ]);
    let mut parts = pick(chosen, said);
    parts.push(json!({"part_kind": "text", "content": ""}));
    messages
        .push(json!({"message_type": "response", "timestamp": AT, "agent_id": A, "parts": parts}));
    messages.extend(pick(chosen, events(version)));
    let always =
        json!({"turn_type": "agent", "agent_id": A, "started_at": AT, "messages": messages});
    let usage = json!({"total_usage": {"input_tokens": 1, "output_tokens": 2, "thinking_tokens": null, "total_tokens": 3}});
    let mut turn = members(chosen, always, usage);
    if *version < Version::V0_0_4 {
        turn["completed_at"] = json!(AT);
    } else if interrupted {
        turn["completion_status"] = json!("interrupted");
        turn["interruption"] = json!({"reason": "timeout", "interrupted_at": AT});
        turn["completed_at"] = json!(null);
    } else {
        turn["completion_status"] = json!("complete");
        turn["completed_at"] = json!(AT);
        turn["interruption"] = json!(null);
    }
    turn
}

fn response(chosen: &[usize], cycle: usize) -> Value {
    let call = |id: &str, args: Value| {
        let id = format!("{id}{cycle}");
        json!({"part_kind": "tool-call", "tool_name": id, "tool_call_id": id, "args": args})
    };
    let parts = json!([
        {"part_kind": "thinking", "content": "Hm", "signature": "s", "provider_name": "p", "thinking_id": "i"},
        {"part_kind": "text", "content": "Wait."},
        call("a", json!({"x": 1})),
        call("b", json!("{\"x\"")),
        call("c", json!(null)),
    ]);
    let always =
        json!({"message_type": "response", "timestamp": AT, "agent_id": A, "parts": parts});
    let optional = json!({"model_name": "m", "provider_name": "p", "provider_response_id": "r",
        "usage": {"input_tokens": 0, "output_tokens": 9}, "finish_reason": "tool_call"});
    members(chosen, always, optional)
}

fn answers(version: &Version, chosen: &[usize], cycle: usize) -> Value {
    let [a, b, c] = ["a", "b", "c"].map(|id| format!("{id}{cycle}"));
    let mut second =
        json!({"part_kind": "tool-return", "tool_name": b, "tool_call_id": b, "status": "error"});
    if *version >= Version::V0_0_3 {
        let always = json!({"uri": "S3://bucket/b%20c"});
        let hash = format!("sha256:{}", "0123456789abcdefABCDEF0123456789".repeat(2));
        let optional = json!({"hash": hash, "size_bytes": 131_072, "media_type": "text/plain"});
        second["content_ref"] = members(chosen, always, optional);
    } else {
        second["content"] = json!(null);
    }
    let parts = json!([
        {"part_kind": "tool-return", "tool_name": a, "tool_call_id": a, "status": "success", "content": [1], "metadata": 1},
        second,
        {"part_kind": "retry-prompt", "tool_name": c, "tool_call_id": c, "content": [{"type": "missing"}]},
    ]);
    json!({"message_type": "request", "timestamp": AT, "agent_id": A, "parts": parts, "instructions": null})
}

fn events(version: &Version) -> Value {
    let event = |name: &str, data: Value| json!({"message_type": "system", "timestamp": AT, "event_type": name, "event_data": data});
    if *version < Version::V0_0_4 {
        let mut handoff = event("agent.handoff", json!({"to": B}));
        handoff["source_agent"] = json!(A);
        return json!([
            handoff,
            event("state.update", json!(5)),
            event("meta:x", json!(null))
        ]);
    }
    let mut handoff = event(
        "data-tp-agent_handoff",
        json!({"from": A, "to": B, "reason": null, "timestamp": AT}),
    );
    handoff["source_agent"] = json!(A);
    handoff["target_agents"] = json!([B, A]);
    json!([
        handoff,
        event("data-tp-thread_spawn", json!({"spawned_thread_id": "t"})),
        event("data-tp-thread_merge", json!({"merged_thread_id": "t"})),
        event("data-tp-thread_end", json!(null)),
        event("data-tp-error", json!({"message": "m", "code": "c"})),
        event("data-tp-of_tomorrow", json!(5)),
        event("data-app-x", json!("x")),
    ])
}

fn actions(chosen: &[usize]) -> Value {
    let usage = json!({"input_tokens": 1});
    let content = json!([
        {"type": "text", "text": "Look"},
        {"type": "image", "image_url": "https://example.org/x", "media_type": "image/png"},
        {"type": "image", "image_base64": "aGk=", "image_url": null},
        {"type": "audio", "x": 1},
    ]);
    let actions = json!([
        {"action_type": "user_message", "content": pick(chosen, content.clone()), "attachments": attachments()},
        {"action_type": "user_message", "content": "Hello", "action_id": "u1"},
        {"action_type": "thinking", "agent_id": A, "content": "Hm", "signature": "s", "provider_name": "p",
            "thinking_id": "i", "usage": usage},
        {"action_type": "tool_call", "agent_id": A, "tool_name": "t", "tool_call_id": "c", "args": {"x": 1}},
        {"action_type": "tool_return", "tool_name": "t", "tool_call_id": "c", "status": "success", "content": null},
        {"action_type": "assistant_message", "agent_id": B, "content": "Done", "finish_reason": "stop", "usage": usage},
        {"action_type": "assistant_message", "agent_id": B, "content": content},
        {"action_type": "system.state_update", "data": {"x": 1}},
    ]);
    let answered = chosen.contains(&3) && chosen.contains(&4);
    let kept = |place: &usize| answered || ![3, 4].contains(place);
    let chosen: Vec<_> = chosen.iter().copied().filter(kept).collect();
    let mut actions = pick(&chosen, actions);
    for (place, action) in actions.iter_mut().enumerate() {
        action["sequence"] = json!(place + 1);
        action["timestamp"] = json!(AT);
    }
    actions.into()
}
