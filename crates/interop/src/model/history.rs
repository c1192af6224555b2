//! The conversation as a model is to see it.

use super::answer::assistant_message;
use super::prompt::prompt_message;
use super::recorded_calls::{DroppedCalls, RecordedCycle};
use super::result::{UNKNOWN, result_of};
use super::user::user_message;
use crate::parts::{StepResponse, ToolPart};
use crate::remote::RemoteRefusal;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use timeline::{
    Entry, Item, ItemId, ItemType, Payload, Removed, Role, StepId, StepRecord, StepStatus,
    Transcript, messages_with_answers,
};
use upp::{Message, MessageOptions, Metadata, ToolCall, ToolResult, ToolResultMessage};

/// The result text of a pending call for the model, if the user posted something else instead.
const SUPERSEDED: &str = "The user went on without answering.";

/// The conversation as messages for the model, before the step `running`. It has every user message
/// that is answered or being answered, the prompts of strategies, and every complete cycle (ruling
/// 15, policy *drop*).
///
/// A cycle with pending calls has the results that arrived; later answers follow at their own
/// positions. Once the user has posted something else instead, the other calls have interrupted
/// results. A call that an application stored is there with its result, at its own position, or
/// after the results of the calls that were pending then.
///
/// The cost is linear in the transcript. Messages have stable ids, so the result is reproducible.
pub fn history(transcript: &Transcript, running: Option<&StepId>) -> Vec<Message> {
    let marked = marked_history(transcript, running);
    marked.removed.left_out(marked.messages)
}

/// A conversation as messages, with the data about executions and removals.
#[derive(Clone, Debug, Default)]
pub struct Marked {
    /// The messages, including removed ones.
    pub messages: Vec<Message>,
    /// The number of messages before each execution, in the order of the transcript.
    pub marks: Vec<usize>,
    /// The removed messages.
    pub removed: RemovedMessages,
    /// A call without a result at the end: of the last response, or one that an application stored.
    pub unanswered: Option<UnansweredCall>,
    /// Whether stored calls of an application are held back with their results. Models accept no
    /// message between pending calls and their results.
    pub holds_back: bool,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnansweredCall {
    /// The id of the call.
    pub tool_call_id: String,
    /// The item of a call that an application stored.
    pub item: Option<ItemId>,
}

/// The removed messages of a conversation, each with the number of executions that had started when
/// it was removed.
#[derive(Clone, Debug, Default)]
pub struct RemovedMessages(BTreeMap<String, usize>);

impl RemovedMessages {
    /// The messages without the removed ones.
    pub fn left_out(&self, messages: Vec<Message>) -> Vec<Message> {
        self.left_out_before(usize::MAX, messages)
    }

    /// The messages without those that were removed before this execution began. `execution` is its
    /// index among all executions.
    pub fn left_out_before(&self, execution: usize, mut messages: Vec<Message>) -> Vec<Message> {
        if !self.0.is_empty() {
            let is_gone = |message: &Message| {
                let removed = self.0.get(message.id().as_str());
                removed.is_some_and(|n_begun| *n_begun <= execution)
            };
            messages.retain(|message| !is_gone(message));
        }
        messages
    }
}

/// The history with the removed messages marked, and the message index at which each execution
/// begins.
pub fn marked_history(transcript: &Transcript, running: Option<&StepId>) -> Marked {
    let mut told = Told {
        transcript,
        marked: Marked::default(),
        held: Vec::new(),
    };
    let mut beside = Vec::new();
    let mut kept = DroppedCalls::default();
    for entry in &transcript.entries {
        match entry {
            Entry::Item(item) if item.item_type != ItemType::Message || item.run.is_some() => {
                beside = messages_with_answers(item);
                told.held.extend(kept.take(item));
                told.release();
            }
            Entry::Item(item) => {
                let from = told.read_item(item);
                let what = || Removed::Item(item.id.clone());
                told.note(what, from);
            }
            Entry::Reaction(reaction) => {
                told.marked.marks.push(told.marked.messages.len());
                // What was said with the answers that began it comes after their results.
                let mut beside = std::mem::take(&mut beside).into_iter();
                let steps = reaction.steps.iter();
                for step in steps.filter(|step| running != Some(&step.step.id)) {
                    told.refuse(step);
                    let from = told.marked.messages.len();
                    push_step(&mut told.marked.messages, step);
                    let what = || Removed::Step(step.step.id.clone());
                    told.note(what, from);
                    told.release();
                    for item in beside.by_ref() {
                        told.read_item(&item);
                    }
                }
            }
        }
    }
    told.marked.holds_back = !told.held.is_empty();
    let is_there = |item: &Item| {
        let removed = transcript.removed();
        removed.is_empty() || !removed.contains_key(&Removed::Item(item.id.clone()))
    };
    let open = open_calls(&told.marked.messages).into_iter().next();
    let open = open.map(|call| UnansweredCall {
        tool_call_id: call.tool_call_id.as_str().to_owned(),
        item: None,
    });
    told.marked.unanswered = open.or_else(|| kept.first(is_there));
    told.marked
}

/// The messages collected so far, with the transcript that they come from.
struct Told<'a> {
    transcript: &'a Transcript,
    marked: Marked,
    /// Calls and results that an application stored while other calls were pending. They follow the
    /// results of those.
    held: Vec<RecordedCycle>,
}

