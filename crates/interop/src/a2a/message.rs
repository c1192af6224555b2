//! Messages: those that a client sends, and those of a task's history.

use super::error::RequestError;
use super::fields::{Fields, MAX_ID};
use super::part;
use super::reply::ANSWER_TEXT;
use crate::ag_ui::MESSAGE_ID;
use crate::parts::is_prompt;
use serde_json::{Map, Value, json};
use timeline::{
    ANSWER, BlockKind, Chunk, Item, ItemType, Payload, Role, StepRecord, messages_with_answers,
};

/// The member of an item's metadata that stores a client message's fields other than its parts.
pub const MESSAGE_METADATA: &str = "a2a";
/// The most parts of a message.
const MAX_PARTS: usize = 256;
/// The most extensions, and the most tasks it refers to.
const MAX_NAMED: usize = 64;

/// A message that a client sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// The client's id of it.
    pub message_id: String,
    /// The thread, if the client names one.
    pub context_id: Option<String>,
    /// The task that the message answers, if it names one.
    pub task_id: Option<String>,
    /// The parts, unchanged.
    pub(super) parts: Vec<Value>,
    /// JSON pointer to the message.
    pub(super) pointer: String,
    /// For the item's metadata.
    pub metadata: Value,
}

impl Incoming {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, RequestError> {
        let id = |key: &str| Ok(fields.bounded_text(key, MAX_ID)?.map(str::to_owned));
        let message_id = id("messageId")?.ok_or_else(|| fields.missing("messageId"))?;
        match fields.get("role") {
            Some(role) if role == "ROLE_USER" || role == 1 => {}
            _ => {
                let what = "expected \"ROLE_USER\": the other side's are the agent's";
                return Err(RequestError::param(fields.at("role"), what));
            }
        }
        let parts = fields.list("parts", MAX_PARTS)?.unwrap_or_default();
        if parts.is_empty() {
            let what = "expected at least one part";
            return Err(RequestError::param(fields.at("parts"), what));
        }
        let mut own = Map::new();
        own.insert("messageId".to_owned(), message_id.as_str().into());
        if let Some(metadata) = fields.object("metadata")? {
            own.insert("metadata".to_owned(), metadata.map().clone().into());
        }
        for key in ["extensions", "referenceTaskIds"] {
            let names = fields.list(key, MAX_NAMED)?.unwrap_or_default();
            if names.iter().any(|name| !name.is_string()) {
                let what = "expected a list of strings";
                return Err(RequestError::param(fields.at(key), what));
            }
            if !names.is_empty() {
                own.insert(key.to_owned(), names.into());
            }
        }
        Ok(Self {
            message_id,
            context_id: id("contextId")?,
            task_id: id("taskId")?,
            parts: parts.to_vec(),
            pointer: fields.pointer().to_owned(),
            metadata: json!({ MESSAGE_METADATA: own }),
        })
    }

    /// The parts with their places.
    pub(super) fn placed(&self) -> impl Iterator<Item = (String, &Value)> {
        let parts = self.parts.iter().enumerate();
        parts.map(|(place, part)| (format!("{}/parts/{place}", self.pointer), part))
    }

    /// JSON pointer to a member of the message.
    pub fn at(&self, member: &str) -> String {
        format!("{}/{member}", self.pointer)
    }

    /// The message's parts as an item's content.
    ///
    /// # Errors
    ///
    /// A part is malformed; the error names its place.
    pub fn content(&self) -> Result<Vec<Value>, RequestError> {
        let parts = self.placed().map(|(at, part)| part::read(part, &at));
        parts.collect()
    }

    /// Why the part at this place can't be read.
    pub fn unreadable(&self, place: usize) -> RequestError {
        let pointer = format!("{}/parts/{place}", self.pointer);
        RequestError::param(pointer, "expected base64, or an http: or https: URL")
    }

