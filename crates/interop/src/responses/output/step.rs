//! The state of the step that runs.

use super::super::slot::{Slot, SlotKind};
use super::super::usage::Tokens;
use crate::run::RunPart;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{BlockKind, Payload};

/// Names the item that a delta belongs to.
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

/// The step that runs, and what it has shown.
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
    /// The reasoning that is shown and not over.
    pub(super) open_reasoning: Option<usize>,
    /// The items of each kind that deltas have begun, in their order.
    pub(super) messages: Streamed,
    pub(super) reasonings: Streamed,
    pub(super) calls: Streamed,
    /// How many reasoning items have nothing to show.
    pub(super) n_hidden: usize,
    /// The positions of those among the items that are over, since the last item with content.
    pub(super) hidden: Vec<usize>,
    /// The parts that were stored before the model had answered.
    pub(super) parts: Vec<StoredPart>,
    /// Whether the model has answered.
    pub(super) is_answered: bool,
    /// Whether the step is about calls that the client knows.
    pub(super) answers: bool,
    /// The parts of calls whose results the client has submitted.
    pub(super) submitted: BTreeSet<u32>,
    /// The calls whose results the execution's trigger has submitted, if that is known.
    pub(super) results: Option<BTreeSet<String>>,
    /// The parts whose results have been shown.
    pub(super) ended: BTreeSet<u32>,
    /// The parts whose approval requests have been shown.
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
    /// Adds one that deltas have begun.
    pub(super) fn push(&mut self, place: usize) {
        self.places.push(place);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The number of the next one that is stored, and its item if deltas have begun it.
    pub(super) fn stored(&mut self) -> (usize, Option<usize>) {
        let number = self.n_stored;
        self.n_stored += 1;
        (number, self.places.get(number).copied())
    }
}

impl StepState {
    /// Whether a stored part of this kind with this text can complete an item. The item's text must be
    /// a prefix of it, and all of it if the item is over.
    pub(super) fn is(&self, place: usize, kind: &SlotKind, text: &str) -> bool {
        self.slots.get(place).is_some_and(|(_, slot)| {
            let rest = text.strip_prefix(slot.text.as_str());
            slot.kind == *kind && rest.is_some_and(|rest| slot.is_open || rest.is_empty())
        })
    }
}
