//! The response as an object: all its members, in every event and answer that has it.

use super::echo::Echo;
use super::ending::{Ending, Failure, Status};
use super::output::{Output, Shows};
use super::usage::Tokens;
use super::wire::{Wire, put};
use crate::Converted;
use crate::ids::{CONVERSATION, response_id};
use crate::json_text::quoted;
use crate::parts::StepResponse;
use crate::run;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use timeline::{Answer, AnswerContent, Entry, Execution, ExecutionId, Item, Reaction, Transcript};

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseObject {
    /// The object as JSON text.
    pub json: String,
    /// Its status.
    pub status: Status,
}

/// The members of a response that never change.
#[derive(Clone, Debug)]
pub(super) struct Head {
    id: String,
    created_at: i64,
    /// The members that repeat the request.
    members: String,
    /// The model of the request.
    model: Option<String>,
}

impl Head {
    /// Of the response that begins with this execution.
    pub(super) fn of(execution: &Execution, echo: &Echo) -> Self {
        let (thread, own) = (execution.thread_id.as_str(), execution.id.as_str());
        let mut members = String::new();
        if echo.conversation {
            // The thread may be a copy that is deleted; clients know the conversation of their request.
            let requested = echo.conversation_id.clone();
            let id = quoted(&requested.unwrap_or_else(|| CONVERSATION.write(thread)));
            put(
                &mut members,
                format_args!(",\"conversation\":{{\"id\":{id}}}"),
            );
        }
        members.push_str(&echo.members());
        Self {
            id: quoted(&id_of(thread, own)),
            created_at: execution.created_at.as_second(),
            members,
            model: echo.model.clone(),
        }
    }

    /// The response's id, as JSON.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Writes the object. `output` is a JSON array. `model` is the model that answered; the object
    /// names it if the request named none.
    pub(super) fn write(
        &self,
        out: &mut String,
        ending: &Ending,
        at: Option<Timestamp>,
        model: Option<&str>,
        output: &str,
        usage: Option<Tokens>,
    ) {
        let completed = at.filter(|_| ending.status == Status::Completed);
        let completed =
            completed.map_or_else(|| "null".to_owned(), |at| at.as_second().to_string());
        let details = ending
            .incomplete
            .as_ref()
            .map(|reason| json!({"reason": reason}));
        let error = ending.error.as_ref().map(Failure::object);
        let or_null = |value: Option<Value>| value.unwrap_or_default();
        put(
            out,
            format_args!(
                r#"{{"id":{},"object":"response","created_at":{},"completed_at":{completed},"status":"{}","incomplete_details":{},"error":{},"model":{}{},"output":{output},"usage":{}}}"#,
                self.id,
                self.created_at,
                ending.status.word(),
                or_null(details),
                or_null(error),
                quoted(self.model.as_deref().or(model).unwrap_or_default()),
                self.members,
                or_null(usage.map(Tokens::object)),
            ),
        );
    }
}

/// The id of the response that begins with this execution.
pub(super) fn id_of(thread: &str, execution: &str) -> String {
    // Foreign ids belong to no response that a client could request.
    response_id(thread, execution).unwrap_or_else(|| format!("resp_{thread}_{execution}"))
}

/// The response that begins with this execution, in its present state; `None` if there is no such
/// execution. It includes the executions to which agents handed over. The deltas of an answer that
/// was cut off are included if the transcript was read with its chunks.
pub fn response(
    transcript: &Transcript,
    execution: &ExecutionId,
) -> Option<Converted<ResponseObject>> {
    let (position, first) = reaction_of(transcript, execution)?;
    let head = Head::of(&first.execution, &Echo::of(&first.execution));
    let mut output = Output::new(Wire::muted());
    let mut last = first;
    for (position, reaction) in chain(transcript, position) {
        let shows = Shows::from(&Echo::of(&reaction.execution));
        replay(&mut output, transcript, position, reaction, shows);
        last = reaction;
    }
    let execution = &last.execution;
    let ending = if run::hands_over(last) {
        Ending::none(Status::InProgress)
    } else {
        let why = execution.interruption.as_ref();
        Ending::of(execution.status, why, output.cut_reason())
    };
    let items = output.json();
    let mut json = String::with_capacity(items.len() + 1_024);
    let usage = output.usage();
    head.write(
        &mut json,
        &ending,
        last.ended_at,
        output.model(),
        &items,
        usage,
    );
    let status = ending.status;
    Some(Converted {
        value: ResponseObject { json, status },
        losses: output.losses(),
    })
}

/// An execution of a transcript, and its position among the entries.
pub(super) fn reaction_of<'a>(
    transcript: &'a Transcript,
    execution: &ExecutionId,
) -> Option<(usize, &'a Reaction)> {
    let mut entries = transcript.entries.iter().enumerate().rev();
    entries.find_map(|(position, entry)| match entry {
        Entry::Reaction(reaction) if reaction.execution.id == *execution => {
            Some((position, reaction))
        }
        Entry::Reaction(_) | Entry::Item(_) => None,
    })
}

/// The executions of one response with their positions. The first one is at this position.
pub(super) fn chain(
    transcript: &Transcript,
    position: usize,
) -> impl Iterator<Item = (usize, &Reaction)> {
    let entries = transcript.entries.iter().enumerate().skip(position);
    let mut continues = true;
    entries
        .filter_map(|(position, entry)| match entry {
            Entry::Reaction(reaction) => Some((position, reaction)),
            Entry::Item(_) => None,
        })
        .take_while(move |(_, reaction)| {
            std::mem::replace(&mut continues, run::hands_over(reaction))
        })
}

/// Adds an execution of a transcript to an output.
pub(super) fn replay(
    output: &mut Output,
    transcript: &Transcript,
    position: usize,
    reaction: &Reaction,
    shows: Shows,
) {
    output.execution(shows, Some(results_before(transcript, position, reaction)));
    let mut out = String::new();
    for (_, event) in run::replay([reaction], false) {
        output.event(event, &mut out);
    }
}

/// The calls whose results the trigger of this execution submitted. It is looked up only if the
/// execution acts on answers.
fn results_before(
    transcript: &Transcript,
    position: usize,
    reaction: &Reaction,
) -> BTreeSet<String> {
    let first = reaction.steps.first();
    let response = first.and_then(|step| step.response.as_ref());
    let response: Option<StepResponse> = response.and_then(|(response, _)| response.read().ok());
    if !response.is_some_and(|response| response.answers) {
        return BTreeSet::new();
    }
    let before = transcript.entries.get(..position).unwrap_or_default();
    let trigger = before.iter().rev().find_map(|entry| match entry {
        Entry::Item(item) if item.id == reaction.execution.trigger_item_id => Some(item),
        Entry::Item(_) | Entry::Reaction(_) => None,
    });
    trigger.map(results_of).unwrap_or_default()
}

/// The calls whose results an item of answers submits.
pub(super) fn results_of(item: &Item) -> BTreeSet<String> {
    let answers = Answer::read(item.content.as_ref()).unwrap_or_default();
    answers
        .into_iter()
        .filter_map(|answer| match answer.content {
            AnswerContent::Output(_) | AnswerContent::Failure(_) => Some(answer.tool_call_id),
            AnswerContent::Approved { .. }
            | AnswerContent::Denied { .. }
            | AnswerContent::Resumed => None,
        })
        .collect()
}
