//! Converts the events of a run to its steps.

use super::step::{self, MessageEnd, Step};
use super::streamed::Streamed;
use super::{CallPosition, Change, Delta, RequiredCall, Run};
use crate::parts::{StepResponse, ToolPart, is_prompt, text_of};
use crate::run::{RunEvent, RunPart};
use crate::threads::object::{StepCall, Usage};
use crate::truncate::Cut;
use jiff::Timestamp;
use std::collections::BTreeMap;
use timeline::{Answer, AnswerContent, Item, OpenCall, OpenKind, Payload, StepOutcome, StepStatus};

impl Run {
    /// Adds an event of the running execution. Returns the text that it adds.
    pub(in crate::threads) fn event<'e>(
        &mut self,
        event: &'e RunEvent<'_>,
        at: Timestamp,
    ) -> Delta<'e> {
        match event {
            RunEvent::StepStarted { step } => self.step_started(step, 0, false),
            RunEvent::Chunk(chunk) if self.steps.last().is_some_and(Step::is_streaming) => {
                return self.streamed.chunk(chunk);
            }
            RunEvent::StepReset { .. } => self.reset(),
            RunEvent::Responded { response } => self.responded(response.as_ref(), at),
            RunEvent::Part {
                idx, part, payload, ..
            } => self.part(*idx, part, payload, at),
            RunEvent::StepEnded {
                status: StepStatus::Completed,
                outcome,
                ..
            } => self.step_completed(outcome, at),
            RunEvent::ExecutionEnded {
                status,
                interruption,
                ..
            } => self.execution_ended(*status, *interruption, at),
            RunEvent::StepEnded {
                status: StepStatus::Running | StepStatus::Failed,
                ..
            }
            | RunEvent::Chunk(_)
            | RunEvent::Started { .. }
            | RunEvent::Continued { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
        Delta::Nothing
    }

    /// A step starts after `n_resets` failed attempts. A removed step is listed with its message and
    /// its calls, but without their content.
    pub(in crate::threads) fn step_started(
        &mut self,
        step: &timeline::Step,
        n_resets: usize,
        is_removed: bool,
    ) {
        self.iteration = step.iteration;
        self.slots = BTreeMap::new();
        self.streamed = Streamed::default();
        let mut new = Step::new(step.id.clone(), step.created_at);
        new.attempt = n_resets;
        new.is_removed = is_removed;
        self.steps.push(new);
    }

    fn reset(&mut self) {
        self.streamed = Streamed::default();
        self.slots = BTreeMap::new();
        let last = self.steps.len().saturating_sub(1);
        self.open.retain(|_, (step, _)| *step != last);
        if let Some(step) = self.steps.last_mut() {
            step.reset();
        }
    }

    /// A part of the running step was stored, for the first time or again.
    fn part(&mut self, idx: u32, part: &RunPart, payload: &Payload, at: Timestamp) {
        let position = self.steps.len().saturating_sub(1);
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        match part {
            RunPart::Tool(_) if step.is_removed => step.add_removed_call(at),
            RunPart::Tool(tool) => self.call(idx, tool, at),
            RunPart::Event(event) => self.hands_over |= event.is_handoff() && !step.is_removed,
            RunPart::File { .. } | RunPart::Content if is_prompt(payload) => {}
            RunPart::File { .. } | RunPart::Content => {
                let pointer = format!("/steps/{position}/parts/{idx}");
                step.add_content(idx, payload, &pointer, &mut self.losses);
            }
        }
    }

    fn call(&mut self, idx: u32, tool: &ToolPart, at: Timestamp) {
        let id = &tool.tool_call_id;
        let position = match self.slots.get(&idx) {
            Some(position) => *position,
            None => match self.earlier(id) {
                Some(position) => position,
                None => self.new_call(tool),
            },
        };
        self.slots.insert(idx, position);
        if let Some(output) = tool.result_text() {
            self.resolve(id, position, output, at);
        }
    }

    /// The call of an earlier step that a part of the current step refers to.
    fn earlier(&self, id: &str) -> Option<CallPosition> {
        if !self.by_answers || self.iteration > 0 {
            return None;
        }
        self.answering.get(id).or(self.open.get(id)).copied()
    }

    fn new_call(&mut self, tool: &ToolPart) -> CallPosition {
        let step = self.steps.len().saturating_sub(1);
        let calls = self.steps.last_mut().map(|step| step.add_call(tool));
        let position = (step, calls.unwrap_or_default());
        self.open.insert(tool.tool_call_id.clone(), position);
        position
    }

    fn resolve(&mut self, id: &str, position: CallPosition, output: String, at: Timestamp) {
        if self.open.get(id) == Some(&position) {
            self.open.remove(id);
        }
        let step = self.steps.get_mut(position.0);
        if step.is_some_and(|step| step.resolve(position.1, output, at)) {
            self.changes.push(Change::Calls(position.0));
        }
    }

    /// The calls of a step that were stored or ended since the last call of this function.
    pub(in crate::threads) fn take_new_calls(&mut self, place: usize) -> Vec<StepCall> {
        let step = self.steps.get_mut(place);
        step.map(Step::take_new_calls).unwrap_or_default()
    }

    /// Whether a model step has stored calls.
    pub(in crate::threads) fn has_calls(&self, place: usize) -> bool {
        let step = self.steps.get(place);
        step.is_some_and(|step| step.calls.is_some())
    }

    /// The model has answered: the content of the running step is complete.
    fn responded(&mut self, response: Option<&StepResponse>, at: Timestamp) {
        if response.is_none_or(|response| !response.answers) {
            let model = response.and_then(|response| response.model.clone());
            self.model = model.or(self.model.take());
            let stop_reason = response.and_then(|response| response.stop_reason.as_deref());
            self.cut = Cut::of_answer(stop_reason);
        }
        let usage = response.and_then(|response| response.usage.as_ref());
        let usage = usage.and_then(step::usage_of);
        if let Some(usage) = usage {
            self.usage = Some(step::sum(self.usage.unwrap_or_default(), usage));
        }
        let end = self.cut.map_or(MessageEnd::Whole, MessageEnd::from);
        self.complete_step(usage, end, at);
    }

    fn complete_step(&mut self, usage: Option<Usage>, end: MessageEnd, at: Timestamp) {
        let place = self.steps.len().saturating_sub(1);
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        step.usage = usage.or(step.usage);
        let (message, calls) = step.complete(end, at);
        self.changes
            .extend(message.then_some(Change::Message(place)));
        self.changes.extend(calls.then_some(Change::Calls(place)));
    }

    fn step_completed(&mut self, outcome: &StepOutcome, at: Timestamp) {
        let Some(step) = self.steps.last_mut().filter(|step| !step.is_removed) else {
            return;
        };
        if !step.is_complete() {
            // No model answered. If nothing is stored, the deltas are the step's content.
            step.set_streamed(self.streamed.texts.clone());
            self.complete_step(None, MessageEnd::Whole, at);
        }
        self.cut = Cut::of_step(outcome).or(self.cut);
        self.pending.clear();
        self.pending_elsewhere.clear();
        for call in OpenCall::list(outcome.open_calls.as_ref()) {
            match (call.kind, ToolPart::read(&call.part)) {
                (OpenKind::External, Some(tool)) => self.pending.push(RequiredCall {
                    name: tool.tool_name().to_owned(),
                    arguments: tool.arguments().to_owned(),
                    id: call.tool_call_id,
                }),
                (
                    OpenKind::External | OpenKind::Approval | OpenKind::Others | OpenKind::Child,
                    _,
                ) => self.pending_elsewhere.push(call.tool_call_id),
            }
        }
    }

    /// An item contains answers to calls. A call with a result is done.
    pub(in crate::threads) fn answered(&mut self, item: &Item) {
        let Ok(answers) = Answer::read(item.content.as_ref()) else {
            return;
        };
        if item.run.is_some() {
            self.queued.insert(item.id.clone());
        }
        for answer in answers {
            let id = answer.tool_call_id;
            let Some(position) = self.open.get(&id).copied() else {
                continue;
            };
            self.answering.insert(id.clone(), position);
            match answer.content {
                AnswerContent::Output(output) => {
                    self.resolve(&id, position, text_of(&output), item.created_at);
                }
                AnswerContent::Failure(error) => {
                    self.resolve(&id, position, error, item.created_at);
                }
                AnswerContent::Approved { .. }
                | AnswerContent::Denied { .. }
                | AnswerContent::Resumed => {}
            }
        }
    }
}
