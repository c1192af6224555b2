//! Calls that wait for answers from outside, and the answers.

use super::failure::unwritable;
use super::journal::AgentJournal;
use crate::error::AnswerRefusal;
use crate::reactor::{ReactorError, StepRun};
use agents::{Agent, AgentState, AnswerError, Answers, PendingKind, Resumption};
use interop::parts::{ToolApproval, ToolPart, ToolState};
use std::collections::BTreeMap;
use timeline::{Answer, AnswerContent, ItemType, OpenCall, OpenKind, Payload};
use upp::{Arguments, AssistantMessage, MessageOptions, ToolCall, ToolCallId};

/// The answers that a step acts on.
pub(super) struct SubmittedAnswers {
    /// For the agent.
    pub(super) answers: Answers,
    /// The parts of the answered calls.
    pub(super) parts: Vec<Payload>,
}

impl SubmittedAnswers {
    /// The answers in the step's trigger, if this is the first step after answers. Answers to calls
    /// that are no longer open are skipped.
    pub(super) fn of(step: &StepRun, state: &AgentState) -> Result<Option<Self>, ReactorError> {
        if step.step.iteration > 0 || step.trigger.item_type != ItemType::ActionResult {
            return Ok(None);
        }
        let content = step.trigger.content.as_ref();
        let answers =
            Answer::read(content).map_err(|error| ReactorError::failed(error.to_string()))?;
        let calls = state.open_calls();
        let mut given = Self {
            answers: Answers::new(),
            parts: Vec::new(),
        };
        for answer in answers {
            let is_its = |call: &&&ToolCall| call.tool_call_id.as_str() == answer.tool_call_id;
            let Some(call) = calls.iter().find(is_its) else {
                continue;
            };
            let stood = step.open_calls.iter();
            let mut stood = stood.filter(|open| open.tool_call_id == answer.tool_call_id);
            let stood = stood.find_map(|open| ToolPart::read(&open.part));
            if answer.content == AnswerContent::Resumed {
                // It runs as it ran: with edited arguments, if it had such.
                let part = stood.unwrap_or_else(|| part_of(call));
                given.parts.push(part.write().map_err(|e| unwritable(&e))?);
                let id = answer.tool_call_id.as_str();
                given.answers = given.answers.resume(id, resumption(&part, call));
                continue;
            }
            let part = answered_part(call, &answer.content);
            given.parts.push(part.write().map_err(|e| unwritable(&e))?);
            given.answers = with(given.answers, answer);
        }
        Ok(Some(given))
    }
}

/// The parameters with which this part's call ran before its sub-agent waited.
fn resumption(part: &ToolPart, call: &ToolCall) -> Resumption {
    let is_edited = part.arguments() != call.arguments.text();
    let arguments = is_edited.then(|| serde_json::from_str(part.arguments()).ok());
    Resumption {
        arguments: arguments.flatten(),
        approved: part.approval.as_ref().and_then(|it| it.approved) == Some(true),
    }
}

/// A call as a part.
pub(super) fn part_of(call: &ToolCall) -> ToolPart {
    let id = call.tool_call_id.as_str();
    ToolPart {
        after: call.after.iter().map(ToString::to_string).collect(),
        ..ToolPart::call(&call.tool_name, id, call.arguments.text())
    }
}

/// The part of an answered call, with its edited arguments if there are any.
fn answered_part(call: &ToolCall, says: &AnswerContent) -> ToolPart {
    let mut part = part_of(call);
    let id = call.tool_call_id.as_str();
    let approval = |approved, reason: Option<String>| ToolApproval {
        id: id.to_owned(),
        approved: Some(approved),
        reason,
    };
    match says {
        AnswerContent::Approved { arguments } => {
            if let Some(arguments) = arguments {
                let after = std::mem::take(&mut part.after);
                part = ToolPart::call(&call.tool_name, id, arguments.text());
                part.after = after;
            }
            part.state = ToolState::ApprovalResponded;
            part.approval = Some(approval(true, None));
        }
        AnswerContent::Denied { message } => {
            part.state = ToolState::ApprovalResponded;
            part.approval = Some(approval(false, message.clone()));
        }
        AnswerContent::Output(_) | AnswerContent::Failure(_) | AnswerContent::Resumed => {}
    }
    part
}

fn with(answers: Answers, answer: Answer) -> Answers {
    let call = answer.tool_call_id.as_str();
    match answer.content {
        AnswerContent::Approved { arguments: None } => answers.approve(call),
        AnswerContent::Approved {
            arguments: Some(arguments),
        } => answers.approve_with(call, arguments.value()),
        AnswerContent::Denied { message: None } => answers.deny(call),
        AnswerContent::Denied {
            message: Some(message),
        } => answers.deny_because(call, message),
        AnswerContent::Output(output) => answers.result(call, output.value()),
        AnswerContent::Failure(text) => answers.failure(call, text),
        AnswerContent::Resumed => answers.resume(call, Resumption::default()),
    }
}

