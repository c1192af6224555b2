//! Documents of every version, valid or damaged, with unknown members at every level.

use loomline_thread::{Json, Object, Thread, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const AGENTS: [&str; 2] = [
    "9a3b5c7d-1e2f-4a6b-8c9d-0e1f2a3b4c03",
    "1c2d3e4f-5a6b-4c7d-9e8f-a0b1c2d3e404",
];

/// Members no version knows, each with a place to stand.
type Extra = Vec<(u8, Json, Index)>;

fn extra() -> impl Strategy<Value = Extra> {
    let value = prop_oneof![
        Just(Json::Null),
        any::<i64>().prop_map(Json::from),
        "[a-z\"é]{0,3}".prop_map(Json::from),
        Just(Json::parse(r#"{"agent_id":1.50,"x":[null]}"#).expect("JSON")),
    ];
    vec((0u8..6, value, any::<Index>()), 0..2)
}

/// The object with unknown members among its own.
fn spiced(object: Object, extra: &Extra) -> Object {
    let mut members: Vec<_> = object.into_iter().collect();
    for (name, value, place) in extra {
        let place = place.index(members.len() + 1);
        members.insert(place, (format!("x_{name}").into(), value.clone()));
    }
    // A repeated key would take the place of the first and the value of the last.
    let mut seen = Vec::new();
    members.retain(|(key, _)| {
        !seen.contains(key) && {
            seen.push(key.clone());
            true
        }
    });
    members.into_iter().collect()
}

fn at(second: usize) -> String {
    format!("2026-02-03T09:{:02}:{:02}Z", second / 60 % 60, second % 60)
}

/// What a turn is made of: whose it is (a user's without an agent), the number of calls of each
/// cycle and whether their content is kept elsewhere, the events after them.
#[derive(Clone, Debug)]
struct Draft {
    agent: Option<usize>,
    interrupted: bool,
    cycles: Vec<(u8, bool)>,
    events: Vec<&'static str>,
    status_first: bool,
    metadata: bool,
    extra: [Extra; 4],
}

fn draft(events: &'static [&'static str]) -> impl Strategy<Value = Draft> {
    (
        proptest::option::of(0usize..2),
        proptest::bool::weighted(0.25),
        vec((0u8..3, any::<bool>()), 1..3),
        vec(select(events), 0..3),
        any::<bool>(),
        any::<bool>(),
        [extra(), extra(), extra(), extra()],
    )
        .prop_map(
            |(agent, interrupted, cycles, events, status_first, metadata, extra)| Draft {
                agent,
                interrupted,
                cycles,
                events,
                status_first,
                metadata,
                extra,
            },
        )
}

fn payload(event: &str) -> Object {
    match event {
        "data-tp-thread_spawn" | "thread.spawn" => Object::new().with("spawned_thread_id", "t"),
        "data-tp-agent_handoff" | "agent.handoff" => Object::new().with("to", "a"),
        _ => Object::new().with("message", "m"),
    }
}

fn messages(draft: &Draft, agent: &str, clock: &mut usize, refs: bool) -> Vec<Json> {
    let mut messages = Vec::new();
    let mut message = |kind: &str, parts: Vec<Json>| {
        *clock += 1;
        let message = Object::new()
            .with("message_type", kind)
            .with("timestamp", at(*clock))
            .with("agent_id", agent)
            .with("parts", parts);
        messages.push(spiced(message, &draft.extra[1]).into());
    };
    for (cycle, (n_calls, elsewhere)) in draft.cycles.iter().enumerate() {
        let part = |kind: &str, call: u8| {
            Object::new()
                .with("part_kind", kind)
                .with("tool_name", "t")
                .with("tool_call_id", format!("c{cycle}-{call}"))
        };
        let text = Object::new().with("part_kind", "text").with("content", "x");
        let calls = (0..*n_calls).map(|call| part("tool-call", call).with("args", Json::Null));
        let parts = std::iter::once(text).chain(calls);
        message(
            "response",
            parts
                .map(|part| spiced(part, &draft.extra[2]).into())
                .collect(),
        );
        let returns = (0..*n_calls).map(|call| {
            let part = part("tool-return", call).with("status", "success");
            if refs && *elsewhere {
                part.with("content_ref", Object::new().with("uri", "s3://a/b"))
            } else {
                part.with("content", 1i64)
            }
        });
        if *n_calls > 0 {
            message(
                "request",
                returns
                    .map(|part| spiced(part, &draft.extra[2]).into())
                    .collect(),
            );
        }
    }
    for event in &draft.events {
        *clock += 1;
        let event = Object::new()
            .with("message_type", "system")
            .with("timestamp", at(*clock))
            .with("event_type", *event)
            .with("event_data", payload(event));
        messages.push(spiced(event, &draft.extra[3]).into());
    }
    messages
}

/// A valid document of the given version.
fn document(version: &Version, drafts: &[Draft], extra: &Extra, links: bool) -> Thread {
    let newest = *version == Version::V0_0_4;
    let since_0_0_3 = *version >= Version::V0_0_3;
    let mut clock = 0;
    let mut turns = Vec::new();
    for draft in drafts {
        clock += 1;
        let Some(agent) = draft.agent else {
            let prompt = Object::new()
                .with("part_kind", "user-prompt")
                .with("content", "x");
            let mut turn = Object::new()
                .with("turn_type", "user")
                .with("submitted_at", at(clock));
            if draft.metadata && since_0_0_3 {
                turn.insert("client_metadata", Object::new().with("ui:x", 1i64));
            }
            let parts = vec![Json::from(spiced(prompt, &draft.extra[2]))];
            turns.push(Json::from(spiced(
                turn.with("parts", parts),
                &draft.extra[0],
            )));
            continue;
        };
        let interrupted = newest && draft.interrupted;
        let mut turn = Object::new()
            .with("turn_type", "agent")
            .with("agent_id", AGENTS[agent])
            .with("started_at", at(clock));
        let messages = messages(draft, AGENTS[agent], &mut clock, since_0_0_3);
        let status = if interrupted {
            "interrupted"
        } else {
            "complete"
        };
        if newest && draft.status_first {
            turn.insert("completion_status", status);
        }
        if interrupted {
            let why = Object::new()
                .with("reason", "timeout")
                .with("interrupted_at", at(clock));
            turn.insert("interruption", why);
        } else {
            turn.insert("completed_at", at(clock));
        }
        if newest {
            turn.insert("completion_status", status);
        }
        turns.push(spiced(turn.with("messages", messages), &draft.extra[0]).into());
    }
    let agent = |id: &str| {
        Object::new()
            .with("agent_id", id)
            .with("agent_name", "A")
            .with("created_at", at(0))
    };
    let agents: Object = AGENTS
        .iter()
        .map(|id| (*id, spiced(agent(id), extra).into()))
        .collect();
    let mut root = Object::new()
        .with("version", version.as_str())
        .with("thread_id", "0b6f7f0e-3d3e-4a57-9d0f-4b8e2f6f7a01")
        .with("created_at", at(0))
        .with("updated_at", at(clock));
    if links && since_0_0_3 {
        let link = Object::new()
            .with("thread_id", AGENTS[0])
            .with("relation", "referenced");
        let links = vec![Json::from(spiced(link, extra))];
        root.insert("relationships", Object::new().with("links", links));
    }
    Thread::from_root(spiced(
        root.with("agents", agents).with("turns", turns),
        extra,
    ))
}

const NEWEST: &[&str] = &[
    "data-tp-agent_handoff",
    "data-tp-thread_spawn",
    "data-tp-thread_merge",
    "data-tp-error",
    "data-sys-x",
    "data-app-x",
    "data-x",
    "y",
    "error",
    "meta:x",
];

const EARLIER: &[&str] = &[
    "agent.handoff",
    "thread.spawn",
    "thread.merge",
    "error",
    "meta:x",
    "data-app-x",
    "data-x",
    "tool.grant",
];

pub(crate) fn newest() -> impl Strategy<Value = Thread> {
    (vec(draft(NEWEST), 0..5), extra(), any::<bool>())
        .prop_map(|(drafts, extra, links)| document(&Version::V0_0_4, &drafts, &extra, links))
}

pub(crate) fn earlier() -> impl Strategy<Value = Thread> {
    let version = select(vec![Version::V2_0_0, Version::V0_0_3]);
    (version, vec(draft(EARLIER), 0..5), extra(), any::<bool>())
        .prop_map(|(version, drafts, extra, links)| document(&version, &drafts, &extra, links))
}

/// A valid document of 1.0.0: runs of agents between users' messages, the list turned round.
pub(crate) fn actions() -> impl Strategy<Value = Thread> {
    let run = (
        proptest::option::of(0usize..2),
        0u8..3,
        any::<[bool; 4]>(),
        extra(),
    );
    (vec(run, 0..7), any::<bool>(), extra()).prop_map(|(runs, reversed, extra)| {
        let mut actions: Vec<Json> = Vec::new();
        let mut add = |kind: &str, agent: Option<usize>, rest: Object, extra: &Extra| {
            let n = actions.len() + 1;
            let action = Object::new()
                .with("action_type", kind)
                .with("timestamp", at(n))
                .with("sequence", n as u64)
                .with_some("agent_id", agent.map(|agent| AGENTS[agent]));
            let members = action.into_iter().chain(rest).collect();
            actions.push(spiced(members, extra).into());
        };
        for (n, (agent, n_calls, [thought, said, event, usage], extra)) in runs.iter().enumerate() {
            let text = || Object::new().with("content", format!("m{n}"));
            if *event {
                add(
                    "system.meta:x",
                    None,
                    Object::new().with("data", n as u64),
                    extra,
                );
            }
            let Some(_) = agent else {
                add("user_message", None, text(), extra);
                continue;
            };
            if *thought {
                let usage = usage.then(|| Object::new().with("thinking_tokens", 1u32));
                let rest = text().with("provider_name", "p").with_some("usage", usage);
                add("thinking", *agent, rest, extra);
            }
            if *said {
                add("assistant_message", *agent, text(), extra);
            }
            let tool = |call: &u8| {
                Object::new()
                    .with("tool_name", "t")
                    .with("tool_call_id", format!("c{n}-{call}"))
            };
            for call in 0..*n_calls {
                add("tool_call", *agent, tool(&call).with("args", 1u32), extra);
            }
            for call in 0..*n_calls {
                add(
                    "tool_return",
                    None,
                    tool(&call).with("status", "success").with("content", 1u32),
                    extra,
                );
            }
        }
        if reversed {
            actions.reverse();
        }
        let agent = |id: &str| {
            Object::new()
                .with("agent_id", id)
                .with("agent_identifier", id)
                .with("agent_name", "A")
                .with("created_at", at(0))
        };
        let agents: Object = AGENTS
            .iter()
            .map(|id| (*id, spiced(agent(id), &extra).into()))
            .collect();
        let root = Object::new()
            .with("version", "1.0.0")
            .with("thread_id", "0b6f7f0e-3d3e-4a57-9d0f-4b8e2f6f7a01")
            .with("created_at", at(0))
            .with("updated_at", at(99))
            .with("title", "t")
            .with("agents", agents)
            .with("actions", actions);
        Thread::from_root(spiced(root, &extra))
    })
}

pub(crate) fn any_version() -> impl Strategy<Value = Thread> {
    prop_oneof![newest(), earlier(), actions()]
}

/// A document with one value somewhere in it replaced.
pub(crate) fn damaged() -> impl Strategy<Value = Thread> {
    let damage = prop_oneof![
        Just(Json::Null),
        Just(Json::from(7i64)),
        Just(Json::from("x")),
        Just(Json::Array(vec![Json::Null])),
        Just(Json::Object(Object::new()))
    ];
    (any_version(), any::<Index>(), damage).prop_map(|(thread, at, damage)| {
        let mut json = Json::from(thread.into_root());
        let n_values = replace(&mut json, None);
        if n_values > 0 {
            replace(&mut json, Some((at.index(n_values), damage)));
        }
        Thread::from_root(json.into_object().unwrap_or_default())
    })
}

/// Replaces the n-th value but the version; says how many there are.
fn replace(json: &mut Json, damage: Option<(usize, Json)>) -> usize {
    let (place, damage) = damage.unzip();
    let mut damage = damage;
    let mut n_seen = 0;
    let mut open = vec![json];
    while let Some(json) = open.pop() {
        let children: Vec<&mut Json> = match json {
            Json::Array(items) => items.iter_mut().collect(),
            Json::Object(object) => object.values_mut().collect(),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
        };
        for child in children {
            let version = child
                .as_str()
                .is_some_and(|text| Version::KNOWN.iter().any(|known| known.as_str() == text));
            if Some(n_seen) == place
                && !version
                && let Some(damage) = damage.take()
            {
                *child = damage;
            }
            n_seen += 1;
            open.push(child);
        }
    }
    n_seen
}
