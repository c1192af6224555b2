//! The history that a request brings, as the executions it would have come from.

mod written;

use super::error::RequestError;
use super::fields::{invalid, unsupported};
use super::item::{InputContent, InputItem};
use super::thread_input::{message_item, reference};
use crate::parts::ToolPart;
use serde_json::Value;
use std::collections::BTreeMap;
use timeline::{Command, NewItem, Payload, Role, Trigger};
use written::write;

/// The end of a past.
pub(super) enum Ends {
    /// A message to the agents.
    Input(NewItem),
    /// Open calls, and the answers to them.
    Open(Vec<Value>),
    /// An agent's answer, in the item of this id; `None` if the history is empty.
    Answer(Option<String>),
}

/// The treatment of calls at the end.
#[derive(Clone, Copy)]
pub(super) enum Tail<'a> {
    /// The results of the last answer's calls are answers to them, and its execution was run so.
    Answered(Option<&'a Payload>),
    /// Calls without results stay open.
    Open,
}

enum Turn {
    Input(NewItem),
    Agent(Vec<Step>),
}

/// One answer of a model.
#[derive(Default)]
struct Step {
    parts: Vec<Slot>,
    /// Whether it has results: later content is another answer.
    is_over: bool,
}

enum Slot {
    Part(Payload),
    Call(Box<Called>),
}

/// A call, and its result if there is one.
struct Called {
    tool: ToolPart,
    output: Option<Value>,
    pointer: String,
}

/// The position of a call: turn, step, slot.
type CallPosition = (usize, usize, usize);

/// The turns of a past.
#[derive(Default)]
pub(super) struct Draft {
    turns: Vec<Turn>,
    calls: BTreeMap<String, CallPosition>,
}

fn unwritable(pointer: &str) -> RequestError {
    invalid(pointer, "it can't be kept as JSON")
}

impl Draft {
    /// Groups the items of an input into turns.
    pub(super) fn of(
        input: &[InputItem],
        ids: &mut dyn FnMut() -> String,
    ) -> Result<Self, RequestError> {
        let mut draft = Self::default();
        for given in input {
            draft.push(given, ids)?;
        }
        Ok(draft)
    }

    fn push(
        &mut self,
        given: &InputItem,
        ids: &mut dyn FnMut() -> String,
    ) -> Result<(), RequestError> {
        match &given.content {
            InputContent::Message {
                role: Role::Assistant,
                content,
                phase,
            } => {
                let parts = content.iter().cloned().map(|mut part| {
                    if let Some(phase) = phase {
                        part["phase"] = phase.as_str().into();
                    }
                    Slot::Part(part.into())
                });
                self.append(parts.collect());
            }
            InputContent::Reasoning(part) => {
                self.append(vec![Slot::Part(part.clone())]);
            }
            InputContent::Message {
                role: Role::User | Role::System | Role::Developer,
                ..
            }
            | InputContent::Compaction { .. } => {
                self.turns
                    .extend(message_item(given, true, ids).map(Turn::Input));
            }
            InputContent::Call {
                call_id,
                name,
                arguments,
            } => {
                let place = self.append(vec![Slot::Call(Box::new(Called {
                    tool: ToolPart::call(name, call_id, arguments),
                    output: None,
                    pointer: given.pointer.clone(),
                }))]);
                self.calls.insert(call_id.clone(), place);
            }
            InputContent::CallOutput { call_id, output } => {
                return self.add_result(given, call_id, output);
            }
            InputContent::Approval { .. } => {
                let message = "leave is given to a call where it waits, and in a past that a request \
                               brings or that \"store\": false copies none does";
                return Err(unsupported(given.pointer.as_str(), message));
            }
            // They have been put in place.
            InputContent::Reference { id } => {
                return Err(RequestError::item_not_found(id, &given.pointer));
            }
        }
        Ok(())
    }