impl Told<'_> {
    /// Appends the held calls and results, unless a call is pending.
    fn release(&mut self) {
        if self.held.is_empty() || !open_calls(&self.marked.messages).is_empty() {
            return;
        }
        for cycle in std::mem::take(&mut self.held) {
            let from = self.marked.messages.len();
            self.marked.messages.extend(cycle.messages);
            for item in [cycle.call, cycle.result] {
                self.note(|| Removed::Item(item.clone()), from);
            }
        }
    }

    /// Appends the message of an item and returns its index. If calls are pending, their
    /// interrupted results precede it; they count as removed if the calls are.
    fn read_item(&mut self, item: &Item) -> usize {
        let marked = &mut self.marked;
        if let Some(left) = superseded(open_calls(&marked.messages), item) {
            let mut asked = marked.messages.iter().rev();
            let asked = asked.find(|message| matches!(message, Message::Assistant(_)));
            let removed = asked.and_then(|asked| marked.removed.0.get(asked.id().as_str()));
            if let Some(n_begun) = removed.copied() {
                let id = left.id.as_str().to_owned();
                marked.removed.0.insert(id, n_begun);
            }
            marked.messages.push(left.into());
        }
        self.release();
        self.marked.messages.push(item_message(item));
        self.marked.messages.len().saturating_sub(1)
    }

    /// Marks the last message as refused if the step records a refusal, unless the step is removed.
    fn refuse(&mut self, step: &StepRecord) {
        let Some(refused) = RemoteRefusal::of_step(step) else {
            return;
        };
        let what = Removed::Step(step.step.id.clone());
        if !self.transcript.removed().contains_key(&what)
            && let Some(last) = self.marked.messages.pop()
        {
            self.marked.messages.push(refused.marked(last));
        }
    }

    /// Marks the messages from index `from` on as removed, if `what` is removed.
    fn note(&mut self, what: impl Fn() -> Removed, from: usize) {
        let removed = self.transcript.removed();
        if removed.is_empty() {
            return;
        }
        if let Some(n_begun) = removed.get(&what()) {
            let messages = self.marked.messages.iter().skip(from);
            let ids = messages.map(|message| message.id().as_str().to_owned());
            let removed = &mut self.marked.removed.0;
            removed.extend(ids.map(|id| (id, *n_begun)));
        }
    }
}

/// The interrupted results of the calls that were pending when the user posted `item` instead of
/// answers. `None` if there are no such calls.
pub fn superseded<'a>(
    calls: impl IntoIterator<Item = &'a ToolCall>,
    item: &Item,
) -> Option<ToolResultMessage> {
    let results: Vec<ToolResult> = calls
        .into_iter()
        .map(|call| interrupted(call.tool_call_id.as_str(), SUPERSEDED))
        .collect();
    if results.is_empty() {
        return None;
    }
    let options = MessageOptions {
        id: Some(format!("{}:superseded", item.id).as_str().into()),
        timestamp: Some(item.created_at),
        metadata: Some(Metadata::new()),
    };
    Some(ToolResultMessage::new(results, options))
}

