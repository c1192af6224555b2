//! The output of a response: from what the log tells of its executions to items, and the events in
//! which clients see them grow.
//!
//! What is stored counts. Pieces that a model streams become items at once; when the model has
//! answered, the parts of the answer complete them. The n-th text of a step is the n-th text that
//! was streamed in it, and so with reasoning and calls, so that an item has the same id in a stream,
//! in its replay and in an object.

mod cited;
mod done;
mod parts;
mod pieces;
mod shows;
mod step;

use super::slot::{Block, More, Slot, SlotKind, Standing};
use super::usage::Tokens;
use super::wire::{Wire, put};
use crate::cut::Cut;
use crate::ids::IdForm;
use crate::{Loss, Losses};
pub(super) use done::Done;
use done::Order;
pub(super) use shows::{Sealed, Shows};
use step::StepState;

/// The output of a response while it is made.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) wire: Wire,
    shows: Shows,
    step: StepState,
    n_executions: u32,
    n_items: usize,
    done: Vec<Done>,
    usage: Option<Tokens>,
    model: Option<String>,
    cut: Option<Cut>,
    losses: Losses,
}

/// An id of something that belongs to a step or an item and is no thing of its own in the log.
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

    /// An execution begins.
    pub(super) fn execution(&mut self, shows: Shows) {
        self.shows = shows;
        self.n_executions = self.n_executions.saturating_add(1);
        self.cut = None;
    }

    /// The model that answered last.
    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Why the last answer of a model was cut off, or why no other one follows it.
    pub(super) fn why_cut(&self) -> Option<Cut> {
        self.cut
    }

    /// What the steps so far have used.
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

    /// The finished items as a JSON array.
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

    /// What could not be shown.
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

    /// Has an item that is over stand before another one, which a model has said after it, but which
    /// pieces had begun before this one could be told: a model takes its reasoning back only in its place.
    fn put_before(&mut self, place: usize, index: usize) {
        if let Some(done) = self.done.get_mut(place) {
            done.order = (index, Order::Before);
        }
    }

    fn is_done(&mut self, index: usize, id: String, json: String) {
        let step = (self.n_executions, self.step.iteration);
        self.done.push(Done {
            order: (index, Order::At),
            step,
            id,
            json,
        });
    }

    /// Begins an item of the running step; gives its place among them.
    fn begin(&mut self, kind: SlotKind, id: String, out: &mut String) -> usize {
        self.end_reasoning(out);
        let slot = Slot::new(kind, &id, self.n_items);
        self.n_items += 1;
        self.wire.event(out, "response.output_item.added", |out| {
            put(
                out,
                format_args!(",\"output_index\":{},\"item\":{}", slot.index, slot.begun()),
            );
        });
        if let SlotKind::Block(block) = &slot.kind {
            self.wire.event(out, block.words().begins, |out| {
                out.push_str(&slot.of);
                out.push_str(",\"part\":");
                out.push_str(&block.part("", "[]"));
            });
        }
        self.step.slots.push((id, slot));
        self.step.slots.len() - 1
    }

    /// More of an item. `more` is JSON without its quotes.
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
                let words = block.words();
                (words.delta, words.more)
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

    /// Ends an item, if it is still open, and gives its `output_index`, its id and it. `text` is what it
    /// says in the end, where that is known better than by its pieces.
    fn end(
        &mut self,
        place: usize,
        last: &LastWord<'_>,
        out: &mut String,
    ) -> Option<(usize, String, String)> {
        if let Some(text) = last.text {
            self.catch_up(place, text, out);
        }
        let (id, slot) = self.step.slots.get_mut(place)?;
        let text = last.text.unwrap_or(&slot.text);
        let annotations = format!("[{}]", last.annotations.join(","));
        let item = slot.item(last.standing, Some(text), &annotations, &last.more);
        let given = (slot.index, id.clone(), item);
        if !std::mem::take(&mut slot.is_open) {
            return Some(given);
        }
        let (wire, of) = (&mut self.wire, slot.of.as_str());
        match &slot.kind {
            SlotKind::Block(block) => {
                let words = block.words();
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
                wire.event(out, words.done, |out| {
                    out.push_str(of);
                    put(
                        out,
                        format_args!(",\"{}\":\"{text}\"{}", words.member, words.more),
                    );
                });
                wire.event(out, words.ends, |out| {
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
                format_args!(",\"output_index\":{},\"item\":{}", slot.index, given.2),
            );
        });
        Some(given)
    }

    /// Shows what an item says beyond its pieces.
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

    /// An item that comes whole: begun and over in two events. `item` writes it in a standing.
    fn whole(&mut self, id: String, item: impl Fn(Standing) -> String, out: &mut String) {
        let index = self.n_items;
        self.n_items += 1;
        let begun = Standing::InProgress;
        self.wire.event(out, "response.output_item.added", |out| {
            put(
                out,
                format_args!(",\"output_index\":{index},\"item\":{}", item(begun)),
            );
        });
        let json = item(Standing::Completed);
        self.wire.event(out, "response.output_item.done", |out| {
            put(
                out,
                format_args!(",\"output_index\":{index},\"item\":{json}"),
            );
        });
        self.is_done(index, id, json);
    }
}

/// How an item ends.
struct LastWord<'a> {
    standing: Standing,
    /// What it says: JSON without its quotes.
    text: Option<&'a str>,
    annotations: &'a [String],
    more: More<'a>,
}

impl LastWord<'_> {
    /// It is cut off where it stands.
    const CUT: Self = Self {
        standing: Standing::Incomplete,
        text: None,
        annotations: &[],
        more: More {
            sealed: None,
            phase: None,
        },
    };
}
