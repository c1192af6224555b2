//! The output of a response: from the events of its run to items, and to the events in which clients
//! see the items grow.
//!
//! Stored parts are authoritative. Deltas that a model streams become items at once; when the model
//! has answered, the parts of the answer complete them. The n-th stored text of a step is the n-th
//! text that was streamed in it, and so with reasoning and calls. An item therefore has one id in a
//! stream, in its replay and in an object.

mod cited;
mod deltas;
mod done;
mod parts;
mod shows;
mod step;

use super::slot::{Block, More, OutputStatus, Slot, SlotKind};
use super::usage::Tokens;
use super::wire::{Wire, put};
use crate::ids::IdForm;
use crate::run::RunEvent;
use crate::truncate::Cut;
use crate::{Loss, Losses};
pub(super) use done::Done;
use done::Order;
pub(super) use shows::{Sealed, Shows};
use std::collections::BTreeSet;
use step::StepState;

/// The output of a response while it is made.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) wire: Wire,
    shows: Shows,
    /// The calls whose results the execution's trigger submitted, until its first step begins.
    results: Option<BTreeSet<String>>,
    step: StepState,
    n_executions: u32,
    n_items: usize,
    done: Vec<Done>,
    usage: Option<Tokens>,
    model: Option<String>,
    cut: Option<Cut>,
    losses: Losses,
}

/// The id of an object that belongs to a step or an item and has no record of its own in the log.
pub(super) fn child(form: IdForm, parent: &str, place: impl std::fmt::Display) -> String {
    let (parent, prefix) = (form.write(parent), form.prefix());
    if parent.starts_with(prefix) {
        format!("{parent}_{place}")
    } else {
        format!("{prefix}{parent}_{place}")
    }
}

impl Output {
    pub(super) fn new(wire: Wire) -> Self {
        Self {
            wire,
            shows: Shows::default(),
            results: None,
            step: StepState::default(),
            n_executions: 0,
            n_items: 0,
            done: Vec::new(),
            usage: None,
            model: None,
            cut: None,
            losses: Losses::default(),
        }
    }

    /// Starts an execution. `results` has the calls whose results its trigger submitted, if known.
    pub(super) fn execution(&mut self, shows: Shows, results: Option<BTreeSet<String>>) {
        self.shows = shows;
        self.results = results;
        self.n_executions = self.n_executions.saturating_add(1);
        self.cut = None;
    }

