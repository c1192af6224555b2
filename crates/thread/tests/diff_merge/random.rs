//! Documents made at random, and random changes of them.

use crate::json;
use loomline_thread::{Json, Number, Object, Thread};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Few values, some of them one number in several spellings, so that things come to be alike.
pub(crate) fn value() -> impl Strategy<Value = Json> {
    let scalars = [
        "null",
        "true",
        "1",
        "1.0",
        "1e0",
        "2",
        "\"a\"",
        "\"b\"",
        "\"a longer text\"",
    ];
    let leaf = select(scalars.map(json).to_vec());
    leaf.prop_recursive(2, 8, 3, |inner| {
        let member = (select(vec!["k", "l", "m/n~"]), inner.clone());
        prop_oneof![
            vec(inner, 0..4).prop_map(Json::Array),
            vec(member, 0..3).prop_map(Json::object),
        ]
    })
}

fn members(names: &'static [&'static str]) -> impl Strategy<Value = Vec<(&'static str, Json)>> {
    vec((select(names), value()), 0..3)
}

pub(crate) fn part() -> impl Strategy<Value = Json> {
    let kind = select(vec![
        "text",
        "thinking",
        "tool-call",
        "tool-return",
        "custom:x",
    ]);
    let call = select(vec!["c1", "c2", "c3"]);
    let others = members(&["content", "args", "id", "metadata", "content_ref", "x"]);
    (kind, call, others).prop_map(|(kind, call, others)| {
        let part = Object::new().with("part_kind", kind);
        let part = if kind.starts_with("tool") {
            part.with("tool_call_id", call).with("tool_name", "t")
        } else {
            part
        };
        others
            .into_iter()
            .fold(part, |part, (key, value)| part.with(key, value))
            .into()
    })
}

pub(crate) fn message() -> impl Strategy<Value = Json> {
    let kind = select(vec!["request", "response", "system", "other"]);
    let event = select(vec!["data-sys-a", "data-sys-b", "data-app-a", "meta:a"]);
    let others = members(&["usage", "timestamp", "event_data", "source_agent", "x"]);
    (kind, event, vec(part(), 0..4), others).prop_map(|(kind, event, parts, others)| {
        let message = Object::new().with("message_type", kind);
        let message = if kind == "system" {
            message.with("event_type", event)
        } else {
            message.with("parts", parts)
        };
        let add = |message: Object, (key, value)| message.with(key, value);
        others.into_iter().fold(message, add).into()
    })
}

pub(crate) fn turn() -> impl Strategy<Value = Json> {
    let others = || members(&["client_metadata", "total_usage", "completed_at", "x"]);
    let add = |turn: Object, (key, value): (&str, Json)| turn.with(key, value);
    let user = (vec(part(), 0..3), others()).prop_map(move |(parts, others)| {
        let turn = Object::new().with("turn_type", "user").with("parts", parts);
        others.into_iter().fold(turn, add).into()
    });
    let agent = (select(vec!["a", "b"]), vec(message(), 0..4), others()).prop_map(
        move |(agent, messages, others)| {
            let turn = Object::new()
                .with("turn_type", "agent")
                .with("agent_id", agent);
            others
                .into_iter()
                .fold(turn.with("messages", messages), add)
                .into()
        },
    );
    prop_oneof![3 => user, 4 => agent, 1 => value()]
}

pub(crate) fn document() -> impl Strategy<Value = Thread> {
    let version = select(vec!["0.0.4", "0.0.4", "0.0.4", "0.0.3"]);
    let agents = vec((select(vec!["a", "b", "c"]), value()), 0..3);
    let others = members(&["title", "metadata", "relationships", "updated_at", "x"]);
    (version, agents, vec(turn(), 0..6), others).prop_map(|(version, agents, turns, others)| {
        let root = Object::new().with("version", version);
        let root = root
            .with("agents", Json::object(agents))
            .with("turns", turns);
        let add = |root: Object, (key, value)| root.with(key, value);
        Thread::from_root(others.into_iter().fold(root, add))
    })
}

