//! Finds positions at which a conversation may be cut.

use crate::strategy::{prompt, rounds};
use std::collections::BTreeSet;
use std::sync::Arc;
use upp::{Message, Messages};

/// Whether a cycle starts at this message: a request to the model, with its tools' results.
///
/// A cut at the start of a cycle separates neither an input from its answer nor results from their
/// calls.
pub(super) fn begins(messages: &Messages, at: usize) -> bool {
    let follows_input = at
        .checked_sub(1)
        .and_then(|before| messages.get(before))
        .is_some_and(|before| matches!(before, Message::User(_)));
    match messages.get(at) {
        Some(Message::User(_) | Message::Assistant(_)) => {
            !follows_input || is_summary(messages, at - 1)
        }
        Some(Message::ToolResult(_)) | None => false,
    }
}

/// The first cycle at or after this index.
pub(super) fn first_from(messages: &Messages, at: usize) -> Option<usize> {
    (at..messages.len()).find(|at| begins(messages, *at))
}

/// The last cycle at or before this index.
pub(super) fn last_until(messages: &Messages, at: usize) -> Option<usize> {
    (0..=at).rev().find(|at| begins(messages, *at))
}

pub(super) fn is_summary(messages: &Messages, at: usize) -> bool {
    match messages.get(at) {
        Some(Message::User(message)) => prompt::summary(message).is_some(),
        Some(Message::Assistant(_) | Message::ToolResult(_)) | None => false,
    }
}

/// The messages before a cut that the rest of the run still needs: its input, and the last prompt
/// of its strategy, which marks the strategy's progress. Either is needed only if there is no later
/// one after the cut.
pub(super) fn needed(messages: &Messages, cut: usize) -> BTreeSet<usize> {
    let last = |is_wanted: &dyn Fn(&Message) -> bool| {
        let has_later = (cut..messages.len()).any(|at| messages.get(at).is_some_and(is_wanted));
        let mut before = (0..cut).rev().filter(|_| !has_later);
        before.find(|at| messages.get(*at).is_some_and(is_wanted))
    };
    let input = last(&prompt::is_input);
    let said = last(&|message| prompt::user_text(message).is_some());
    input.into_iter().chain(said).collect()
}

/// The messages at these indexes, all before a cut. The last one in the user's role gets a note of
/// the tool rounds that follow it and are removed.
pub(super) fn without(messages: &Messages, places: &BTreeSet<usize>, cut: usize) -> Vec<Message> {
    let at = |place: usize| messages.get(place);
    let is_said = |place: &usize| at(*place).is_some_and(|it| prompt::user_text(it).is_some());
    let last = places.iter().copied().rfind(is_said);
    let take = |place: usize| {
        let message = at(place)?;
        if Some(place) == last
            && let Some(said) = prompt::user_text(message)
            && let Some(noted) = rounds::noted(said, (place + 1..cut).filter_map(at))
        {
            return Some(Message::User(Arc::new(noted)));
        }
        Some(message.clone())
    };
    places.iter().copied().filter_map(take).collect()
}
