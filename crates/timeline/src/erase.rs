//! Erasing what removed items, steps and compactions say.
//!
//! Events, ids, types, states and the number of parts stay, so every reader accepts the log as before. Texts become
//! [`ERASED`], and other values become empty.

use crate::change::Removed;
use crate::compaction::Compaction;
use crate::entity::{Item, OpenCall, StepOutcome};
use crate::event::{Event, chunk_type};
use crate::payload::Payload;
use serde_json::{Map, Value};

/// The text in place of an erased one.
pub const ERASED: &str = "[erased]";

/// The members of parts and chunks that name what they belong to. Their short texts stay.
const NAMES: [&str; 18] = [
    "type",
    "id",
    "state",
    "role",
    "status",
    "kind",
    "toolName",
    "toolCallId",
    "tool_call_id",
    "call_id",
    "approvalId",
    "itemId",
    "stepId",
    "agentId",
    "model",
    "provider",
    "stopReason",
    "finishReason",
];
/// The members that make `name` that of a tool.
const CALLS: [&str; 3] = ["call_id", "toolCallId", "tool_call_id"];
/// The longest text of a name, in bytes.
const NAME: usize = 200;
/// The members that are addresses. They become empty: a text would be taken for an address.
const ADDRESSES: [&str; 4] = ["image_url", "file_url", "file_data", "file_id"];

impl Event {
    /// The item, the step or the compaction that the event belongs to, if there is one.
    #[must_use]
    pub fn entry(&self) -> Option<Removed> {
        match self {
            Self::ItemCreated { item } => Some(Removed::Item(item.id.clone())),
            Self::StepCreated { step } => Some(Removed::Step(step.id.clone())),
            Self::StepStatusChanged { step_id, .. }
            | Self::PartCreated { step_id, .. }
            | Self::PartUpdated { step_id, .. } => Some(Removed::Step(step_id.clone())),
            Self::ChunkEmitted {
                chunk_type,
                data: Some(data),
                ..
            } if chunk_type == chunk_type::THREAD_COMPACTED => {
                let compaction: Compaction = data.read().ok()?;
                Some(Removed::Compaction(compaction.id))
            }
            Self::ChunkEmitted { step_id, .. } => step_id.clone().map(Removed::Step),
            Self::ContextCreated { .. }
            | Self::ContextResolved { .. }
            | Self::ContextStatusChanged { .. }
            | Self::ThreadCreated { .. }
            | Self::ThreadResolved { .. }
            | Self::ThreadStatusChanged { .. }
            | Self::ExecutionCreated { .. }
            | Self::ExecutionStatusChanged { .. }
            | Self::ItemStatusChanged { .. }
            | Self::ThreadFinished { .. } => None,
        }
    }

    /// The event without the content of its [entry](Self::entry). `None` if it has none, or no more.
    ///
    /// An agent's state stays, because later runs build on it, and so do the parameters of runs.
    #[must_use]
    pub fn erased(&self) -> Option<Self> {
        let mut event = self.clone();
        match &mut event {
            Self::ItemCreated { item } => erase_item(item),
            Self::StepCreated { step } => erase_outcome(&mut step.outcome),
            Self::StepStatusChanged { outcome, .. } => erase_outcome(outcome),
            Self::PartCreated { part, .. } | Self::PartUpdated { part, .. } => {
                *part = payload(part);
            }
            Self::ChunkEmitted {
                chunk_type,
                data: Some(data),
                ..
            } if chunk_type == chunk_type::THREAD_COMPACTED => {
                let mut compaction: Compaction = data.read().ok()?;
                ERASED.clone_into(&mut compaction.summary);
                compaction.agent_states.clear();
                *data = Payload::write(&compaction).ok()?;
            }
            Self::ChunkEmitted {
                step_id: Some(_),
                chunk_type,
                data: Some(data),
                ..
            } => {
                *data = if chunk_type == chunk_type::STEP_RESPONSE {
                    response(data)
                } else {
                    payload(data)
                };
            }
            Self::ContextCreated { .. }
            | Self::ContextResolved { .. }
            | Self::ContextStatusChanged { .. }
            | Self::ThreadCreated { .. }
            | Self::ThreadResolved { .. }
            | Self::ThreadStatusChanged { .. }
            | Self::ExecutionCreated { .. }
            | Self::ExecutionStatusChanged { .. }
            | Self::ItemStatusChanged { .. }
            | Self::ChunkEmitted { .. }
            | Self::ThreadFinished { .. } => return None,
        }
        (event != *self).then_some(event)
    }
}

fn erase_item(item: &mut Item) {
    item.content = item.content.as_ref().map(payload);
    item.metadata = None;
}

fn erase_outcome(outcome: &mut StepOutcome) {
    outcome.error_text = outcome.error_text.as_ref().map(|_| ERASED.to_owned());
    for list in [&mut outcome.tool_calls, &mut outcome.tool_execution_results] {
        *list = list.as_ref().map(payload);
    }
    if let Some(open) = &outcome.open_calls {
        let mut calls = OpenCall::list(Some(open));
        for call in &mut calls {
            call.part = payload(&call.part);
        }
        outcome.open_calls = Payload::write(&calls).ok();
    }
}

