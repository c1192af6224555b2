//! What the log says of a run's steps, taken in.

use super::partial::Partial;
use super::step::{self, MessageEnd, Step};
use super::{Change, Grown, PendingCall, Place, Run};
use crate::cut::Cut;
use crate::parts::{EventPart, StepResponse, ToolPart, is_prompt, text_of};
use crate::threads::object::{StepCall, Usage};
use jiff::Timestamp;
use std::collections::BTreeMap;
use timeline::{
    Answer, Item, OpenCall, OpenKind, Payload, Says, StepOutcome, StepRecord, StepStatus,
};

impl Run {
    pub(in crate::threads) fn step_began(&mut self, step: &timeline::Step) {
        self.attempt_began(step, 0);
    }

    /// A step of which so many attempts have died.
    pub(in crate::threads) fn attempt_began(&mut self, step: &timeline::Step, attempt: usize) {
        self.iteration = step.iteration;
        self.slots = BTreeMap::new();
        self.partial = Partial::default();
        let mut new = Step::new(step.id.clone(), step.created_at);
        new.attempt = attempt;
        self.steps.push(new);
    }

    /// Takes a chunk of the running step in.
    pub(in crate::threads) fn chunk<'d>(
        &mut self,
        kind: &str,
        data: Option<&'d Payload>,
    ) -> Grown<'d> {
        if self.steps.last().is_none_or(Step::is_told) {
            return Grown::Nothing;
        }
        self.partial.take(kind, data)
    }

    /// A dead attempt's parts and chunks are void.
    pub(in crate::threads) fn reset(&mut self) {
        self.partial = Partial::default();
        self.slots = BTreeMap::new();
        let last = self.steps.len().saturating_sub(1);
        self.open.retain(|_, (step, _)| *step != last);
        if let Some(step) = self.steps.last_mut() {
            step.reset();
        }
    }

    /// A part of the running step was written, for the first time or again.
    pub(in crate::threads) fn part(&mut self, idx: u32, part: &Payload, at: Timestamp) {
        if is_prompt(part) {
            return;
        }
        if let Some(tool) = ToolPart::read(part) {
            self.call(idx, &tool, at);
            return;
        }
        if let Some(event) = EventPart::read(part) {
            self.hands_over |= event.part_type == EventPart::AGENT_HANDOFF;
            return;
        }
        let place = self.steps.len().saturating_sub(1);
        if let Some(step) = self.steps.last_mut() {
            let at = format!("/steps/{place}/parts/{idx}");
            step.say(idx, part, &at, &mut self.losses);
        }
    }

    /// Takes a step in that was removed. Its calls are nobody's any more.
    pub(in crate::threads) fn step_removed(&mut self, record: &StepRecord) {
        self.attempt_began(&record.step, record.n_resets);
        let mut called = None;
        for (idx, part) in (0..).zip(&record.parts) {
            if ToolPart::read(&part.part).is_some() {
                called = Some(part.updated_at);
            } else if EventPart::read(&part.part).is_none() {
                self.part(idx, &part.part, part.updated_at);
            }
        }
        if let Some((response, at)) = &record.response {
            self.told(Some(response), *at);
        }
        if let Some(step) = self.steps.last_mut() {
            step.remove(called);
        }
    }

    fn call(&mut self, idx: u32, tool: &ToolPart, at: Timestamp) {
        let id = &tool.tool_call_id;
        let place = match self.slots.get(&idx) {
            Some(place) => *place,
            None => match self.earlier(id) {
                Some(place) => place,
                None => self.new_call(tool),
            },
        };
        self.slots.insert(idx, place);
        if let Some(output) = tool.result_text() {
            self.resolve(id, place, output, at);
        }
    }

    /// The call of an earlier step that a part of this one is about.
    fn earlier(&self, id: &str) -> Option<Place> {
        if !self.by_answers || self.iteration > 0 {
            return None;
        }
        self.answering.get(id).or(self.open.get(id)).copied()
    }

    fn new_call(&mut self, tool: &ToolPart) -> Place {
        let step = self.steps.len().saturating_sub(1);
        let calls = self.steps.last_mut().map(|step| step.add_call(tool));
        let place = (step, calls.unwrap_or_default());
        self.open.insert(tool.tool_call_id.clone(), place);
        place
    }

    fn resolve(&mut self, id: &str, place: Place, output: String, at: Timestamp) {
        if self.open.get(id) == Some(&place) {
            self.open.remove(id);
        }
        let step = self.steps.get_mut(place.0);
        if step.is_some_and(|step| step.resolve(place.1, output, at)) {
            self.changes.push(Change::Calls(place.0));
        }
    }

    /// The calls of a step that have become facts, or come to their end, since somebody asked.
    pub(in crate::threads) fn take_new_calls(&mut self, place: usize) -> Vec<StepCall> {
        let step = self.steps.get_mut(place);
        step.map(Step::take_new_calls).unwrap_or_default()
    }

    /// Whether a step of ours has called tools, for a fact.
    pub(in crate::threads) fn has_calls(&self, place: usize) -> bool {
        let step = self.steps.get(place);
        step.is_some_and(|step| step.calls.is_some())
    }

    /// The model has answered: what the running step says is a fact.
    pub(in crate::threads) fn told(&mut self, response: Option<&Payload>, at: Timestamp) {
        let said: StepResponse = response
            .and_then(|response| response.read().ok())
            .unwrap_or_default();
        if !said.answers {
            self.model = said.model.or(self.model.take());
            self.cut = Cut::of_answer(said.stop_reason.as_deref());
        }
        let usage = said.usage.as_ref().and_then(step::usage_of);
        if let Some(usage) = usage {
            self.usage = Some(step::sum(self.usage.unwrap_or_default(), usage));
        }
        let end = self.cut.map_or(MessageEnd::Whole, MessageEnd::from);
        self.settle_step(usage, end, at);
    }

    fn settle_step(&mut self, usage: Option<Usage>, end: MessageEnd, at: Timestamp) {
        let place = self.steps.len().saturating_sub(1);
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        step.usage = usage.or(step.usage);
        let (message, calls) = step.tell(end, at);
        self.changes
            .extend(message.then_some(Change::Message(place)));
        self.changes.extend(calls.then_some(Change::Calls(place)));
    }

    pub(in crate::threads) fn step_ended(
        &mut self,
        to: StepStatus,
        outcome: &StepOutcome,
        at: Timestamp,
    ) {
        if to != StepStatus::Completed {
            return;
        }
        let is_told = self.steps.last().is_some_and(Step::is_told);
        if !is_told {
            // A step of no model: what it streamed without writing it down is what it said.
            let texts = self.partial.texts();
            if let Some(step) = self.steps.last_mut() {
                step.say_instead(texts);
            }
            self.settle_step(None, MessageEnd::Whole, at);
        }
        self.cut = Cut::of_step(outcome).or(self.cut);
        self.left.clear();
        self.left_to_others.clear();
        for call in OpenCall::list(outcome.open_calls.as_ref()) {
            match (call.kind, ToolPart::read(&call.part)) {
                (OpenKind::External, Some(tool)) => self.left.push(PendingCall {
                    name: tool.tool_name().to_owned(),
                    arguments: tool.arguments().to_owned(),
                    id: call.tool_call_id,
                }),
                (
                    OpenKind::External | OpenKind::Approval | OpenKind::Others | OpenKind::Child,
                    _,
                ) => {
                    self.left_to_others.push(call.tool_call_id);
                }
            }
        }
    }

    /// Somebody has answered calls of it. A call whose result was brought is done.
    pub(in crate::threads) fn answered(&mut self, item: &Item) {
        let Ok(answers) = Answer::read(item.content.as_ref()) else {
            return;
        };
        if item.run.is_some() {
            self.queued.insert(item.id.clone());
        }
        for answer in answers {
            let id = answer.tool_call_id;
            let Some(place) = self.open.get(&id).copied() else {
                continue;
            };
            self.answering.insert(id.clone(), place);
            match answer.says {
                Says::Output(output) => {
                    self.resolve(&id, place, text_of(&output), item.created_at);
                }
                Says::Failure(error) => self.resolve(&id, place, error, item.created_at),
                Says::Approved { .. } | Says::Denied { .. } | Says::Resumed => {}
            }
        }
    }
}
