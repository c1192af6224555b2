//! Laws that hold for every document.

use loomline_thread::document::CompletionStatus;
use loomline_thread::{
    CanonicalOptions, Json, Number, Object, Profile, Thread, Version, canonical, complete_cycles,
    pending_tool_calls, validate,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Numbers in every spelling that JSON has.
fn number() -> impl Strategy<Value = Json> {
    let odd = [
        "-0",
        "0",
        "1.0",
        "1e2",
        "1E+2",
        "-0.0e-0",
        "12345678901234567890123",
        "18446744073709551616",
    ];
    let odd = odd.map(str::to_owned).to_vec();
    prop_oneof![
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?",
        proptest::sample::select(odd),
    ]
    .prop_map(|text| Json::Number(Number::parse(&text).expect("a number")))
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        number(),
        any::<String>().prop_map(Json::String),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        let member = (any::<String>(), inner.clone());
        prop_oneof![
            vec(inner, 0..6).prop_map(Json::Array),
            vec(member, 0..24).prop_map(Json::object),
        ]
    })
}

/// Members the crate knows by name, with any value, beside others.
fn thread() -> impl Strategy<Value = Thread> {
    let names = [
        "version",
        "title",
        "metadata",
        "agents",
        "turns",
        "relationships",
        "x",
        "y",
    ];
    let key = proptest::sample::select(names.to_vec());
    vec((key, json()), 0..8).prop_map(|members| {
        let root: Object = members.into_iter().collect();
        Thread::from_root(root)
    })
}

/// Writes JSON with its objects turned round and white space between all tokens.
fn turned_round(json: &Json) -> String {
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => format!(" {json}\n"),
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(turned_round).collect();
            format!("[\t{} ]", items.join(","))
        }
        Json::Object(object) => {
            let member = |(key, value): (&str, &Json)| {
                format!("{} :{}", Json::from(key), turned_round(value))
            };
            let mut members: Vec<_> = object.iter().map(member).collect();
            members.reverse();
            format!("{{\r\n{} }}", members.join(" ,"))
        }
    }
}

/// A valid document with one value somewhere in it replaced.
fn damaged() -> impl Strategy<Value = Thread> {
    (any::<proptest::sample::Index>(), json()).prop_map(|(at, damage)| {
        let mut json = Json::parse(include_str!("fixtures/conversation.json")).expect("a fixture");
        let at = at.index(count(&json));
        replace(&mut json, &mut (at + 1), damage);
        Thread::from_root(json.into_object().unwrap_or_default())
    })
}

fn children(json: &mut Json) -> Vec<&mut Json> {
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
        Json::Array(items) => items.iter_mut().collect(),
        Json::Object(object) => object.values_mut().collect(),
    }
}

fn count(json: &Json) -> usize {
    let mut json = json.clone();
    children(&mut json)
        .into_iter()
        .map(|child| 1 + count(child))
        .sum()
}

fn replace(json: &mut Json, left: &mut usize, damage: Json) {
    let mut damage = Some(damage);
    for child in children(json) {
        let inside = 1 + count(child);
        if *left > inside {
            *left -= inside;
            continue;
        }
        *left -= 1;
        match damage.take() {
            Some(damage) if *left == 0 => *child = damage,
            Some(damage) => replace(child, left, damage),
            None => {}
        }
        return;
    }
}

const AGENT: &str = "9a3b5c7d-1e2f-4a6b-8c9d-0e1f2a3b4c03";
const AT: &str = "2026-02-03T09:00:00Z";

fn message(kind: &str, parts: Vec<Json>) -> Json {
    let message = Object::new()
        .with("message_type", kind)
        .with("timestamp", AT)
        .with("agent_id", AGENT);
    message.with("parts", parts).into()
}

fn tool_part(kind: &str, id: u8) -> Json {
    let part = Object::new()
        .with("part_kind", kind)
        .with("tool_name", "t")
        .with("tool_call_id", format!("c{id}"));
    part.with("args", Json::Null)
        .with("content", "")
        .with("status", "success")
        .into()
}

/// A run cut off anywhere: each cycle calls some tools and answers some of those calls, at once
/// or late.
fn run() -> impl Strategy<Value = Vec<Json>> {
    let cycle = (any::<bool>(), vec((0u8..6, 0u8..4), 0..4));
    vec(cycle, 0..6).prop_map(|cycles| {
        let mut messages = Vec::new();
        let mut late = Vec::new();
        for (text, mut calls) in cycles {
            calls.sort_unstable();
            calls.dedup_by_key(|(id, _)| *id);
            let mut parts: Vec<_> = calls
                .iter()
                .map(|(id, _)| tool_part("tool-call", *id))
                .collect();
            if text {
                parts.push(Json::object([
                    ("part_kind", "text".into()),
                    ("content", "x".into()),
                ]));
            }
            messages.push(message("response", parts));
            let now = |how: &u8| *how < 2;
            let mut answers = std::mem::take(&mut late);
            answers.retain(|id| !calls.iter().any(|(called, _)| called == id));
            answers.extend(calls.iter().filter(|(_, how)| now(how)).map(|(id, _)| *id));
            late.extend(calls.iter().filter(|(_, how)| *how == 2).map(|(id, _)| *id));
            let kind = if text { "tool-return" } else { "retry-prompt" };
            if !answers.is_empty() {
                let parts = answers.into_iter().map(|id| tool_part(kind, id)).collect();
                messages.push(message("request", parts));
            }
        }
        messages
    })
}

