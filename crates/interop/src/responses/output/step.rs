//! The state of the step that runs.

use super::super::slot::{Slot, SlotKind};
use super::super::usage::Tokens;
use crate::run::RunPart;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{BlockKind, Payload};

/// Identifies the item that a delta belongs to.
pub(super) type DeltaKey = (DeltaKind, String);

/// The kinds of deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeltaKind {
    Block(BlockKind),
    Call,
}

/// A part that was stored before the model had answered.
#[derive(Debug)]
pub(super) struct StoredPart {
    pub(super) idx: u32,
    pub(super) part: RunPart,
    pub(super) payload: Payload,
}

/// The running step, and its emitted items.
#[derive(Debug, Default)]
pub(super) struct StepState {
    pub(super) id: String,
    pub(super) iteration: u32,
    /// The items, with their ids.
    pub(super) slots: Vec<(String, Slot)>,
    /// The items that deltas belong to.
    pub(super) by_delta: BTreeMap<DeltaKey, usize>,
    /// The item that the last delta belonged to.
    pub(super) last: Option<(DeltaKey, usize)>,
    /// The open reasoning item.
    pub(super) open_reasoning: Option<usize>,
    /// The items of each kind that deltas have started, in their order.
    pub(super) messages: Streamed,
    pub(super) reasonings: Streamed,
    pub(super) calls: Streamed,
    /// The number of reasoning items without content.
    pub(super) n_hidden: usize,
    /// The indexes of those among the finished items, since the last item with content.
    pub(super) hidden: Vec<usize>,
    /// The parts that were stored before the model had answered.
    pub(super) parts: Vec<StoredPart>,
    /// Whether the model has answered.
    pub(super) is_answered: bool,
    /// Whether the step runs calls that the client knows.
    pub(super) answers: bool,
    /// The parts of calls whose results the client submitted.
    pub(super) submitted: BTreeSet<u32>,
    /// The calls whose results the execution's trigger submitted, if known.
    pub(super) results: Option<BTreeSet<String>>,
    /// The parts whose results were emitted.
    pub(super) ended: BTreeSet<u32>,
    /// The parts whose approval requests were emitted.
    pub(super) approvals: BTreeSet<u32>,
    pub(super) usage: Option<Tokens>,
}

/// Items of one kind, in their order.
#[derive(Debug, Default)]
pub(super) struct Streamed {
    places: Vec<usize>,
    n_stored: usize,
}

impl Streamed {
    /// Adds an item that deltas have started.
    pub(super) fn push(&mut self, place: usize) {
        self.places.push(place);
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The number of the next stored item, and the index of its item if deltas have started it.
    pub(super) fn stored(&mut self) -> (usize, Option<usize>) {
        let number = self.n_stored;
        self.n_stored += 1;
        (number, self.places.get(number).copied())
    }
}

impl StepState {
    /// Whether a stored part of this kind with this text can complete an item. The item's text must
    /// be a prefix of it, and equal to it if the item is finished.
    pub(super) fn is(&self, place: usize, kind: &SlotKind, text: &str) -> bool {
        self.slots.get(place).is_some_and(|(_, slot)| {
            let rest = text.strip_prefix(slot.text.as_str());
            slot.kind == *kind && rest.is_some_and(|rest| slot.is_open || rest.is_empty())
        })
    }
}
