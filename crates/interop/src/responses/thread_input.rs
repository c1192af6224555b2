//! From the input of a request to the items of a thread.

use super::conversation::action_item;
use super::draft::{Draft, Ends, Tail};
use super::echo::VIEW;
use super::error::RequestError;
use super::fields::{invalid, unsupported};
use super::item::{self, InputContent, InputItem};
use super::request::{Continues, CreateRequest};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{ANSWER, Command, ItemType, NewItem, Payload, Role};

/// The input of a request for a thread, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInput {
    /// For a new thread: the commands that write the past the request brings with it, each decided
    /// in order after the thread is made.
    pub past: Vec<(Timestamp, Command)>,
    /// For a thread that exists: the items to store before the last one. They are answered with it.
    pub records: Vec<NewItem>,
    /// The item that begins the execution.
    pub last: Last,
}

/// The item that begins an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Last {
    /// An item.
    Item(NewItem),
    /// An item of type `action_result`: results of open calls, with the messages sent with them.
    Answers(NewItem),
}

/// The ids of the items that an input references, and their pointers.
pub(super) fn references(input: &[InputItem]) -> impl Iterator<Item = (&str, &str)> {
    input.iter().filter_map(|item| match &item.content {
        InputContent::Reference { id } => Some((id.as_str(), item.pointer.as_str())),
        InputContent::Message { .. }
        | InputContent::Reasoning(_)
        | InputContent::Call { .. }
        | InputContent::CallOutput { .. }
        | InputContent::Compaction { .. }
        | InputContent::Approval { .. } => None,
    })
}

impl CreateRequest {
    /// The request without the open calls that the conversation has; their answers stay.
    #[must_use]
    pub fn without_calls(&self, open: &BTreeSet<String>) -> Cow<'_, Self> {
        let waits = |item: &InputItem| matches!(&item.content, InputContent::Call { call_id, .. } if open.contains(call_id));
        if !self.input.iter().any(waits) {
            return Cow::Borrowed(self);
        }
        let mut left = self.clone();
        left.input.retain(|item| !waits(item));
        Cow::Owned(left)
    }

    /// Whether the input has a call.
    pub fn has_calls(&self) -> bool {
        let is_call = |item: &InputItem| matches!(item.content, InputContent::Call { .. });
        self.input.iter().any(is_call)
    }

    /// The input for the thread of this request.
    ///
    /// If the request continues nothing, all but the last item become the history of a new thread.
    /// The agents' messages and calls become finished executions. Their metadata marks them as
    /// untrusted (`responses.imported`). Results at the end answer the calls before them.
    ///
    /// If the request continues a conversation, the thread has the history. Messages are stored in
    /// order, and the last one starts the execution. Results answer the open calls, a call with its
    /// result is stored, and references to items are skipped.
    ///
    /// `known` has the referenced items as objects, by their ids. `run` is stored with the
    /// execution whose calls the input answers, because the answer continues it.
    pub fn thread_input(
        &self,
        known: &BTreeMap<String, Value>,
        run: Option<&Payload>,
        at: Timestamp,
        ids: &mut dyn FnMut() -> String,
    ) -> Result<ThreadInput, RequestError> {
        match &self.continues {
            Continues::Nothing => {
                let input = resolved(&self.input, known)?;
                new_thread(&input, run, at, ids)
            }
            Continues::Response { id, .. } | Continues::Conversation { id, .. } => {
                continued_thread(&self.input, id, ids)
            }
        }
    }
}

