//! The response as an object: all its members, in every event and answer that has it.

use super::echo::Echo;
use super::ending::{Ending, Failure, Status};
use super::output::{Output, Shows};
use super::usage::Tokens;
use super::wire::{Wire, put, quoted};
use crate::Converted;
use crate::ids::{CONVERSATION, response_id};
use crate::parts::{EventPart, StepResponse};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use timeline::{
    Answer, Entry, Execution, ExecutionId, ExecutionStatus, Item, Reaction, Says, StepStatus,
    Transcript,
};

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseObject {
    /// The object as JSON text.
    pub json: String,
    /// How it stands.
    pub status: Status,
}

/// What does not change of a response.
#[derive(Clone, Debug)]
pub(super) struct Head {
    id: String,
    created_at: i64,
    /// Its own members that come from the request.
    members: String,
    /// What was asked for as the model.
    model: Option<String>,
}

impl Head {
    /// Of the response that begins with this execution.
    pub(super) fn of(execution: &Execution, echo: &Echo) -> Self {
        let (thread, own) = (execution.thread_id.as_str(), execution.id.as_str());
        let mut members = String::new();
        if echo.conversation {
            // The one that was asked for, for the thread may be a copy that is forgotten.
            let asked = echo.conversation_id.clone();
            let id = quoted(&asked.unwrap_or_else(|| CONVERSATION.write(thread)));
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

    /// Writes the object. `output` is a JSON array; `model` is the one that has answered, which it names
    /// only where nobody asked for one.
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
    // Ids that are none of ours belong to no response that could be asked for.
    response_id(thread, execution).unwrap_or_else(|| format!("resp_{thread}_{execution}"))
}

/// The response that begins with this execution, as it stands; none where there is no such
/// execution. It covers the executions to which agents have handed over. What an answer that was cut
/// off had said is in it if the transcript was read with its chunks.
pub fn response(
    transcript: &Transcript,
    execution: &ExecutionId,
) -> Option<Converted<ResponseObject>> {
    let (place, first) = reaction_of(transcript, execution)?;
    let head = Head::of(&first.execution, &Echo::of(&first.execution));
    let mut output = Output::new(Wire::muted());
    let mut last = first;
    for (place, reaction) in chain(transcript, place) {
        replay(&mut output, transcript, place, reaction, None);
        last = reaction;
    }
    let execution = &last.execution;
    let ending = if hands_over(last) {
        Ending::none(Status::InProgress)
    } else {
        let why = execution.interruption.as_ref();
        Ending::of(execution.status, why, output.why_cut())
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

/// An execution of a transcript, and its place.
pub(super) fn reaction_of<'a>(
    transcript: &'a Transcript,
    execution: &ExecutionId,
) -> Option<(usize, &'a Reaction)> {
    let mut entries = transcript.entries.iter().enumerate().rev();
    entries.find_map(|(place, entry)| match entry {
        Entry::Reaction(reaction) if reaction.execution.id == *execution => Some((place, reaction)),
        Entry::Reaction(_) | Entry::Item(_) => None,
    })
}

/// The executions of one response, the first of which stands here.
pub(super) fn chain(
    transcript: &Transcript,
    place: usize,
) -> impl Iterator<Item = (usize, &Reaction)> {
    let entries = transcript.entries.iter().enumerate().skip(place);
    let mut goes_on = true;
    entries
        .filter_map(|(place, entry)| match entry {
            Entry::Reaction(reaction) => Some((place, reaction)),
            Entry::Item(_) => None,
        })
        .take_while(move |(_, reaction)| std::mem::replace(&mut goes_on, hands_over(reaction)))
}

/// Whether another agent goes on with what this execution was to answer.
pub(super) fn hands_over(reaction: &Reaction) -> bool {
    let parts = reaction.steps.last().map(|step| step.parts.as_slice());
    reaction.execution.status == ExecutionStatus::Completed
        && parts
            .unwrap_or_default()
            .iter()
            .any(|part| is_handoff(&part.part))
}

/// Whether a part says that another agent goes on.
pub(super) fn is_handoff(part: &timeline::Payload) -> bool {
    let event = EventPart::read(part);
    event.is_some_and(|event| event.part_type == EventPart::AGENT_HANDOFF)
}

/// Puts an execution of a transcript into an output. `shows` says how, where it is not as its own
/// client wants it.
pub(super) fn replay(
    output: &mut Output,
    transcript: &Transcript,
    place: usize,
    reaction: &Reaction,
    shows: Option<Shows>,
) {
    let shows = shows.unwrap_or_else(|| Shows::from(&Echo::of(&reaction.execution)));
    output.execution(shows);
    let mut given = Some(given(transcript, place, reaction));
    let mut out = String::new();
    for step in &reaction.steps {
        // Only the first step can be about answers.
        output.step_begins(step.step.id.as_str(), step.step.iteration, given.take());
        if step.response.is_none() {
            for (kind, data) in &step.chunks {
                output.chunk(kind, data.as_ref(), &mut out);
            }
        }
        for (idx, part) in (0..).zip(&step.parts) {
            output.part(idx, &part.part, &mut out);
        }
        if let Some((said, _)) = &step.response {
            output.chunk(timeline::chunk_type::STEP_RESPONSE, Some(said), &mut out);
        }
        let outcome = &step.step.outcome;
        match step.step.status {
            StepStatus::Running => {}
            StepStatus::Completed => output.step_ends(false, outcome, &mut out),
            StepStatus::Failed => output.step_ends(true, outcome, &mut out),
        }
    }
}

/// The calls whose results the trigger of this execution has brought. Looks for it only where a step
/// is about answers, so that a transcript that lacks it costs no more.
fn given(transcript: &Transcript, place: usize, reaction: &Reaction) -> BTreeSet<String> {
    let first = reaction.steps.first();
    let said = first.and_then(|step| step.response.as_ref());
    let said: Option<StepResponse> = said.and_then(|(said, _)| said.read().ok());
    if !said.is_some_and(|said| said.answers) {
        return BTreeSet::new();
    }
    let before = transcript.entries.get(..place).unwrap_or_default();
    // The trigger stands right before what answers it, but for what was kept meanwhile.
    let trigger = before.iter().rev().find_map(|entry| match entry {
        Entry::Item(item) if item.id == reaction.execution.trigger_item_id => Some(item),
        Entry::Item(_) | Entry::Reaction(_) => None,
    });
    trigger.map(given_by).unwrap_or_default()
}

/// The calls whose results an item of answers brings.
pub(super) fn given_by(item: &Item) -> BTreeSet<String> {
    let answers = Answer::read(item.content.as_ref()).unwrap_or_default();
    answers
        .into_iter()
        .filter_map(|answer| match answer.says {
            Says::Output(_) | Says::Failure(_) => Some(answer.tool_call_id),
            Says::Approved { .. } | Says::Denied { .. } | Says::Resumed => None,
        })
        .collect()
}
