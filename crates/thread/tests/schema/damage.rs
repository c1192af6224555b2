//! Ways to change a document.

use crate::generate::{A, document};
use loomline_thread::Version;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// What a value may become.
pub(crate) fn damages() -> Vec<Value> {
    let mut damages: Vec<Value> = [
        "",
        "x",
        "user",
        "agent",
        "system",
        "request",
        "response",
        "text",
        "tool-return",
        "system-prompt",
        "complete",
        "interrupted",
        "binary",
        "success",
        "data-tp-error",
        "data-tp-thread_spawn",
        "system.x",
        "tool_return",
        "image",
        "2026-04-01T12:00:00",
        "20260401T1200Z",
        "2026-13-01T12:00:00Z",
        "https:///x",
        "urn:x:y",
        "ftp://h/x",
    ]
    .map(Value::from)
    .to_vec();
    damages.extend([
        json!(null),
        json!(true),
        json!(3),
        json!(-1),
        json!(1.5),
        json!([]),
        json!({}),
        json!([null]),
        json!(["x"]),
        json!([{}]),
        json!({"plain": 1}),
        json!([{"part_kind": "system-prompt"}]),
        json!([{"name": "n"}]),
        json!({"timestamp": "today"}),
    ]);
    damages
}

/// The pointer of every value below the root.
pub(crate) fn places(document: &Value) -> Vec<String> {
    let mut open = vec![(String::new(), document)];
    let mut found = Vec::new();
    while let Some((place, value)) = open.pop() {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    open.push((format!("{place}/{index}"), item));
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    open.push((format!("{place}/{key}"), value));
                }
            }
            _ => {}
        }
        if !place.is_empty() {
            found.push(place);
        }
    }
    found
}

/// Takes a member or an element out.
pub(crate) fn remove(document: &mut Value, place: &str) {
    let (above, key) = place.rsplit_once('/').expect("a place below the root");
    match document.pointer_mut(above).expect("a place") {
        Value::Array(items) => {
            items.remove(key.parse().expect("an index"));
        }
        Value::Object(members) => {
            members.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        _ => panic!("no container at {above}"),
    }
}

/// Adds a member that nobody knows to every object.
pub(crate) fn add_members(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(add_members),
        Value::Object(members) => {
            let is_registry = members.contains_key(A);
            for (key, value) in members.iter_mut() {
                if key != "client_metadata" {
                    add_members(value);
                }
            }
            if !is_registry {
                let unknown = Map::from_iter([("deep".to_owned(), json!([1, null]))]);
                members.insert("x_unknown_member".to_owned(), unknown.into());
            }
        }
        _ => {}
    }
}

/// A document that was valid before some of its values were replaced or taken out.
pub(crate) fn damaged(version: Version) -> impl Strategy<Value = Value> {
    let damage = (any::<Index>(), proptest::option::of(select(damages())));
    (document(version), vec(damage, 1..4)).prop_map(|(mut document, damages)| {
        for (at, damage) in damages {
            let places = places(&document);
            let place = &places[at.index(places.len())];
            match damage {
                None => remove(&mut document, place),
                Some(damage) => *document.pointer_mut(place).expect("a place") = damage,
            }
        }
        document
    })
}
