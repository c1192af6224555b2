//! Merging sequences: turns, messages, parts and links.

use super::ConflictKind;
use super::walk::{Shape, Three, Walk};
use crate::diff::{Location, Pairing, pairings};
use crate::json::Json;
use std::collections::BTreeSet;

/// A sequence on one side, compared with the base.
struct Side<'a> {
    items: &'a [Json],
    /// For each item of the base, its counterpart on this side; `None` if it was removed.
    kept: Vec<Option<&'a Json>>,
    /// The items inserted before each item of the base, and at the end. Items inserted next to
    /// removed ones come after those.
    put: Vec<Vec<&'a Json>>,
}

impl<'a> Side<'a> {
    fn new(place: &Location<'_>, base: &[Json], items: &'a [Json]) -> Self {
        let meaning = |item: &Json| place.index(0).meaning(Some(item.clone()));
        let mut side = Self {
            items,
            kept: vec![None; base.len()],
            put: vec![Vec::new(); base.len() + 1],
        };
        let mut waiting = Vec::new();
        for pairing in pairings(base, items, [&meaning, &meaning]) {
            match pairing {
                Pairing::From(_) => {}
                Pairing::To(place) => waiting.extend(items.get(place)),
                Pairing::Both(from, to) => {
                    if let (Some(kept), Some(put)) =
                        (side.kept.get_mut(from), side.put.get_mut(from))
                    {
                        *kept = items.get(to);
                        *put = std::mem::take(&mut waiting);
                    }
                }
            }
        }
        if let Some(end) = side.put.last_mut() {
            *end = waiting;
        }
        side
    }
}

impl Walk {
    /// Merges three states of a sequence.
    pub(super) fn sequence(
        &mut self,
        shape: Shape,
        place: &Location<'_>,
        [base, ours, theirs]: [&[Json]; 3],
    ) -> Vec<Json> {
        let ours = Side::new(place, base, ours);
        let theirs = Side::new(place, base, theirs);
        let item = place.index(0);
        let meaning = |link: &Json| item.meaning(Some(link.clone()));
        let known: BTreeSet<_> = if shape == Shape::Links {
            ours.items.iter().filter_map(meaning).collect()
        } else {
            BTreeSet::new()
        };
        let mut merged = Vec::with_capacity(ours.items.len().max(theirs.items.len()));
        let puts = ours.put.iter().zip(&theirs.put).enumerate();
        for (at, (our_put, their_put)) in puts {
            if shape == Shape::Links {
                let new = |link: &&Json| meaning(link).is_none_or(|link| !known.contains(&link));
                merged.extend(our_put.iter().copied().cloned());
                merged.extend(their_put.iter().copied().filter(new).cloned());
            } else {
                self.put(place, [our_put, their_put], at == base.len(), &mut merged);
            }
            let side = |side: &Side<'_>| side.kept.get(at).copied().flatten().cloned();
            let (one, other) = (side(&ours), side(&theirs));
            let three = [base.get(at), one.as_ref(), other.as_ref()];
            let here = place.index(merged.len());
            merged.extend(self.value(shape.item(), &here, three));
        }
        merged
    }

    /// Merges the insertions of both sides at one place.
    fn put(
        &mut self,
        place: &Location<'_>,
        [ours, theirs]: [&[&Json]; 2],
        at_end: bool,
        merged: &mut Vec<Json>,
    ) {
        let item = place.index(0);
        let alike = |one: &&Json, other: &&Json| item.same(Some(one), Some(other));
        let both = ours.iter().zip(theirs);
        let start = both.take_while(|(one, other)| alike(one, other)).count();
        let (common, ours) = ours.split_at(start);
        let theirs = theirs.split_at(start).1;
        let ends = ours.iter().rev().zip(theirs.iter().rev());
        let end = ends.take_while(|(one, other)| alike(one, other)).count();
        let (ours, common_end) = ours.split_at(ours.len() - end);
        let theirs = theirs.split_at(theirs.len() - end).0;

        merged.extend(common.iter().copied().cloned());
        if !ours.is_empty() && !theirs.is_empty() {
            let kind = if at_end {
                ConflictKind::BothAppended
            } else {
                ConflictKind::BothInserted
            };
            let list = |items: &[&Json]| Json::Array(items.iter().copied().cloned().collect());
            let (one, other) = (list(ours), list(theirs));
            let three: Three<'_> = [None, Some(&one), Some(&other)];
            self.conflict(kind, &place.index(merged.len()), three);
        }
        merged.extend(
            ours.iter()
                .chain(theirs)
                .chain(common_end)
                .copied()
                .cloned(),
        );
    }
}
