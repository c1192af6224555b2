//! What is known of the step that runs.

use super::super::slot::{Slot, SlotKind};
use super::super::usage::Tokens;
use std::collections::{BTreeMap, BTreeSet};
use timeline::Payload;

/// What the pieces of one item have in common: whether they are of a call, and their id.
pub(super) type PieceKey = (PieceKind, String);

/// What a piece is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PieceKind {
    Text,
    Reasoning,
    Call,
}

/// The step that runs, and what it has shown.
#[derive(Debug, Default)]
pub(super) struct StepState {
    pub(super) id: String,
    pub(super) iteration: u32,
    /// The items, with their ids.
    pub(super) slots: Vec<(String, Slot)>,
    /// The items that pieces belong to.
    pub(super) by_piece: BTreeMap<PieceKey, usize>,
    /// The item that the last piece belonged to.
    pub(super) last: Option<(PieceKey, usize)>,
    /// The reasoning that is shown and not over.
    pub(super) open_reasoning: Option<usize>,
    /// The items of each kind that pieces have begun, in their order.
    pub(super) messages: Streamed,
    pub(super) reasonings: Streamed,
    pub(super) calls: Streamed,
    /// How many reasoning items have nothing to show.
    pub(super) n_hidden: usize,
    /// Where those stand among what is over that have come since the last item that was said.
    pub(super) hidden: Vec<usize>,
    /// The parts that were written before the model had answered.
    pub(super) parts: Vec<(u32, Payload)>,
    /// Whether the model has answered.
    pub(super) is_answered: bool,
    /// Whether the step is about calls that the client knows.
    pub(super) answers: bool,
    /// The parts of calls whose results the client has given itself.
    pub(super) given: BTreeSet<u32>,
    /// The calls whose results the client has given, where it is known from elsewhere.
    pub(super) known_given: Option<BTreeSet<String>>,
    /// The parts whose results have been shown.
    pub(super) ended: BTreeSet<u32>,
    /// The parts whose questions have been shown.
    pub(super) asked: BTreeSet<u32>,
    pub(super) usage: Option<Tokens>,
}

/// Items of one kind, in their order.
#[derive(Debug, Default)]
pub(super) struct Streamed {
    places: Vec<usize>,
    n_stored: usize,
}

impl Streamed {
    /// Adds one that pieces have begun.
    pub(super) fn push(&mut self, place: usize) {
        self.places.push(place);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The number of the next one that is stored, and its item if pieces have begun it.
    pub(super) fn stored(&mut self) -> (usize, Option<usize>) {
        let number = self.n_stored;
        self.n_stored += 1;
        (number, self.places.get(number).copied())
    }
}

impl StepState {
    /// Whether an item is of this kind and begins as this text does, or is all of it if it is over: so
    /// that a stored part can complete it.
    pub(super) fn is(&self, place: usize, kind: &SlotKind, text: &str) -> bool {
        self.slots.get(place).is_some_and(|(_, slot)| {
            let rest = text.strip_prefix(slot.text.as_str());
            slot.kind == *kind && rest.is_some_and(|rest| slot.is_open || rest.is_empty())
        })
    }
}