/// The input with items in place of references.
fn resolved(
    input: &[InputItem],
    known: &BTreeMap<String, Value>,
) -> Result<Vec<InputItem>, RequestError> {
    let resolve = |item: &InputItem| match &item.content {
        InputContent::Reference { id } => {
            let not_found = || RequestError::item_not_found(id, &format!("{}/id", item.pointer));
            let found = known.get(id).ok_or_else(not_found)?;
            let read = item::item(found, item.pointer.clone())?;
            match read.content {
                InputContent::Reference { .. } => Err(not_found()),
                InputContent::Message { .. }
                | InputContent::Reasoning(_)
                | InputContent::Call { .. }
                | InputContent::CallOutput { .. }
                | InputContent::Compaction { .. }
                | InputContent::Approval { .. } => Ok(read),
            }
        }
        InputContent::Message { .. }
        | InputContent::Reasoning(_)
        | InputContent::Call { .. }
        | InputContent::CallOutput { .. }
        | InputContent::Compaction { .. }
        | InputContent::Approval { .. } => Ok(item.clone()),
    };
    input.iter().map(resolve).collect()
}

fn new_thread(
    input: &[InputItem],
    run: Option<&Payload>,
    at: Timestamp,
    ids: &mut dyn FnMut() -> String,
) -> Result<ThreadInput, RequestError> {
    let draft = Draft::of(input, ids)?;
    let (commands, ends) = draft.commands(Tail::Answered(run), ids)?;
    let last = match ends {
        Ends::Input(item) => Last::Item(item),
        Ends::Open(answers) => Last::Answers(answers_item(answers, &[], ids)),
        Ends::Answer(former) => Last::Item(reference(former.as_deref(), ids)),
    };
    Ok(ThreadInput {
        past: commands.into_iter().map(|command| (at, command)).collect(),
        records: Vec::new(),
        last,
    })
}

/// The commands that write these items into a new thread without a run. Calls at the end without
/// results stay open.
pub(super) fn stored_commands(
    input: &[InputItem],
    ids: &mut dyn FnMut() -> String,
) -> Result<Vec<Command>, RequestError> {
    let draft = Draft::of(input, ids)?;
    let (mut commands, ends) = draft.commands(Tail::Open, ids)?;
    match ends {
        Ends::Input(item) => commands.push(Command::Record { item }),
        Ends::Open(_) | Ends::Answer(_) => {}
    }
    Ok(commands)
}

fn continued_thread(
    input: &[InputItem],
    continues: &str,
    ids: &mut dyn FnMut() -> String,
) -> Result<ThreadInput, RequestError> {
    let mut records = Vec::new();
    let mut answers = Vec::new();
    let mut answered = BTreeSet::new();
    let pairs = pairs(input);
    for (place, given) in input.iter().enumerate() {
        if pairs.contains(&place) {
            records.extend(action_item(&given.content, ids));
        } else if let Some(answer) = answer(given, &mut answered)? {
            answers.push(answer);
        } else if let Some(item) = message_item(given, false, ids) {
            records.push(item);
        } else if let InputContent::Call { .. } = &given.content {
            let message = "a call can't be added to a conversation that goes on; \
                           send all of it without \"previous_response_id\"";
            return Err(unsupported(given.pointer.as_str(), message));
        }
    }
    let first = pairs.first().and_then(|place| input.get(*place));
    if let Some(given) = first.filter(|_| !answers.is_empty()) {
        let message = "a call that has its result can't be added beside answers to calls that wait";
        return Err(unsupported(given.pointer.as_str(), message));
    }
    let last = if answers.is_empty() {
        // Content of an agent begins no run.
        let is_agents = |item: &NewItem| {
            item.role == Some(Role::Assistant) || item.item_type != ItemType::Message
        };
        match records.pop() {
            Some(item) if !is_agents(&item) => Last::Item(item),
            Some(item) => {
                let former = item.id.clone();
                records.push(item);
                Last::Item(reference(Some(former.as_str()), ids))
            }
            None => Last::Item(reference(Some(continues), ids)),
        }
    } else {
        let beside = std::mem::take(&mut records);
        Last::Answers(answers_item(answers, &beside, ids))
    };
    Ok(ThreadInput {
        past: Vec::new(),
        records,
        last,
    })
}