/// The model's data about its response: the model, its usage, and why it stopped.
fn response(data: &Payload) -> Payload {
    let mut value = data.value();
    let usage = value.get_mut("usage").map(Value::take);
    let mut erased = of_value(value);
    if let (Some(object), Some(usage)) = (erased.as_object_mut(), usage) {
        object.insert("usage".to_owned(), numbers(usage));
    }
    erased.into()
}

/// Numbers stay.
fn numbers(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, it)| (key, numbers(it)));
            Value::Object(members.collect())
        }
        Value::Number(_) | Value::Null => value,
        Value::Bool(_) | Value::String(_) | Value::Array(_) => empty(&value),
    }
}

/// A part, a list of parts, or the data of a chunk.
fn payload(of: &Payload) -> Payload {
    of_value(of.value()).into()
}

fn of_value(value: Value) -> Value {
    match value {
        Value::Array(parts) => Value::Array(parts.into_iter().map(of_value).collect()),
        Value::Object(members) => Value::Object(of_members(members)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => empty(&value),
    }
}

fn of_members(members: Map<String, Value>) -> Map<String, Value> {
    let is_call = CALLS.iter().any(|key| members.contains_key(*key));
    let is_name = |key: &str| NAMES.contains(&key) || (is_call && key == "name");
    let erased = members.into_iter().map(|(key, value)| {
        let value = match value {
            Value::String(text) if is_name(&key) && text.len() <= NAME => Value::String(text),
            // JSON as a text.
            Value::String(_) if key == "arguments" => Value::from("{}"),
            Value::String(_) if ADDRESSES.contains(&key.as_str()) => Value::String(String::new()),
            // Parts within a part.
            Value::Array(parts) if key == "content" => of_value(Value::Array(parts)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => empty(&value),
        };
        (key, value)
    });
    erased.collect()
}

/// A value of the same kind that says nothing.
fn empty(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(value) => Value::Bool(*value),
        Value::Number(_) => Value::from(0),
        Value::String(_) => Value::from(ERASED),
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::check_part;
    use serde_json::json;

    fn part(part: Value) -> Event {
        Event::PartCreated {
            part_key: "s:0".to_owned(),
            step_id: "s".into(),
            idx: 0,
            part: part.into(),
        }
    }

    #[test]
    fn an_erased_part_has_its_type_and_call_but_no_content() {
        for (before, after) in [
            (
                json!({"type": "output_text", "text": "secret"}),
                json!({"type": "output_text", "text": ERASED}),
            ),
            (
                json!({"type": "tool-t", "toolCallId": "c", "state": "output-available",
                       "input": {"secret": 1}, "output": ["secret"], "errorText": "secret"}),
                json!({"type": "tool-t", "toolCallId": "c", "state": "output-available",
                       "input": {}, "output": [], "errorText": ERASED}),
            ),
            (
                json!({"type": "input_image", "image_url": "data:secret"}),
                json!({"type": "input_image", "image_url": ""}),
            ),
            (
                json!({"type": "app-x", "content": [{"type": "reasoning", "text": "secret", "n": 7}]}),
                json!({"type": "app-x", "content": [{"type": "reasoning", "text": ERASED, "n": 0}]}),
            ),
        ] {
            assert_eq!(check_part(&after.clone().into()), Ok(()));
            assert_eq!(part(before).erased(), Some(part(after)));
        }
    }

    #[test]
    fn an_erased_event_is_erased_once() {
        let once = part(json!({"type": "output_text", "text": "secret"})).erased();
        assert_eq!(once.unwrap().erased(), None);
    }

    #[test]
    fn a_part_belongs_to_its_step() {
        let event = part(json!({"type": "output_text", "text": "stays"}));
        assert_eq!(event.entry(), Some(Removed::Step("s".into())));
    }

    #[test]
    fn an_erased_compaction_has_no_summary_and_no_states() {
        let event = |data: Value| Event::ChunkEmitted {
            chunk_type: chunk_type::THREAD_COMPACTED.to_owned(),
            context_id: "c".into(),
            execution_id: None,
            step_id: None,
            data: Some(data.into()),
        };
        let before = event(json!({
            "id": "co", "executionId": "e", "through": 9, "summary": "secret", "author": {"model": "m"},
            "replaced": {"executions": 1, "messages": 2, "bytes": 3}, "agentStates": {"a": {"note": "secret"}},
        }));
        assert_eq!(before.entry(), Some(Removed::Compaction("co".into())));
        let after = before.erased().unwrap();
        let Event::ChunkEmitted {
            data: Some(data), ..
        } = &after
        else {
            panic!("{after:?}");
        };
        let compaction: Compaction = data.read().unwrap();
        assert_eq!((&*compaction.summary, compaction.through.0), (ERASED, 9));
        assert!(!data.text().contains("secret"));
        assert_eq!(after.erased(), None);
    }

    #[test]
    fn an_erased_response_has_its_usage() {
        let response = |data: Value| Event::ChunkEmitted {
            chunk_type: chunk_type::STEP_RESPONSE.to_owned(),
            context_id: "c".into(),
            execution_id: None,
            step_id: Some("s".into()),
            data: Some(data.into()),
        };
        let before = json!({"model": "m", "usage": {"inputTokens": 3, "details": {"cached": 1}}, "data": {"secret": 1}});
        let after = json!({"model": "m", "usage": {"inputTokens": 3, "details": {"cached": 1}}, "data": {}});
        assert_eq!(response(before).erased(), Some(response(after)));
    }
}
