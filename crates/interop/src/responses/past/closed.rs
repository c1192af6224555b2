//! Calls without a result and results without a call in a history.

use super::item::{InputContent, InputItem};
use std::collections::{BTreeMap, BTreeSet};
use timeline::Role;

/// The result for the model of a call without an answer.
const INTERRUPTED: &str = "The call was interrupted: the conversation went on without its result.";

/// A history in which every call has one result, as models require it. Calls that `said` answers
/// stay open, and so do pending calls if `said` is empty.
///
/// An existing result stays where it is. If a message follows instead, a call without a result gets
/// one that reports an interruption. Results without a call are left out.
pub(super) fn closed(past: Vec<InputItem>, said: &[InputItem]) -> Vec<InputItem> {
    let fates = Fates::of(&past, said);
    let mut items = Vec::with_capacity(past.len());
    // The calls without results, in their order.
    let mut left = Vec::new();
    for (place, given) in past.into_iter().enumerate() {
        if fates.stray.contains(&place) {
            continue;
        }
        let repeats = matches!(&given.content, InputContent::Call { call_id, .. }
            if left.iter().any(|(left, _)| left == call_id));
        if repeats || !is_agents(&given.content) {
            interrupt(&mut left, &mut items);
        }
        if let InputContent::Call { call_id, .. } = &given.content
            && fates.left.contains(&place)
        {
            left.push((call_id.clone(), given.pointer.clone()));
        }
        items.push(given);
    }
    if !said.is_empty() {
        interrupt(&mut left, &mut items);
    }
    items
}

fn interrupt(left: &mut Vec<(String, String)>, items: &mut Vec<InputItem>) {
    items.extend(left.drain(..).map(|(call_id, pointer)| InputItem {
        pointer,
        content: InputContent::CallOutput {
            call_id,
            output: INTERRUPTED.into(),
        },
    }));
}

/// Whether an item is a part of an agent's turn.
fn is_agents(says: &InputContent) -> bool {
    match says {
        InputContent::Message { role, .. } => *role == Role::Assistant,
        InputContent::Reasoning(_)
        | InputContent::Call { .. }
        | InputContent::CallOutput { .. }
        | InputContent::Approval { .. } => true,
        InputContent::Compaction { .. } | InputContent::Reference { .. } => false,
    }
}

/// The calls and results that need a change, by their index.
#[derive(Default)]
struct Fates {
    /// Calls that have no result.
    left: BTreeSet<usize>,
    /// Results without an open call.
    stray: BTreeSet<usize>,
}

impl Fates {
    fn of(past: &[InputItem], said: &[InputItem]) -> Self {
        let mut fates = Self::default();
        let mut open: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, given) in past.iter().enumerate() {
            match &given.content {
                // Of calls with the same id the last one is answered.
                InputContent::Call { call_id, .. } => {
                    fates.left.extend(open.insert(call_id, place));
                }
                InputContent::CallOutput { call_id, .. } => {
                    if open.remove(call_id.as_str()).is_none() {
                        fates.stray.insert(place);
                    }
                }
                InputContent::Message { .. }
                | InputContent::Reasoning(_)
                | InputContent::Compaction { .. }
                | InputContent::Reference { .. }
                | InputContent::Approval { .. } => {}
            }
        }
        for given in said {
            if let InputContent::CallOutput { call_id, .. } = &given.content {
                open.remove(call_id.as_str());
            }
        }
        fates.left.extend(open.into_values());
        fates
    }
}
