//! Threads, as both protocols have them.

use super::interrupt::{InterruptedCall, interrupts};
use crate::metadata::{is_aitp, is_own};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use timeline::{ExecutionId, Payload, Thread, ThreadStatus as Stands};
use uuid::Uuid;

/// How a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStatus {
    /// Nothing runs and nothing waits.
    Idle,
    /// An agent is at it, or something waits for its turn.
    Busy,
    /// Calls wait for somebody.
    Interrupted,
    /// What ran last went wrong.
    Error,
}

impl ThreadStatus {
    /// All of them, by their names.
    pub const NAMES: [(&str, Self); 4] = [
        ("idle", Self::Idle),
        ("busy", Self::Busy),
        ("interrupted", Self::Interrupted),
        ("error", Self::Error),
    ];

    /// How a thread of ours stands, of which calls wait or do not.
    pub fn of(stands: Stands, is_waiting: bool, asks: bool) -> Self {
        match stands {
            Stands::Streaming => Self::Busy,
            Stands::Open if is_waiting => Self::Busy,
            Stands::Open if asks => Self::Interrupted,
            Stands::Failed => Self::Error,
            Stands::Open | Stands::Closed => Self::Idle,
        }
    }

    /// The protocol's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Interrupted => "interrupted",
            Self::Error => "error",
        }
    }
}

/// What is shown of a thread beside itself.
#[derive(Clone, Debug)]
pub struct ThreadOptions<'a> {
    /// How it stands.
    pub status: ThreadStatus,
    /// The execution that left calls which wait, and the calls.
    pub interrupted: Option<(&'a ExecutionId, &'a [InterruptedCall])>,
    /// Its values; left out where they are not shown.
    pub values: Option<Value>,
}

/// The id of a thread in these protocols, which want UUIDs: its key if that is one, for so its client has named it;
/// else its own.
pub fn shown_id(thread: &Thread) -> &str {
    let key = thread.key.as_deref();
    let key = key.filter(|key| Uuid::try_parse(key).is_ok());
    key.unwrap_or_else(|| thread.id.as_str())
}

/// The object of a thread.
pub fn thread_object(thread: &Thread, shown: ThreadOptions<'_>) -> Value {
    let updated = thread.updated_at.unwrap_or(thread.created_at);
    let asked = shown.interrupted.filter(|(_, asked)| !asked.is_empty());
    let asked = asked.map(|(execution, asked)| (execution.to_string(), interrupts(asked).into()));
    let mut object = json!({
        "thread_id": shown_id(thread),
        "created_at": instant(thread.created_at),
        "updated_at": instant(updated),
        "state_updated_at": instant(updated),
        "metadata": shown_metadata(thread.metadata.as_ref()),
        "config": {},
        "status": shown.status.name(),
        "interrupts": Map::from_iter(asked),
    });
    if let Some(values) = shown.values {
        object["values"] = values;
    }
    object
}

pub(super) fn instant(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// A thread's metadata without what is the server's own or AITP's: what a client sees, it can send back.
fn shown_metadata(kept: Option<&Payload>) -> Map<String, Value> {
    let mut shown = members(kept);
    shown.retain(|key, _| !is_own(key) && !is_aitp(key));
    shown
}

fn members(kept: Option<&Payload>) -> Map<String, Value> {
    match kept.map(Payload::value) {
        Some(Value::Object(members)) => members,
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        )
        | None => Map::new(),
    }
}

/// A thread's metadata with these members in it; one that is null goes. What is the server's own stays.
pub fn merged_metadata(kept: Option<&Payload>, new: Map<String, Value>) -> Payload {
    let mut merged = members(kept);
    for (key, value) in new {
        if value.is_null() {
            merged.remove(&key);
        } else {
            merged.insert(key, value);
        }
    }
    Value::Object(merged).into()
}

/// What a copy of a thread has of its metadata: all but what is the server's own.
pub fn copied_metadata(kept: &Payload) -> Payload {
    let mut copied = members(Some(kept));
    copied.retain(|key, _| !is_own(key));
    Value::Object(copied).into()
}

/// Whether a thread's metadata has all that is wanted, within objects too.
pub fn matches_metadata(kept: Option<&Payload>, wanted: &Map<String, Value>) -> bool {
    wanted.is_empty() || holds(&shown_metadata(kept), wanted)
}

fn holds(kept: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted
        .iter()
        .all(|(key, wanted)| match (kept.get(key), wanted) {
            (Some(Value::Object(kept)), Value::Object(wanted)) => holds(kept, wanted),
            (Some(kept), wanted) => kept == wanted,
            (None, _) => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        members(Some(&value.into()))
    }

    #[test]
    fn metadata_is_merged_and_what_is_the_servers_own_stays_hidden() {
        let kept: Payload =
            json!({"a": 1, "b": {"c": 2, "d": 3}, "uap": {"node": "n"}, "actors": []}).into();
        let merged = merged_metadata(Some(&kept), object(json!({"a": null, "e": 4})));
        let shown = shown_metadata(Some(&merged));
        assert_eq!(shown, object(json!({"b": {"c": 2, "d": 3}, "e": 4})));
        assert_eq!(merged.value()["uap"]["node"], "n");
        assert_eq!(copied_metadata(&merged).value()["actors"], json!([]));
        for (wanted, fits) in [
            (json!({}), true),
            (json!({"b": {"c": 2}}), true),
            (json!({"b": {"c": 3}}), false),
            (json!({"a": 1}), false),
            (json!({"uap": {"node": "n"}}), false),
        ] {
            let is_there = matches_metadata(Some(&merged), &object(wanted.clone()));
            assert_eq!(is_there, fits, "{wanted}");
        }
    }

    #[test]
    fn a_thread_is_known_by_its_key_where_that_is_a_uuid() {
        let (own, key) = (
            Uuid::from_u128(1).to_string(),
            Uuid::from_u128(2).to_string(),
        );
        let thread = |key: Option<&str>| Thread {
            id: own.as_str().into(),
            key: key.map(str::to_owned),
            status: Stands::Open,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: None,
            title: None,
            metadata: None,
            fork: None,
        };
        assert_eq!(shown_id(&thread(Some(&key))), key);
        assert_eq!(shown_id(&thread(Some("talk"))), own);
        assert_eq!(shown_id(&thread(None)), own);
    }
}
