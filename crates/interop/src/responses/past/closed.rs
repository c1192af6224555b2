//! Calls of a past that have no result, and results that have no call.

use super::item::{InputContent, InputItem};
use std::collections::{BTreeMap, BTreeSet};
use timeline::Role;

/// What a model is told of a call that nobody has answered.
const INTERRUPTED: &str = "The call was interrupted: the conversation went on without its result.";

/// A past in which every call has one result, as models need it, but for those that `said` answers or
/// that wait where nothing is said.
///
/// A result that is there stays where it is. A call without one has been interrupted, and gets a result
/// that says so, where something is said to the agents instead. Results without a call are left out.
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

/// What becomes of calls and results, by their places.
#[derive(Default)]
struct Fates {
    /// Calls that have no result.
    left: BTreeSet<usize>,
    /// Results that no call waits for.
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
