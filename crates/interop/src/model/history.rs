//! The conversation as a model is to see it.

use super::answer::assistant_message;
use super::prompt::prompt_message;
use super::result::{UNKNOWN, result_of};
use super::user::user_message;
use crate::parts::{StepResponse, ToolPart};
use serde_json::{Map, Value};
use timeline::{
    Entry, Item, ItemType, Payload, Reaction, Role, StepId, StepRecord, StepStatus, Transcript,
    said_beside,
};
use upp::{Message, MessageOptions, Metadata, ToolCall, ToolResult, ToolResultMessage};

/// The text a model is given for a call that waited when the user said something else.
const SUPERSEDED: &str = "The user went on without answering.";

/// The conversation as a model is to see it before `running`: every user's message that is
/// answered or being answered, the prompts of strategies, and every complete cycle (ruling 15,
/// policy *drop*). A cycle whose calls waited for answers from outside is there with the results
/// that came, and the answers where they came in; once the user has said something else instead,
/// the rest has interrupted results.
///
/// It is linear in the transcript. Messages keep their ids, so it is the same each time.
pub fn history(transcript: &Transcript, running: Option<&StepId>) -> Vec<Message> {
    marked_history(transcript, running).0
}

/// The same, and how many messages come before each execution, in the order of the transcript.
pub fn marked_history(
    transcript: &Transcript,
    running: Option<&StepId>,
) -> (Vec<Message>, Vec<usize>) {
    let mut messages = Vec::new();
    let mut marks = Vec::new();
    let mut beside = Vec::new();
    for entry in &transcript.entries {
        match entry {
            Entry::Item(item) if item.item_type != ItemType::Message || item.run.is_some() => {
                beside = said_beside(item);
            }
            Entry::Item(item) => hear(&mut messages, item),
            Entry::Reaction(reaction) => {
                marks.push(messages.len());
                push_reaction(&mut messages, reaction, &beside, running);
                beside.clear();
            }
        }
    }
    (messages, marks)
}

/// Puts in what was said, after what the calls that waited until then come to.
fn hear(messages: &mut Vec<Message>, item: &Item) {
    let left = superseded(open_calls(messages), item);
    messages.extend(left.map(Message::from));
    messages.push(item_message(item));
}

/// The results of calls that waited when this item came: the user went on without answering. None
/// where there are no such calls.
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

/// The calls at the end that have no result. Where an id repeats, each result is for one of them.
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

/// `beside` is what was said with the answers that began it: it comes after their results.
fn push_reaction(
    messages: &mut Vec<Message>,
    reaction: &Reaction,
    beside: &[Item],
    running: Option<&StepId>,
) {
    let mut beside = beside.iter();
    for step in &reaction.steps {
        if running == Some(&step.step.id) {
            continue;
        }
        push_step(messages, step);
        for item in beside.by_ref() {
            hear(messages, item);
        }
    }
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

/// What came of calls that had waited, in the order of the calls. A call that was answered and has
/// no result although the step is over was cut off.
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
