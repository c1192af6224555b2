//! The parts of a message, and where to find them.

use std::collections::{BTreeMap, BTreeSet};
use thread::{Json, Object};

/// Which calls are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Those of tools that the client's code knows, `tool-<name>`.
    Static,
    /// Those of other tools, `dynamic-tool`.
    Dynamic,
    /// Any call.
    Any,
}

/// The indexes of each call's parts, in order, by the call's id.
type Calls = BTreeMap<String, Vec<usize>>;

/// The parts of a message. Finding one does not take longer with more parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    items: Vec<Json>,
    /// The index of the first part of the last step.
    step_start: usize,
    static_calls: Calls,
    dynamic_calls: Calls,
    /// The first part of each data type and id.
    data: BTreeMap<String, BTreeMap<String, usize>>,
    /// The parts with an approval, by its id.
    approvals: BTreeMap<String, BTreeSet<usize>>,
}

impl Parts {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn items(&self) -> &[Json] {
        &self.items
    }

    pub(super) fn items_mut(&mut self) -> &mut [Json] {
        &mut self.items
    }

    pub(super) fn into_items(self) -> Vec<Json> {
        self.items
    }

    pub(super) fn step_start(&self) -> usize {
        self.step_start
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Object> {
        self.items.get_mut(place)?.as_object_mut()
    }

    pub(super) fn get(&self, place: usize) -> Option<&Object> {
        self.items.get(place)?.as_object()
    }

    pub(super) fn push(&mut self, part: Object) -> usize {
        self.push_any(Json::Object(part))
    }

    /// Adds a part of any shape, for messages of clients.
    pub(super) fn push_any(&mut self, part: Json) -> usize {
        let place = self.items.len();
        let of = |key: &str| part.get(key).and_then(Json::as_str);
        let kind = of("type").unwrap_or_default();
        if kind == "step-start" {
            self.step_start = place + 1;
        } else if let Some(calls) = calls_of(&mut self.static_calls, &mut self.dynamic_calls, kind)
        {
            if let Some(id) = of("toolCallId") {
                calls.entry(id.to_owned()).or_default().push(place);
            }
            if let Some(id) = approval_id(&part) {
                self.approvals
                    .entry(id.to_owned())
                    .or_default()
                    .insert(place);
            }
        } else if let Some(id) = of("id").filter(|_| kind.starts_with("data-")) {
            let places = self.data.entry(kind.to_owned()).or_default();
            places.entry(id.to_owned()).or_insert(place);
        }
        self.items.push(part);
        place
    }

    /// The first part of this step that belongs to a call.
    pub(super) fn call_in_step(&self, id: &str, kind: CallKind) -> Option<usize> {
        let first = |calls: &Calls| {
            let places = calls.get(id)?;
            let at = places.partition_point(|place| *place < self.step_start);
            places.get(at).copied()
        };
        match kind {
            CallKind::Static => first(&self.static_calls),
            CallKind::Dynamic => first(&self.dynamic_calls),
            CallKind::Any => {
                let found = [first(&self.static_calls), first(&self.dynamic_calls)];
                found.into_iter().flatten().min()
            }
        }
    }

    /// The part that a result is for: in this step, else the last one before it.
    pub(super) fn call(&self, id: &str, kind: CallKind) -> Option<usize> {
        let last = |calls: &Calls| calls.get(id)?.last().copied();
        let before = || match kind {
            CallKind::Static => last(&self.static_calls),
            CallKind::Dynamic => last(&self.dynamic_calls),
            CallKind::Any => last(&self.static_calls).max(last(&self.dynamic_calls)),
        };
        self.call_in_step(id, kind).or_else(before)
    }

    /// The part that an answer to an approval refers to.
    pub(super) fn approved(&self, id: &str) -> Option<usize> {
        self.approvals.get(id)?.first().copied()
    }

    pub(super) fn set_approval(&mut self, place: usize, id: &str, approval: Object) {
        self.forget_approval(place);
        self.approvals
            .entry(id.to_owned())
            .or_default()
            .insert(place);
        if let Some(part) = self.get_mut(place) {
            part.insert("approval", Json::Object(approval));
        }
    }

    fn forget_approval(&mut self, place: usize) {
        let Some(known) = self.items.get(place).and_then(approval_id) else {
            return;
        };
        if let Some(places) = self.approvals.get_mut(known) {
            places.remove(&place);
        }
    }

    /// The data part of this type and id.
    pub(super) fn data(&self, kind: &str, id: &str) -> Option<usize> {
        self.data.get(kind)?.get(id).copied()
    }

    /// Removes the parts of the last step. Returns whether there were any.
    pub(super) fn reset_step(&mut self) -> bool {
        let start = self.step_start.min(self.items.len());
        let removes = self.items.len() > start;
        for place in start..self.items.len() {
            self.forget_approval(place);
        }
        for part in self.items.drain(start..).rev() {
            let of = |key: &str| part.get(key).and_then(Json::as_str).unwrap_or_default();
            let kind = of("type");
            if let Some(calls) = calls_of(&mut self.static_calls, &mut self.dynamic_calls, kind) {
                if let Some(places) = calls.get_mut(of("toolCallId")) {
                    while places.pop_if(|place| *place >= start).is_some() {}
                }
            } else if let Some(places) = self.data.get_mut(kind)
                && places.get(of("id")).is_some_and(|place| *place >= start)
            {
                places.remove(of("id"));
            }
        }
        removes
    }
}

/// The index of calls that parts of this type belong to.
fn calls_of<'a>(fixed: &'a mut Calls, dynamic: &'a mut Calls, kind: &str) -> Option<&'a mut Calls> {
    if kind == "dynamic-tool" {
        Some(dynamic)
    } else if kind.starts_with("tool-") {
        Some(fixed)
    } else {
        None
    }
}

fn approval_id(part: &Json) -> Option<&str> {
    part.get("approval")?.get("id")?.as_str()
}
