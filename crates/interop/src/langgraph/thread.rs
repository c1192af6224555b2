//! Threads, as both protocols have them.

use super::interrupt::{InterruptedCall, interrupts};
use crate::metadata::{is_aitp, is_own};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use timeline::{ExecutionId, Payload, Thread, ThreadStatus as Stands};
use uuid::Uuid;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStatus {
    /// No run is active, and no call is pending.
    Idle,
    /// A run is active or queued.
    Busy,
    /// Calls wait for answers.
    Interrupted,
    /// The last run failed.
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

    /// The state of a thread. `is_waiting`: runs are queued, or only sub-agents are running. `asks`: a
    /// client can answer a pending call.
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

/// The additional data that a thread's JSON form needs.
#[derive(Clone, Debug)]
pub struct ThreadOptions<'a> {
    /// The state of the thread.
    pub status: ThreadStatus,
    /// The execution whose calls are pending, and the calls.
    pub interrupted: Option<(&'a ExecutionId, &'a [InterruptedCall])>,
    /// The values; `None` if they are not requested.
    pub values: Option<Value>,
}

/// The id of a thread in these protocols, which require UUIDs. It is the thread's key if that is a
/// UUID, because then its client chose it. Otherwise it is the thread's own id.
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

/// Merges `new` into a thread's metadata. A member that is `null` in `new` is removed. Server members
/// stay.
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

/// The metadata of a thread's copy: every member except the server's own.
pub fn copied_metadata(kept: &Payload) -> Payload {
    let mut copied = members(Some(kept));
    copied.retain(|key, _| !is_own(key));
    Value::Object(copied).into()
}

/// Whether a thread's metadata contains all of `wanted`, also within nested objects.
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
