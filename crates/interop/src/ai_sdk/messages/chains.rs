//! Which executions write one message.

use crate::run::continues;
use crate::threads::cancelled;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Entry, Execution, ExecutionStatus, Item, ItemId, ItemType, Reaction, Transcript};

/// Executions that answer calls or follow a handoff, each with the execution that it continues.
pub(super) struct Chains<'a> {
    transcript: &'a Transcript,
    /// The index of each execution, and of the one that it continues.
    before: BTreeMap<usize, usize>,
    /// The indexes of executions that a completed execution continues. Running ones count too if
    /// requested.
    followed: BTreeSet<usize>,
}

impl<'a> Chains<'a> {
    pub(super) fn of(transcript: &'a Transcript, with_running: bool) -> Self {
        let mut before = BTreeMap::new();
        let mut followed = BTreeSet::new();
        let mut triggers: BTreeMap<&ItemId, &Item> = BTreeMap::new();
        let mut last = None;
        for (place, entry) in transcript.entries.iter().enumerate() {
            match entry {
                Entry::Item(item)
                    if matches!(
                        item.item_type,
                        ItemType::ActionResult | ItemType::ItemReference
                    ) =>
                {
                    triggers.insert(&item.id, item);
                }
                // What was said between is answered by a message of its own.
                Entry::Item(item) if item.run.is_none() => last = None,
                Entry::Item(_) => {}
                // It is removed.
                Entry::Reaction(reaction) if reaction.steps.is_empty() => {}
                Entry::Reaction(reaction) => {
                    let trigger = triggers.get(&reaction.execution.trigger_item_id).copied();
                    if continues_message(&reaction.execution, trigger)
                        && let Some(last) = last
                    {
                        before.insert(place, last);
                        let is_over = reaction.execution.status != ExecutionStatus::Executing;
                        if is_over || with_running {
                            followed.insert(last);
                        }
                    }
                    last = Some(place);
                }
            }
        }
        Self {
            transcript,
            before,
            followed,
        }
    }

    /// Whether a completed execution continues the message of this execution.
    pub(super) fn continues_at(&self, place: usize) -> bool {
        self.followed.contains(&place)
    }

    /// The executions of one message, up to the one at this place.
    pub(super) fn up_to(&self, place: usize) -> Vec<&'a Reaction> {
        let mut places = vec![place];
        while let Some(before) = places.last().and_then(|place| self.before.get(place)) {
            places.push(*before);
        }
        let entries = places.iter().rev().filter_map(|place| {
            let entry = self.transcript.entries.get(*place)?;
            match entry {
                Entry::Reaction(reaction) => Some(reaction),
                Entry::Item(_) => None,
            }
        });
        entries.collect()
    }
}

/// Whether an execution continues the previous execution's message: it acts on answers, follows a
/// handoff, or ends the wait for answers. Any other execution writes a message of its own.
pub fn continues_message(execution: &Execution, trigger: Option<&Item>) -> bool {
    let answers = trigger.is_some_and(|item| item.item_type == ItemType::ActionResult);
    answers
        || continues(execution, trigger)
        || trigger.is_some_and(|item| cancelled(item).is_some())
}