    /// Appends to an agent's turn; returns the position of the first slot.
    fn append(&mut self, slots: Vec<Slot>) -> CallPosition {
        if !matches!(self.turns.last(), Some(Turn::Agent(_))) {
            self.turns.push(Turn::Agent(Vec::new()));
        }
        let turn = self.turns.len().saturating_sub(1);
        let Some(Turn::Agent(steps)) = self.turns.last_mut() else {
            return (turn, 0, 0);
        };
        if steps.last().is_none_or(|step| step.is_over) {
            steps.push(Step::default());
        }
        let at = steps.len().saturating_sub(1);
        let Some(step) = steps.last_mut() else {
            return (turn, at, 0);
        };
        let first = step.parts.len();
        step.parts.extend(slots);
        (turn, at, first)
    }

    /// Adds the result of a call.
    fn add_result(
        &mut self,
        given: &InputItem,
        id: &str,
        result: &Value,
    ) -> Result<(), RequestError> {
        let place = self.calls.get(id).copied();
        let step = place.and_then(|(turn, step, slot)| match self.turns.get_mut(turn)? {
            Turn::Agent(steps) => Some((steps.get_mut(step)?, slot)),
            Turn::Input(_) => None,
        });
        let slot = step.and_then(|(step, slot)| {
            step.is_over = true;
            step.parts.get_mut(slot)
        });
        match slot {
            Some(Slot::Call(call)) if call.output.is_none() => {
                call.output = Some(result.clone());
                Ok(())
            }
            Some(Slot::Call(_)) => {
                let message = format!("the call {id:?} has its result already");
                Err(invalid(given.pointer.as_str(), &message))
            }
            Some(Slot::Part(_)) | None => {
                let mut error = RequestError::no_such_call(id);
                error.pointer = Some(given.pointer.clone());
                Err(error)
            }
        }
    }

    /// The commands that write the turns, and their end.
    pub(super) fn commands(
        self,
        tail: Tail<'_>,
        ids: &mut dyn FnMut() -> String,
    ) -> Result<(Vec<Command>, Ends), RequestError> {
        let mut commands = Vec::new();
        let mut input: Option<NewItem> = None;
        let mut ends = Ends::Answer(None);
        let n_turns = self.turns.len();
        let (is_answered, answered_run) = match tail {
            Tail::Answered(run) => (true, run),
            Tail::Open => (false, None),
        };
        let mut former = None;
        for (place, turn) in self.turns.into_iter().enumerate() {
            match turn {
                Turn::Input(item) => {
                    commands.extend(input.replace(item).map(|item| Command::Record { item }));
                }
                Turn::Agent(steps) => {
                    let last = place + 1 == n_turns;
                    let waits = last && waits(&steps, is_answered);
                    let trigger = input
                        .take()
                        .unwrap_or_else(|| reference(former.as_deref(), ids));
                    let reaction = ids();
                    let run = answered_run.filter(|_| waits).cloned();
                    commands.push(start(trigger, reaction.clone(), run, ids));
                    let given = write(steps, waits, is_answered, &mut commands, ids)?;
                    ends = if waits && is_answered {
                        Ends::Open(given)
                    } else {
                        Ends::Answer(Some(reaction.clone()))
                    };
                    former = Some(reaction);
                }
            }
        }
        Ok((commands, input.map_or(ends, Ends::Input)))
    }
}

/// Whether the calls of the last step stay open: those whose results are the answers, or else those
/// without results.
fn waits(steps: &[Step], is_answered: bool) -> bool {
    let Some(last) = steps.last() else {
        return false;
    };
    if is_answered {
        return last.is_over;
    }
    let is_open = |slot: &Slot| matches!(slot, Slot::Call(call) if call.output.is_none());
    last.parts.iter().any(is_open)
}

/// Begins an execution. [`write`] continues with its first step.
fn start(
    trigger: NewItem,
    reaction: String,
    run: Option<Payload>,
    ids: &mut dyn FnMut() -> String,
) -> Command {
    Command::Start {
        trigger: Trigger::New(trigger),
        run,
        execution_id: ids().into(),
        reaction_item_id: reaction.into(),
        step_id: ids().into(),
        workflow_run_id: None,
    }
}
