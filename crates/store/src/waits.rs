//! The threads in which something waits for a person.

use crate::{KeyPattern, StoreError, TenantId, ThreadRow};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use timeline::{
    Event, ExecutionStatus, ItemType, Open, OpenCall, OpenKind, Payload, Seq, ThreadId,
};

/// A thread in which something waits for a person, or may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRow {
    /// The thread.
    pub row: ThreadRow,
    /// When the thread's own calls began to wait for an approval or a result; `None` if none waits.
    pub calls_since: Option<Timestamp>,
    /// Whether a message since the last [settlement](WaitIndex::settle) may be a request of AITP. The
    /// store does not know whether it was answered.
    pub may_ask: bool,
    /// Its number in the list: that of the oldest event that something waits for.
    pub number: u64,
}

/// A page of the threads in which something waits: the one with the oldest event first.
#[derive(Clone, Debug, Default)]
pub struct WaitingRows {
    /// Only threads after this [`number`](WaitingRow::number).
    pub after: Option<u64>,
    /// Only threads whose key matches this.
    pub key: Option<KeyPattern>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// Finds the threads in which something waits for a person. The cost is proportional to their number.
///
/// A thread is listed while calls of its own wait for an approval or a result, and from a message that
/// may be a request of AITP on until it is settled. A store can't judge requests: a caller that can
/// settles a thread without open ones.
pub trait WaitIndex: Send + Sync {
    /// The tenant's threads in which something waits.
    fn waiting<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: WaitingRows,
    ) -> BoxFuture<'a, Result<Vec<WaitingRow>, StoreError>>;

    /// Notes that no request of the thread was open after this event, and that no run was at work then.
    /// Messages after the event count on. An unknown thread changes nothing.
    fn settle<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Whether open calls wait for a person or a client: one needs an approval or a result. The others come
/// after it, or wait for a sub-agent.
pub fn waits_for_people(open: Option<&Open>) -> bool {
    open.is_some_and(|open| calls_wait_for_people(&open.calls))
}

/// Whether one of these calls waits for a person or a client.
pub fn calls_wait_for_people(calls: &[OpenCall]) -> bool {
    let mut calls = calls.iter();
    calls.any(|call| matches!(call.kind, OpenKind::Approval | OpenKind::External))
}

/// The effect of an event on the open calls of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsChange {
    /// No call is open.
    None,
    /// Calls may be open: those that a run has left, or those that a fork inherits.
    Perhaps,
}

impl CallsChange {
    /// The effect of an event on the open calls; `None` if it has none.
    pub fn of(event: &Event) -> Option<Self> {
        match event {
            Event::ThreadCreated { thread } => thread.fork.as_ref().map(|_| Self::Perhaps),
            Event::ExecutionCreated { .. } => Some(Self::None),
            Event::ExecutionStatusChanged { to, .. } => match to {
                ExecutionStatus::Executing => None,
                ExecutionStatus::Completed => Some(Self::Perhaps),
                ExecutionStatus::Failed => Some(Self::None),
            },
            Event::ItemCreated { item } => {
                let is_kept = item.execution_id.is_none() && item.run.is_none();
                (is_kept && item.item_type == ItemType::Message).then_some(Self::None)
            }
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ThreadFinished { .. }
            | Event::ItemStatusChanged { .. }
            | Event::StepCreated { .. }
            | Event::StepStatusChanged { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. }
            | Event::ChunkEmitted { .. } => None,
        }
    }
}

/// Whether an event may open a request of AITP: it has a text that is a JSON object with a `$schema`, or
/// begins a fork, which inherits the requests of its parent.
pub fn may_ask(event: &Event) -> bool {
    match event {
        Event::ThreadCreated { thread } => thread.fork.is_some(),
        Event::ItemCreated { item } => {
            let content = item.content.as_ref().map(Payload::text);
            let content = content.filter(|content| may_name_a_schema(content));
            content.is_some_and(|content| {
                // Answers have their messages deeper.
                item.item_type != ItemType::Message || has_message(content)
            })
        }
        Event::PartCreated { part, .. } | Event::PartUpdated { part, .. } => {
            may_name_a_schema(part.text()) && is_message(part.text())
        }
        Event::ContextCreated { .. }
        | Event::ContextResolved { .. }
        | Event::ContextStatusChanged { .. }
        | Event::ThreadResolved { .. }
        | Event::ThreadStatusChanged { .. }
        | Event::ThreadFinished { .. }
        | Event::ExecutionCreated { .. }
        | Event::ExecutionStatusChanged { .. }
        | Event::ItemStatusChanged { .. }
        | Event::StepCreated { .. }
        | Event::StepStatusChanged { .. }
        | Event::ChunkEmitted { .. } => false,
    }
}

/// Whether a JSON text can have a member `$schema`, also one that is spelled with escapes.
fn may_name_a_schema(json: &str) -> bool {
    json.contains("$schema") || json.contains("\\u")
}

/// Whether a text part of a message's content is an object that may have a `$schema`.
fn has_message(content: &str) -> bool {
    let parts: Result<Vec<&RawValue>, _> = serde_json::from_str(content);
    parts.is_ok_and(|parts| parts.iter().any(|part| is_message(part.get())))
}

/// The text of a part.
#[derive(Deserialize)]
struct TextPart<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

fn is_message(part: &str) -> bool {
    let part: Result<TextPart<'_>, _> = serde_json::from_str(part);
    part.is_ok_and(|part| part.text.trim_start().starts_with('{') && may_name_a_schema(&part.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use timeline::NewItem;

    fn asks(content: Value) -> bool {
        let new = NewItem::user("i", content.into());
        let item = new.stored(Timestamp::UNIX_EPOCH);
        may_ask(&Event::ItemCreated { item })
    }

    #[test]
    fn only_json_with_a_schema_may_be_a_request() {
        let ask = json!({"$schema": "s", "request_decision": {"id": "d"}}).to_string();
        let text = |text: &str| json!([{"type": "input_text", "text": text}]);
        assert!(asks(text(&ask)));
        assert!(asks(text(&format!(" \n{ask}"))));
        assert!(asks(text(&ask.replace('$', "\\u0024"))));
        for other in ["plain", "see {\"$schema\"}", "{\"schema\": 1}", "\u{1}"] {
            assert!(!asks(text(other)), "{other}");
        }
    }
}
