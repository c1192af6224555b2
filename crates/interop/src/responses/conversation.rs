//! Conversations: threads, as `OpenAI`'s API sees them.

use super::error::RequestError;
use super::fields::{Fields, thread_metadata};
use super::item::{self, InputContent, InputItem};
use super::items::{ListedItem, listed};
use super::page;
use super::thread_input::{marked, message_item, stored_commands};
use crate::ids::CONVERSATION;
use crate::metadata::{is_aitp, is_own, noted};
use crate::{Converted, Losses};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use timeline::{Command, Entry, Item, ItemStatus, ItemType, NewItem, Payload, Thread, Transcript};

/// The most items in one request.
const MAX_ITEMS: usize = 20;

/// `POST /conversations`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateConversation {
    /// The application's own; the thread's metadata.
    pub metadata: Map<String, Value>,
    /// The initial items.
    pub items: Vec<InputItem>,
}

impl CreateConversation {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::of(body, "")?;
        Ok(Self {
            metadata: thread_metadata(&fields)?,
            items: item::items(&fields, "items", MAX_ITEMS)?,
        })
    }

    /// The commands that write the items into the new thread. Agents' messages and calls become
    /// finished executions. Calls at the end without results become pending.
    pub fn commands(
        &self,
        at: Timestamp,
        ids: &mut dyn FnMut() -> String,
    ) -> Result<Vec<(Timestamp, Command)>, RequestError> {
        let commands = stored_commands(&self.items, ids)?.into_iter();
        Ok(commands.map(|command| (at, command)).collect())
    }
}

/// `POST /conversations/{id}`: reads the new metadata, for [`updated_metadata`].
pub fn read_conversation_update(body: &Value) -> Result<Map<String, Value>, RequestError> {
    let fields = Fields::of(body, "")?;
    // Null removes the metadata.
    if fields.present("metadata").is_none() {
        return Err(fields.missing("metadata"));
    }
    thread_metadata(&fields)
}

/// A thread's metadata after an update, which replaces that of clients. The server's own stays.
pub fn updated_metadata(before: Option<&Payload>, update: Map<String, Value>) -> Payload {
    Value::Object(noted(before, update)).into()
}

/// `POST /conversations/{id}/items`: items to store without a run.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItems {
    /// The items.
    pub items: Vec<InputItem>,
}

impl NewItems {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::of(body, "")?;
        if fields.get("items").is_none() {
            return Err(fields.missing("items"));
        }
        Ok(Self {
            items: item::items(&fields, "items", MAX_ITEMS)?,
        })
    }

    /// The results without their calls: the ids of the calls, and the pointers of the results.
    ///
    /// A client can store them if the conversation has the call without a result
    /// ([`stored_calls`]). The result of a pending call belongs in a response.
    pub fn results_alone(&self) -> Vec<(&str, &str)> {
        let mut calls = BTreeSet::new();
        let mut alone = Vec::new();
        for given in &self.items {
            match &given.content {
                InputContent::Call { call_id, .. } => {
                    calls.insert(call_id.as_str());
                }
                InputContent::CallOutput { call_id, .. } if !calls.remove(call_id.as_str()) => {
                    alone.push((call_id.as_str(), given.pointer.as_str()));
                }
                InputContent::CallOutput { .. }
                | InputContent::Message { .. }
                | InputContent::Reasoning(_)
                | InputContent::Compaction { .. }
                | InputContent::Approval { .. }
                | InputContent::Reference { .. } => {}
            }
        }
        alone
    }

    fn has_result(&self, call: &str) -> bool {
        let mut items = self.items.iter();
        items.any(
            |it| matches!(&it.content, InputContent::CallOutput { call_id, .. } if call_id == call),
        )
    }

    /// The items to store, in order. Calls and results belong to no execution. Models receive only
    /// calls with results; the others are the losses.
    pub fn records(
        &self,
        ids: &mut dyn FnMut() -> String,
    ) -> Result<Converted<Vec<NewItem>>, RequestError> {
        let mut losses = Losses::default();
        let mut records = Vec::with_capacity(self.items.len());
        for given in &self.items {
            if let Some(item) = message_item(given, true, ids) {
                records.push(item);
                continue;
            }
            if let Some(item) = action_item(&given.content, ids) {
                let is_left = matches!(&given.content, InputContent::Call { call_id, .. }
                    if !self.has_result(call_id));
                if is_left {
                    let what = "models are not shown a call that has no result";
                    losses.push(given.pointer.as_str(), what);
                }
                records.push(item);
                continue;
            }
            match &given.content {
                InputContent::Reference { id } => {
                    return Err(RequestError::item_not_found(id, &given.pointer));
                }
                InputContent::Message { .. }
                | InputContent::Reasoning(_)
                | InputContent::Call { .. }
                | InputContent::CallOutput { .. }
                | InputContent::Compaction { .. }
                | InputContent::Approval { .. } => {
                    let message = "it can only be said to a response";
                    return Err(super::fields::unsupported(given.pointer.as_str(), message));
                }
            }
        }
        Ok(losses.with(records))
    }
}