    /// Adds an event of the running execution.
    pub(super) fn event(&mut self, event: RunEvent<'_>, out: &mut String) {
        match event {
            RunEvent::StepStarted { step } => self.step_started(step),
            RunEvent::Chunk(chunk) => self.chunk(chunk, out),
            RunEvent::Part {
                idx, part, payload, ..
            } => self.part(idx, part, payload, out),
            RunEvent::Responded { response } => self.responded(response.unwrap_or_default(), out),
            RunEvent::StepReset { .. } => self.reset(out),
            RunEvent::StepEnded {
                status, outcome, ..
            } => self.step_ended(status, outcome, out),
            RunEvent::Started { .. }
            | RunEvent::Continued { .. }
            | RunEvent::ExecutionEnded { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
    }

    /// The model that answered last.
    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The reason why the model's last answer was cut off, or why the agent stopped early after it.
    pub(super) fn cut_reason(&self) -> Option<Cut> {
        self.cut
    }

    /// The tokens that the steps so far have used.
    pub(super) fn usage(&self) -> Option<Tokens> {
        match (self.usage, self.step.usage) {
            (Some(before), Some(now)) => Some(before.plus(now)),
            (before, now) => before.or(now),
        }
    }

    /// The items that are over, in order.
    pub(super) fn done(&mut self) -> &[Done] {
        self.done.sort_by_key(|done| done.order);
        &self.done
    }

    /// The items that are over, in order, as a JSON array.
    pub(super) fn json(&mut self) -> String {
        let mut out = String::from("[");
        for (place, done) in self.done().iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push_str(&done.json);
        }
        out.push(']');
        out
    }

    /// The parts that the format can't show.
    pub(super) fn losses(self) -> Vec<Loss> {
        self.losses.into_vec()
    }

    fn lost(&mut self, idx: u32, what: &str) {
        let (execution, iteration) = (self.n_executions.saturating_sub(1), self.step.iteration);
        self.losses.push(
            format!("/executions/{execution}/steps/{iteration}/parts/{idx}"),
            what,
        );
    }

    /// Moves a finished item before a later part of the answer whose deltas arrived first. Models
    /// accept their reasoning as input only at its original position.
    fn put_before(&mut self, place: usize, index: usize) {
        if let Some(done) = self.done.get_mut(place) {
            done.order = (index, Order::Before);
        }
    }

    fn push_done(&mut self, index: usize, id: String, json: String) {
        let step = (self.n_executions, self.step.iteration);
        self.done.push(Done {
            order: (index, Order::At),
            step,
            id,
            json,
        });
    }

    /// Starts an item of the running step; returns its index in the step.
    fn begin(&mut self, kind: SlotKind, id: String, out: &mut String) -> usize {
        self.end_reasoning(out);
        let slot = Slot::new(kind, &id, self.n_items);
        self.n_items += 1;
        self.wire.event(out, "response.output_item.added", |out| {
            put(
                out,
                format_args!(
                    ",\"output_index\":{},\"item\":{}",
                    slot.index,
                    slot.started()
                ),
            );
        });
        if let SlotKind::Block(block) = &slot.kind {
            self.wire.event(out, block.names().begins, |out| {
                out.push_str(&slot.of);
                out.push_str(",\"part\":");
                out.push_str(&block.part("", "[]"));
            });
        }
        self.step.slots.push((id, slot));
        self.step.slots.len() - 1
    }

    /// Appends to an item. `more` is the inside of a JSON string.
    fn grow(&mut self, place: usize, more: &str, out: &mut String) {
        let Some((_, slot)) = self
            .step
            .slots
            .get_mut(place)
            .filter(|(_, slot)| slot.is_open)
        else {
            return;
        };
        slot.text.push_str(more);
        let (name, rest) = match &slot.kind {
            SlotKind::Block(block) => {
                let names = block.names();
                (names.delta, names.more)
            }
            SlotKind::Call { .. } => ("response.function_call_arguments.delta", ""),
        };
        self.wire.event(out, name, |out| {
            out.push_str(&slot.of);
            out.push_str(",\"delta\":\"");
            out.push_str(more);
            out.push('"');
            out.push_str(rest);
        });
    }

    /// Ends an item if it is open; returns its `output_index`, its id and its JSON.
    fn end(
        &mut self,
        place: usize,
        last: &ItemEnd<'_>,
        out: &mut String,
    ) -> Option<(usize, String, String)> {
        if let Some(text) = last.text {
            self.catch_up(place, text, out);
        }
        let (id, slot) = self.step.slots.get_mut(place)?;
        let text = last.text.unwrap_or(&slot.text);
        let annotations = format!("[{}]", last.annotations.join(","));
        let item = slot.item(last.status, Some(text), &annotations, &last.more);
        let ended = (slot.index, id.clone(), item);
        if !std::mem::take(&mut slot.is_open) {
            return Some(ended);
        }
        let (wire, of) = (&mut self.wire, slot.of.as_str());
        match &slot.kind {
            SlotKind::Block(block) => {
                let names = block.names();
                for (place, annotation) in last.annotations.iter().enumerate() {
                    wire.event(out, "response.output_text.annotation.added", |out| {
                        out.push_str(of);
                        put(
                            out,
                            format_args!(
                                ",\"annotation_index\":{place},\"annotation\":{annotation}"
                            ),
                        );
                    });
                }
                wire.event(out, names.done, |out| {
                    out.push_str(of);
                    put(
                        out,
                        format_args!(",\"{}\":\"{text}\"{}", names.member, names.more),
                    );
                });
                wire.event(out, names.ends, |out| {
                    out.push_str(of);
                    out.push_str(",\"part\":");
                    out.push_str(&block.part(text, &annotations));
                });
            }
            SlotKind::Call { name, .. } => {
                wire.event(out, "response.function_call_arguments.done", |out| {
                    out.push_str(of);
                    put(
                        out,
                        format_args!(",\"name\":{name},\"arguments\":\"{text}\""),
                    );
                });
            }
        }
        wire.event(out, "response.output_item.done", |out| {
            put(
                out,
                format_args!(",\"output_index\":{},\"item\":{}", slot.index, ended.2),
            );
        });
        Some(ended)
    }

    /// Emits the text of an item that its deltas lacked.
    fn catch_up(&mut self, place: usize, text: &str, out: &mut String) {
        let known = self
            .step
            .slots
            .get(place)
            .map(|(_, slot)| slot.text.as_str());
        let rest = known
            .and_then(|known| text.strip_prefix(known))
            .unwrap_or_default();
        if !rest.is_empty() {
            self.grow(place, rest, out);
        }
    }

    /// Emits an item that was not streamed, with two events for its start and its end. `item`
    /// writes it with a status.
    fn whole(&mut self, id: String, item: impl Fn(OutputStatus) -> String, out: &mut String) {
        let index = self.n_items;
        self.n_items += 1;
        self.wire.event(out, "response.output_item.added", |out| {
            put(
                out,
                format_args!(
                    ",\"output_index\":{index},\"item\":{}",
                    item(OutputStatus::InProgress)
                ),
            );
        });
        let json = item(OutputStatus::Completed);
        self.wire.event(out, "response.output_item.done", |out| {
            put(
                out,
                format_args!(",\"output_index\":{index},\"item\":{json}"),
            );
        });
        self.push_done(index, id, json);
    }
}

/// The end of an item.
struct ItemEnd<'a> {
    status: OutputStatus,
    /// The final text, if known: the contents of a JSON string.
    text: Option<&'a str>,
    annotations: &'a [String],
    more: More<'a>,
}

impl ItemEnd<'_> {
    /// The item is cut off: its deltas are its text.
    const CUT: Self = Self {
        status: OutputStatus::Incomplete,
        text: None,
        annotations: &[],
        more: More {
            sealed: None,
            phase: None,
        },
    };
}