    /// An error about the parts as a whole.
    pub fn wrong_parts(&self, what: impl std::fmt::Display) -> RequestError {
        RequestError::param(format!("{}/parts", self.pointer), what)
    }

    /// An error about the message's `contextId`.
    pub fn wrong_context(&self, what: impl std::fmt::Display) -> RequestError {
        RequestError::param(format!("{}/contextId", self.pointer), what)
    }
}

/// A user's item as a message of the task. None of another item, such as a sub-agent's wake-up.
pub(super) fn item_message(item: &Item, task: &str, context: &str) -> Option<Value> {
    let parts: Vec<Value> = match item.item_type {
        ItemType::Message if matches!(item.role, Some(Role::User) | None) => shown_content(item),
        ItemType::ActionResult => answered(item),
        ItemType::Message | ItemType::ActionExecute | ItemType::ItemReference => return None,
    };
    if parts.is_empty() {
        return None;
    }
    let own = item.metadata.as_ref().map(Payload::value);
    let own = own.and_then(|mut own| own.get_mut(MESSAGE_METADATA).map(Value::take));
    let own = own.unwrap_or_default();
    let id = own.get("messageId").and_then(Value::as_str);
    let mut message = json!({
        "messageId": id.unwrap_or(item.id.as_str()), "contextId": context, "taskId": task,
        "role": "ROLE_USER", "parts": parts,
    });
    for key in ["metadata", "extensions", "referenceTaskIds"] {
        if let Some(value) = own.get(key) {
            message[key] = value.clone();
        }
    }
    Some(message)
}

fn shown_content(item: &Item) -> Vec<Value> {
    let content: Vec<Value> = item
        .content
        .as_ref()
        .and_then(|content| content.read().ok())
        .unwrap_or_default();
    content.iter().filter_map(part::show).collect()
}

/// The answers of an item as clients sent them, as data or as text, and the text that accompanies
/// them.
fn answered(item: &Item) -> Vec<Value> {
    let content: Vec<Value> = item
        .content
        .as_ref()
        .and_then(|content| content.read().ok())
        .unwrap_or_default();
    let answers = content.into_iter().filter_map(|part| {
        let Value::Object(mut answer) = part else {
            return None;
        };
        let is_answer = answer.get("type").is_some_and(|kind| kind == ANSWER);
        if !is_answer || answer.contains_key("resumed") {
            return None;
        }
        if let Some(text) = answer.remove(ANSWER_TEXT) {
            return Some(json!({ "text": text }));
        }
        for key in ["type", MESSAGE_ID] {
            answer.remove(key);
        }
        Some(json!({ "data": answer }))
    });
    let beside = messages_with_answers(item);
    answers
        .chain(beside.iter().flat_map(shown_content))
        .collect()
}

/// The parts of an agent's answer in a step.
pub(super) fn answer_parts(step: &StepRecord) -> Vec<Value> {
    let shown: Vec<Value> = step
        .parts
        .iter()
        .filter(|part| !is_prompt(&part.part))
        .filter_map(|part| part::show(&part.part.value()))
        .filter(|part| part["text"] != "")
        .collect();
    if !shown.is_empty() || !step.parts.is_empty() {
        return shown;
    }
    // An answer that was cut off is only in its chunks.
    let chunks = step.chunks.iter();
    let deltas = chunks.filter_map(|(chunk_type, data)| {
        let chunk = Chunk::decode(chunk_type, data.as_ref());
        let Chunk::BlockDelta { kind, text, .. } = chunk else {
            return None;
        };
        (kind == BlockKind::Text).then_some(text)
    });
    let text: String = deltas.collect();
    let parts = (!text.is_empty()).then(|| json!({ "text": text }));
    parts.into_iter().collect()
}

/// An agent's message.
pub(super) fn of_agent(id: &str, task: &str, context: &str, parts: &[Value]) -> Value {
    json!({
        "messageId": id, "contextId": context, "taskId": task, "role": "ROLE_AGENT", "parts": parts,
    })
}
