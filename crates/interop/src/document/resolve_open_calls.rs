//! Calls that can't be answered any more.

use crate::Losses;
use std::collections::BTreeSet;
use thread::document::CompletionStatus;
use thread::validate::Rule;
use thread::{Json, Profile, Thread, complete_cycles, validate};

/// Removes the cycles whose calls can't be answered any more because other turns followed (rulings
/// 2 and 15). Also removes answers that lose their call by this.
pub(crate) fn resolve_open_calls(thread: &mut Thread, losses: &mut Losses) {
    // Dropping a response can orphan answers, and dropping those nothing else.
    for _ in 0..2 {
        let mut turns = BTreeSet::new();
        let mut orphans = BTreeSet::new();
        for violation in validate(thread, Profile::Strict) {
            let place = places(&violation.pointer);
            if violation.rule == Rule::CompleteCycle {
                turns.extend(place.first().copied());
            } else if violation.rule == Rule::ToolCallId {
                orphans.insert(place);
            }
        }
        if turns.is_empty() && orphans.is_empty() {
            return;
        }
        // From the back, so that earlier places stay what they are.
        for place in orphans.iter().rev() {
            if remove(thread, place) {
                lost(losses, place, "an answer to a call that was left out");
            }
        }
        for turn in turns {
            if drop_incomplete(thread, turn) {
                lost(
                    losses,
                    &[turn],
                    "a response whose calls were never answered",
                );
            }
        }
    }
}

fn lost(losses: &mut Losses, place: &[usize], what: &str) {
    let turn = place.first().copied().unwrap_or_default();
    losses.push(format!("/turns/{turn}"), what);
}

/// The numbers in a pointer: turn, message, part; or turn, part.
fn places(pointer: &str) -> Vec<usize> {
    pointer
        .split('/')
        .filter_map(|token| token.parse().ok())
        .collect()
}

fn turn_mut(thread: &mut Thread, turn: usize) -> Option<&mut thread::Object> {
    let turns = thread.root_mut().get_mut("turns")?.as_array_mut()?;
    turns.get_mut(turn)?.as_object_mut()
}

fn drop_incomplete(thread: &mut Thread, turn: usize) -> bool {
    let slot = turn_mut(thread, turn).and_then(|turn| turn.get_mut("messages"));
    let Some(messages) = slot.and_then(Json::as_array_mut) else {
        return false;
    };
    let before = messages.len();
    let kept = complete_cycles(std::mem::take(messages), CompletionStatus::Interrupted);
    *messages = kept;
    messages.len() < before
}

/// Removes one part, and its message if it is then empty.
fn remove(thread: &mut Thread, place: &[usize]) -> bool {
    let removed = match place {
        [turn, part] => turn_mut(thread, *turn).and_then(|turn| take(turn, *part)),
        [turn, message, part] => turn_mut(thread, *turn).and_then(|turn| {
            let messages = turn.get_mut("messages")?.as_array_mut()?;
            let n_left = take(messages.get_mut(*message)?.as_object_mut()?, *part)?;
            if n_left == 0 {
                messages.remove(*message);
            }
            Some(n_left)
        }),
        _ => None,
    };
    removed.is_some()
}

/// Removes a part; returns how many remain.
fn take(holder: &mut thread::Object, part: usize) -> Option<usize> {
    let parts = holder.get_mut("parts")?.as_array_mut()?;
    (part < parts.len()).then(|| parts.remove(part))?;
    Some(parts.len())
}