fn interrupted(call: &str, text: &str) -> ToolResult {
    ToolResult {
        tool_call_id: call.into(),
        result: text.into(),
        is_error: true,
    }
}

/// A message of the log as a model is to see it.
pub fn item_message(item: &Item) -> Message {
    match item.role {
        Some(Role::Assistant) => {
            let parts: Vec<Payload> = item
                .content
                .as_ref()
                .and_then(|content| content.read().ok())
                .unwrap_or_default();
            let none = Payload::from(Value::Object(Map::new()));
            assistant_message(&parts, &none, item.created_at).into()
        }
        Some(Role::User | Role::System | Role::Developer) | None => user_message(item).into(),
    }
}

/// The calls of the response that the messages end with, and the results that follow it.
fn last_round(messages: &[Message]) -> (&[ToolCall], Vec<&ToolResult>) {
    let mut results = Vec::new();
    for message in messages.iter().rev() {
        match message {
            Message::ToolResult(message) => results.extend(&message.results),
            Message::Assistant(message) => return (&message.tool_calls, results),
            Message::User(_) => break,
        }
    }
    (&[], Vec::new())
}

/// The calls of the last round that have no result. If an id repeats, each result counts for one
/// call.
fn open_calls(messages: &[Message]) -> Vec<&ToolCall> {
    let (calls, mut results) = last_round(messages);
    let mut open = Vec::new();
    for call in calls {
        let is_its = |result: &&ToolResult| result.tool_call_id == call.tool_call_id;
        match results.iter().position(is_its) {
            Some(at) => {
                results.swap_remove(at);
            }
            None => open.push(call),
        }
    }
    open
}

fn push_step(messages: &mut Vec<Message>, step: &StepRecord) {
    let Some((response, at)) = &step.response else {
        return;
    };
    let tools: Vec<ToolPart> = step
        .parts
        .iter()
        .filter_map(|part| ToolPart::read(&part.part))
        .collect();
    let said: StepResponse = response.read().unwrap_or_default();
    if said.answers {
        let results = late_results(messages, step, &tools);
        messages.extend(results_message(step, results).map(Message::from));
        return;
    }
    // Calls that are open on purpose have their answers later, or never.
    let is_whole = tools.iter().all(ToolPart::is_answered);
    if !is_whole && step.step.outcome.open_calls.is_none() {
        return;
    }
    let parts: Vec<Payload> = step.parts.iter().map(|part| part.part.clone()).collect();
    let prompts = parts.iter().filter_map(prompt_message);
    messages.extend(prompts.map(Message::from));
    messages.push(assistant_message(&parts, response, *at).into());
    let results = tools.iter().filter_map(result_of).collect();
    messages.extend(results_message(step, results).map(Message::from));
}

/// The results of calls that were pending, in the order of the calls. An answered call that has no
/// result although the step is over was cut off.
fn late_results(messages: &[Message], step: &StepRecord, tools: &[ToolPart]) -> Vec<ToolResult> {
    let (calls, _) = last_round(messages);
    let place = |id: &str| {
        calls
            .iter()
            .position(|call| call.tool_call_id.as_str() == id)
    };
    let is_over = step.step.status == StepStatus::Failed;
    let mut results: Vec<(Option<usize>, ToolResult)> = tools
        .iter()
        .filter_map(|tool| {
            let id = tool.tool_call_id.as_str();
            let unknown = || is_over.then(|| interrupted(id, UNKNOWN));
            Some((place(id), result_of(tool).or_else(unknown)?))
        })
        .collect();
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

fn results_message(step: &StepRecord, results: Vec<ToolResult>) -> Option<ToolResultMessage> {
    if results.is_empty() {
        return None;
    }
    let id = format!("{}:results", step.step.id);
    let options = MessageOptions {
        id: Some(id.as_str().into()),
        timestamp: step.parts.iter().map(|part| part.updated_at).max(),
        metadata: Some(Metadata::new()),
    };
    Some(ToolResultMessage::new(results, options))
}