/// One change somewhere in a document.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Replace(Json),
    Insert(Index, Json),
    Remove(Index),
    /// Turns the order of an object's members round.
    Reverse,
    /// Spells a number otherwise.
    Respell,
}

pub(crate) fn changes(n: usize) -> impl Strategy<Value = Vec<(Index, Change)>> {
    let item = prop_oneof![value(), part(), message(), turn()];
    let change = prop_oneof![
        2 => value().prop_map(Change::Replace),
        3 => (any::<Index>(), item).prop_map(|(at, item)| Change::Insert(at, item)),
        3 => any::<Index>().prop_map(Change::Remove),
        1 => Just(Change::Reverse),
        1 => Just(Change::Respell),
    ];
    vec((any::<Index>(), change), 0..n)
}

/// Every value below the root and the root itself, by pointer.
fn pointers(json: &Json, above: &str, found: &mut Vec<String>) {
    found.push(above.to_owned());
    match json {
        Json::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                pointers(item, &format!("{above}/{n}"), found);
            }
        }
        Json::Object(object) => {
            for (key, value) in object {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(value, &format!("{above}/{key}"), found);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

fn at<'a>(json: &'a mut Json, pointer: &str) -> &'a mut Json {
    let tokens = pointer.split('/').skip(1);
    tokens.fold(json, |here, token| match here {
        Json::Array(items) => &mut items[token.parse::<usize>().expect("an index")],
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => {
            let key = token.replace("~1", "/").replace("~0", "~");
            let object = here.as_object_mut().expect("an object");
            object.get_mut(&key).expect("a member")
        }
    })
}

pub(crate) fn changed(thread: &Thread, changes: &[(Index, Change)]) -> Thread {
    let mut json = Json::Object(thread.root().clone());
    for (place, change) in changes {
        let mut found = Vec::new();
        pointers(&json, "", &mut found);
        let pointer = place.get(&found);
        let target = at(&mut json, pointer);
        match (change, target) {
            (Change::Replace(value), target) if !pointer.is_empty() => *target = value.clone(),
            (Change::Insert(at, item), Json::Array(items)) => {
                items.insert(at.index(items.len() + 1), item.clone());
            }
            (Change::Insert(at, item), Json::Object(object)) => {
                let keys = ["k", "x", "y", "title", "id", "metadata"];
                object.insert(*at.get(&keys), item.clone());
            }
            (Change::Remove(at), Json::Array(items)) if !items.is_empty() => {
                items.remove(at.index(items.len()));
            }
            (Change::Remove(at), Json::Object(object)) if !object.is_empty() => {
                let key = object
                    .keys()
                    .nth(at.index(object.len()))
                    .expect("a key")
                    .to_owned();
                object.remove(&key);
            }
            (Change::Reverse, Json::Object(object)) => {
                let mut members: Vec<_> = std::mem::take(object).into_iter().collect();
                members.reverse();
                *object = members.into_iter().collect();
            }
            (Change::Respell, Json::Number(number)) => {
                let text = if number.is_integer() { "1.0" } else { "1" };
                if number.as_f64() == Some(1.0) {
                    *number = Number::parse(text).expect("a number");
                }
            }
            _ => {}
        }
    }
    Thread::from_root(json.into_object().expect("an object"))
}

/// A document and one that comes of changing it, or one that has nothing to do with it.
pub(crate) fn pair() -> impl Strategy<Value = (Thread, Thread)> {
    let near = (document(), changes(8)).prop_map(|(thread, changes)| {
        let other = changed(&thread, &changes);
        (thread, other)
    });
    prop_oneof![4 => near, 1 => (document(), document())]
}

pub(crate) fn branches() -> impl Strategy<Value = [Thread; 3]> {
    (document(), changes(6), changes(6)).prop_map(|(base, ours, theirs)| {
        let (ours, theirs) = (changed(&base, &ours), changed(&base, &theirs));
        [base, ours, theirs]
    })
}