/// A call or a result as an item that belongs to no execution.
pub(super) fn action_item(says: &InputContent, ids: &mut dyn FnMut() -> String) -> Option<NewItem> {
    let (item_type, content) = match says {
        InputContent::Call {
            call_id,
            name,
            arguments,
        } => {
            let call = json!({
                "type": "function_call", "call_id": call_id,
                "name": name, "arguments": arguments,
            });
            (ItemType::ActionExecute, call)
        }
        InputContent::CallOutput { call_id, output } => {
            let output = json!({
                "type": "function_call_output", "call_id": call_id,
                "output": super::content::shown_output(output),
            });
            (ItemType::ActionResult, output)
        }
        InputContent::Reference { .. }
        | InputContent::Message { .. }
        | InputContent::Reasoning(_)
        | InputContent::Compaction { .. }
        | InputContent::Approval { .. } => return None,
    };
    let about = Map::from_iter([("imported".to_owned(), true.into())]);
    Some(NewItem {
        id: ids().into(),
        item_type,
        role: None,
        channel: None,
        content: Some(content.into()),
        metadata: Some(marked(&about)),
    })
}

/// The calls that were stored without an execution and have no result.
pub fn stored_calls(transcript: &Transcript) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for entry in &transcript.entries {
        let Entry::Item(item) = entry else {
            continue;
        };
        let content = item.content.as_ref().map(Payload::value);
        let Some(call) = content.as_ref().and_then(|it| it["call_id"].as_str()) else {
            continue;
        };
        match item.item_type {
            ItemType::ActionExecute => {
                calls.insert(call.to_owned());
            }
            ItemType::ActionResult => {
                calls.remove(call);
            }
            ItemType::Message | ItemType::ItemReference => {}
        }
    }
    calls
}

/// The list of items that were just stored.
pub fn stored_items(records: &[NewItem], at: Timestamp) -> String {
    let items: Vec<ListedItem> = records
        .iter()
        .flat_map(|new| {
            listed(&Item {
                id: new.id.clone(),
                item_type: new.item_type,
                role: new.role,
                created_at: at,
                status: ItemStatus::Stored,
                channel: None,
                content: new.content.clone(),
                execution_id: None,
                run: None,
                metadata: new.metadata.clone(),
            })
        })
        .collect();
    page::list(&items, false)
}

/// A thread as a conversation. The metadata has only string members.
pub fn conversation(thread: &Thread) -> Value {
    let metadata = match thread.metadata.as_ref().map(Payload::value) {
        Some(Value::Object(metadata)) => metadata,
        Some(_) | None => Map::new(),
    };
    let is_noted =
        |(key, value): &(String, Value)| value.is_string() && !is_own(key) && !is_aitp(key);
    let texts = metadata.into_iter().filter(is_noted);
    json!({
        "id": CONVERSATION.write(thread.id.as_str()), "object": "conversation",
        "created_at": thread.created_at.as_second(), "metadata": texts.collect::<Map<_, _>>(),
    })
}

/// The answer to the deletion of a conversation; `id` as the request had it.
pub fn deleted_conversation(id: &str) -> Value {
    json!({"id": id, "object": "conversation.deleted", "deleted": true})
}

/// The answer to the deletion of a response; `id` as the request had it.
pub fn deleted_response(id: &str) -> Value {
    json!({"id": id, "object": "response", "deleted": true})
}