/// The positions of calls that have their results in the input, and of these results.
fn pairs(input: &[InputItem]) -> BTreeSet<usize> {
    let mut calls = BTreeMap::new();
    let mut pairs = BTreeSet::new();
    for (place, given) in input.iter().enumerate() {
        match &given.content {
            InputContent::Call { call_id, .. } => {
                calls.insert(call_id.as_str(), place);
            }
            InputContent::CallOutput { call_id, .. } => {
                if let Some(call) = calls.remove(call_id.as_str()) {
                    pairs.extend([call, place]);
                }
            }
            InputContent::Message { .. }
            | InputContent::Reasoning(_)
            | InputContent::Compaction { .. }
            | InputContent::Reference { .. }
            | InputContent::Approval { .. } => {}
        }
    }
    pairs
}

/// The answer to a call that this item is, if it is one.
fn answer(
    given: &InputItem,
    answered: &mut BTreeSet<String>,
) -> Result<Option<Value>, RequestError> {
    let (call, part) = match &given.content {
        InputContent::CallOutput { call_id, output } => {
            let part = json!({"type": ANSWER, "toolCallId": call_id, "output": output});
            (call_id, part)
        }
        InputContent::Approval {
            call_id,
            approve,
            reason,
        } => {
            let mut part = json!({"type": ANSWER, "toolCallId": call_id, "approved": approve});
            if let Some(reason) = reason.as_ref().filter(|_| !approve) {
                part["message"] = reason.as_str().into();
            }
            (call_id, part)
        }
        InputContent::Message { .. }
        | InputContent::Reasoning(_)
        | InputContent::Call { .. }
        | InputContent::Compaction { .. }
        | InputContent::Reference { .. } => return Ok(None),
    };
    if !answered.insert(call.clone()) {
        let message = format!("the call {call:?} is answered twice");
        return Err(invalid(given.pointer.as_str(), &message));
    }
    Ok(Some(part))
}

/// An input item as an item of the log; `None` for calls, results and references.
pub(super) fn message_item(
    given: &InputItem,
    imported: bool,
    ids: &mut dyn FnMut() -> String,
) -> Option<NewItem> {
    let mut about = Map::new();
    if imported {
        about.insert("imported".to_owned(), true.into());
    }
    let (role, content) = match &given.content {
        InputContent::Message {
            role,
            content,
            phase,
        } => {
            if let Some(phase) = phase {
                about.insert("phase".to_owned(), phase.as_str().into());
            }
            (*role, content.clone())
        }
        InputContent::Reasoning(part) => (Role::Assistant, vec![part.value()]),
        InputContent::Compaction { summary } => {
            about.insert("compaction".to_owned(), true.into());
            (
                Role::Developer,
                vec![json!({"type": "input_text", "text": summary})],
            )
        }
        InputContent::Call { .. }
        | InputContent::CallOutput { .. }
        | InputContent::Reference { .. }
        | InputContent::Approval { .. } => return None,
    };
    Some(NewItem {
        id: ids().into(),
        item_type: ItemType::Message,
        role: Some(role),
        channel: None,
        content: Some(Value::Array(content).into()),
        metadata: (!about.is_empty()).then(|| marked(&about)),
    })
}

/// Metadata of an item that this view has imported.
pub(super) fn marked(about: &Map<String, Value>) -> Payload {
    json!({VIEW: about}).into()
}

fn answers_item(
    mut answers: Vec<Value>,
    beside: &[NewItem],
    ids: &mut dyn FnMut() -> String,
) -> NewItem {
    answers.extend(
        beside
            .iter()
            .map(|item| timeline::attached_message(item).value()),
    );
    NewItem {
        id: ids().into(),
        item_type: ItemType::ActionResult,
        role: None,
        channel: None,
        content: Some(Value::Array(answers).into()),
        metadata: Some(json!({"via": VIEW}).into()),
    }
}

/// The trigger of an execution without input: a pointer to the last item.
pub(super) fn reference(former: Option<&str>, ids: &mut dyn FnMut() -> String) -> NewItem {
    NewItem::reference(ids(), former.map(Into::into).as_ref())
}
