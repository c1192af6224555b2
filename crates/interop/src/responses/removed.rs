//! Items that are removed from a conversation.

use super::items::List;
use std::borrow::Cow;
use timeline::{Entry, Item, Reaction, Removed, Transcript};

/// Whether an item is removed.
pub(super) fn is_removed(transcript: &Transcript, item: &Item) -> bool {
    let removed = transcript.removed();
    !removed.is_empty() && removed.contains_key(&Removed::Item(item.id.clone()))
}

/// A reaction without its removed steps.
pub(super) fn left_over<'a>(transcript: &Transcript, reaction: &'a Reaction) -> Cow<'a, Reaction> {
    let removed = transcript.removed();
    let is_removed = |step: &timeline::StepRecord| {
        !removed.is_empty() && removed.contains_key(&Removed::Step(step.step.id.clone()))
    };
    if !reaction.steps.iter().any(is_removed) {
        return Cow::Borrowed(reaction);
    }
    let mut left = reaction.clone();
    left.steps.retain(|step| !is_removed(step));
    Cow::Owned(left)
}

/// The removal that takes the item of this id out of the thread's conversation; `None` if there is
/// no such item. All items of one step are removed together.
pub fn removal(transcript: &Transcript, id: &str) -> Option<Removed> {
    let lists = |place: usize, entry: &Entry| {
        let mut list = List::default();
        list.entry(transcript, place, entry);
        list.items.iter().any(|item| item.id == id)
    };
    for (place, entry) in transcript.entries.iter().enumerate().rev() {
        if !lists(place, entry) {
            continue;
        }
        match entry {
            Entry::Item(item) => return Some(Removed::Item(item.id.clone())),
            Entry::Reaction(reaction) => {
                return reaction.steps.iter().find_map(|step| {
                    let mut alone = reaction.clone();
                    alone.steps = vec![step.clone()];
                    let is_its = lists(place, &Entry::Reaction(alone));
                    is_its.then(|| Removed::Step(step.step.id.clone()))
                });
            }
        }
    }
    None
}
