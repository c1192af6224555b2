//! The results of a step's calls, in the order of the calls: the order in which the messages of the thread have them.

use crate::ag_ui::messages::given_results;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use timeline::Item;

/// The results of the calls of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    /// The place of the call that the record is about.
    place: u32,
    /// The places of the calls that have no result yet.
    awaited: BTreeSet<u32>,
    /// Results that came before those of earlier calls, by place.
    held: BTreeMap<u32, Value>,
    /// The calls whose results the client of the run has given: it has these messages.
    given: BTreeSet<String>,
}

impl Results {
    /// A step begins, or begins anew.
    pub(super) fn begin(&mut self) {
        self.awaited.clear();
        self.held.clear();
    }

    /// A step is over. A later one may give its calls the same ids.
    pub(super) fn step_over(&mut self) {
        self.given.clear();
    }

    /// The run begins with these answers.
    pub(super) fn answered_by(&mut self, item: &Item) {
        let given = given_results(item).into_iter();
        self.given.extend(given.map(|(call, _)| call));
    }

    /// The record is about the call at this place of the step.
    pub(super) fn see(&mut self, place: u32, has_result: bool) {
        self.place = place;
        if has_result {
            self.awaited.remove(&place);
        } else {
            self.awaited.insert(place);
        }
    }

    /// Takes the result of the call that the record is about; gives the results whose turn it is.
    pub(super) fn take(&mut self, call: &str, result: Value) -> Vec<Value> {
        if !self.given.remove(call) {
            self.held.insert(self.place, result);
        }
        let Some(first) = self.awaited.first() else {
            return self.rest();
        };
        let later = self.held.split_off(first);
        std::mem::replace(&mut self.held, later)
            .into_values()
            .collect()
    }

    /// The results that are left when the step is over.
    pub(super) fn rest(&mut self) -> Vec<Value> {
        self.awaited.clear();
        std::mem::take(&mut self.held).into_values().collect()
    }
}