fn interrupted(messages: Vec<Json>) -> Thread {
    let mut thread = Thread::new("0b6f7f0e-3d3e-4a57-9d0f-4b8e2f6f7a01", AT);
    let agent = Object::new()
        .with("agent_id", AGENT)
        .with("agent_name", "A")
        .with("created_at", AT);
    thread.put_agent(AGENT, agent).expect("a registry");
    let why = Object::new()
        .with("reason", "timeout")
        .with("interrupted_at", AT);
    let turn = Object::new()
        .with("turn_type", "agent")
        .with("agent_id", AGENT)
        .with("started_at", AT);
    let turn = turn
        .with("completion_status", "interrupted")
        .with("interruption", why);
    thread
        .push_turn(turn.with("messages", messages))
        .expect("turns");
    thread
}

proptest! {
    #[test]
    fn every_text_comes_back_byte_for_byte(json in json()) {
        let text = json.to_text();
        let parsed = Json::parse(&text).expect("our own text");
        prop_assert_eq!(&parsed, &json);
        prop_assert_eq!(parsed.to_text(), text);
    }

    #[test]
    fn every_document_comes_back_byte_for_byte(thread in thread()) {
        let text = thread.encode();
        prop_assert_eq!(Thread::decode(&text).expect("our own text").encode(), text);
    }

    #[test]
    fn parsing_agrees_with_serde_json(json in json()) {
        let expected: serde_json::Value = serde_json::from_str(&json.to_text()).expect("JSON");
        prop_assert_eq!(json.to_value().expect("small numbers"), expected);
    }

    #[test]
    fn no_text_makes_decoding_or_validation_panic(text in "[\\[\\]{}\",:0-9a-z\\\\ueE+. -]{0,40}") {
        if let Ok(thread) = Thread::decode(&text) {
            validate(&thread, Profile::Strict);
        }
    }

    #[test]
    fn validation_takes_any_document_and_points_into_it(thread in prop_oneof![thread(), damaged()]) {
        let lenient = validate(&thread, Profile::Lenient);
        let root = Json::Object(thread.root().clone());
        for pending in pending_tool_calls(&thread) {
            prop_assert_eq!(root.pointer(&pending.pointer()), Some(pending.call.json()));
        }
        for violation in &lenient {
            let mut place = violation.pointer.as_str();
            if root.pointer(place).is_none() {
                place = place.rsplit_once('/').map_or("", |(above, _)| above);
            }
            prop_assert!(root.pointer(place).is_some(), "{}", violation);
        }
    }

    #[test]
    fn the_canonical_form_is_canonical(thread in prop_oneof![thread(), damaged()]) {
        let options = CanonicalOptions::default();
        let once = canonical(&thread, options).expect("small numbers");
        let again = Thread::decode(&once).expect("canonical text is JSON");
        prop_assert_eq!(canonical(&again, options).expect("small numbers"), once);
    }

    #[test]
    fn the_canonical_form_ignores_key_order_and_white_space(thread in prop_oneof![thread(), damaged()]) {
        let options = CanonicalOptions::default();
        let text = turned_round(&Json::Object(thread.root().clone()));
        let turned = Thread::decode(&text).expect("JSON");
        let expected = canonical(&thread, options).expect("small numbers");
        prop_assert_eq!(canonical(&turned, options).expect("small numbers"), expected);
    }

    #[test]
    fn what_complete_cycles_keeps_it_keeps_again(run in run()) {
        for ending in [CompletionStatus::Interrupted, CompletionStatus::Complete] {
            let once = complete_cycles(run.clone(), ending);
            prop_assert_eq!(complete_cycles(once.clone(), ending), once);
        }
    }

    #[test]
    fn what_complete_cycles_keeps_is_valid(run in run()) {
        let kept = complete_cycles(run, CompletionStatus::Interrupted);
        let thread = interrupted(kept);
        prop_assert_eq!(thread.version(), Version::V0_0_4);
        let found = validate(&thread, Profile::Strict);
        let found: Vec<_> = found.iter().filter(|v| v.rule.id() != "tp-no-cycle").collect();
        prop_assert!(found.is_empty(), "{:?}", found);
    }
}