/// The calls that the state leaves open, with the kind of answer they wait for. The parts of calls
/// that need an approval become approval requests. None if every call has its result; an empty list
/// if the calls can't be answered.
pub(super) fn left_open(
    agent: &Agent,
    state: &AgentState,
    step: &StepRun,
    journal: &AgentJournal<'_>,
) -> Result<Option<Payload>, ReactorError> {
    let calls = state.open_calls();
    if calls.is_empty() {
        return Ok(None);
    }
    let pending: BTreeMap<_, _> = agent
        .pending(state)
        .into_iter()
        .map(|pending| (pending.call.tool_call_id, pending.kind))
        .collect();
    let mut board = Board::new(journal);
    let mut open = Vec::new();
    for call in calls.into_iter().filter(|_| !pending.is_empty()) {
        let id = call.tool_call_id.as_str();
        let kind = match pending.get(&call.tool_call_id) {
            Some(PendingKind::Approval) => OpenKind::Approval,
            Some(PendingKind::External) => OpenKind::External,
            Some(PendingKind::Subagent) => OpenKind::Child,
            None => OpenKind::Others,
        };
        let known = step.open_calls.iter().find(|it| it.tool_call_id == id);
        let known = known.filter(|it| it.kind == kind);
        let part = match known {
            Some(known) => known.part.clone(),
            None => board
                .open_part(call, kind)
                .map_err(|error| unwritable(&error))?,
        };
        open.push(OpenCall {
            tool_call_id: id.to_owned(),
            kind,
            part,
            origin: Some(step.origin.clone()),
            children: match step.children.of_call(id) {
                begun if kind == OpenKind::Child && !begun.is_empty() => begun,
                _ => known.map(|it| it.children.clone()).unwrap_or_default(),
            },
        });
    }
    Payload::write(&open)
        .map(Some)
        .map_err(|error| unwritable(&error))
}

/// An empty list of open calls if these parts have calls without results, as those can't be
/// answered; else none.
pub(super) fn abandoned(parts: &[Payload]) -> Option<Payload> {
    let mut tools = parts.iter().filter_map(ToolPart::read);
    let has_open = tools.any(|tool| !tool.is_answered());
    has_open.then(|| serde_json::json!([]).into())
}

/// The step's parts, by the calls they are of.
struct Board<'a> {
    journal: &'a AgentJournal<'a>,
    written: BTreeMap<String, (u32, ToolPart)>,
}

impl<'a> Board<'a> {
    fn new(journal: &'a AgentJournal<'a>) -> Self {
        let parts = journal.placed();
        let tools = parts.iter().filter_map(|(idx, part)| {
            let tool = ToolPart::read(part)?;
            Some((tool.tool_call_id.clone(), (*idx, tool)))
        });
        Self {
            journal,
            written: tools.collect(),
        }
    }

    /// The part of an open call. If the call needs an approval, the part becomes an approval
    /// request.
    fn open_part(&mut self, call: &ToolCall, kind: OpenKind) -> Result<Payload, serde_json::Error> {
        let id = call.tool_call_id.as_str();
        let known = self.written.remove(id);
        let (idx, tool) = known.unzip();
        let mut tool = tool.unwrap_or_else(|| part_of(call));
        if kind != OpenKind::Approval {
            return tool.write();
        }
        tool.state = ToolState::ApprovalRequested;
        tool.approval = Some(ToolApproval {
            id: id.to_owned(),
            approved: None,
            reason: None,
        });
        let part = tool.write()?;
        self.journal.put(idx, part.clone());
        Ok(part)
    }
}

/// The call of an open call, as its model made it.
pub(crate) fn called(open: &OpenCall) -> Option<ToolCall> {
    let tool = ToolPart::read(&open.part)?;
    Some(ToolCall {
        tool_call_id: tool.tool_call_id.as_str().into(),
        tool_name: tool.tool_name().into(),
        arguments: Arguments::from_text(tool.arguments()),
        after: tool.after.iter().map(|id| id.as_str().into()).collect(),
    })
}

/// Checks answers against the tools of their calls. Edited arguments must match the tool's schema,
/// and an answered call must not depend on another call that still waits. A result must match the
/// schema that its tool declares for results. Any result is accepted if its tool no longer exists, as the client ran the call. A verdict on such a tool is accepted,
/// too; the model gets an error result for it.
pub(super) fn check(
    agent: &Agent,
    open: &[OpenCall],
    answers: &[Answer],
) -> Result<(), AnswerRefusal> {
    let is_open = |id: &ToolCallId| open.iter().any(|open| open.tool_call_id == id.as_str());
    let calls = open.iter().filter_map(|open| {
        let mut call = called(open)?;
        call.after.retain(is_open);
        Some(call)
    });
    let options = MessageOptions::default();
    let message = AssistantMessage::new(Vec::new(), calls.collect(), options);
    let waits = |open: &&OpenCall| open.kind == OpenKind::Child;
    let suspended = open.iter().filter(waits);
    let suspended = suspended.map(|open| open.tool_call_id.as_str().into());
    let state = AgentState::initial()
        .with_message(message)
        .with_suspended(suspended.collect());
    let asked = answers.iter().cloned().fold(Answers::new(), with);
    let is_taken = |fault: &AnswerError| {
        matches!(
            fault,
            AnswerError::WrongKind { expected: None, .. }
                | AnswerError::WrongKind {
                    given: PendingKind::External,
                    ..
                }
        )
    };
    let mut faults = agent.faults(&asked, &state).into_iter();
    match faults.find(|fault| !is_taken(fault)) {
        None => Ok(()),
        Some(error) => {
            let call = match &error {
                AnswerError::NothingWaits => None,
                AnswerError::UnknownCall { call }
                | AnswerError::AlreadyAnswered { call }
                | AnswerError::WrongKind { call, .. }
                | AnswerError::Early { call }
                | AnswerError::TooDeep { call }
                | AnswerError::Arguments { call, .. }
                | AnswerError::Result { call, .. } => Some(call.to_string()),
            };
            let detail = error.to_string();
            Err(AnswerRefusal { call, detail })
        }
    }
}
