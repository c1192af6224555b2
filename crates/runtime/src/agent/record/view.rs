//! A middleware's changes to a conversation before a run (UAP §6.2). They are stored as a view, as
//! the log has the original messages.

use agents::AgentState;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use timeline::Payload;
use upp::{Message, Messages};

/// The changes, by the positions of the messages before them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::agent) struct View(Vec<Splice>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Splice {
    /// The index of the first removed message.
    at: usize,
    /// The number of removed messages.
    n: usize,
    /// The replacement: a state with only these messages, in the agents' JSON form.
    with: Payload,
}

impl View {
    pub(in crate::agent) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The changes that turn the messages `before` into `after`.
    pub(in crate::agent) fn between(before: &Messages, after: &Messages) -> Self {
        let is_same = |a: usize, b: usize| match (before.get(a), after.get(b)) {
            (Some(a), Some(b)) => same(a, b),
            _ => false,
        };
        let (n_old, n_new) = (before.len(), after.len());
        let mut splices = Vec::new();
        if n_old == n_new {
            let mut at = 0;
            while at < n_old {
                let n = (at..n_old)
                    .take_while(|place| !is_same(*place, *place))
                    .count();
                if n > 0 {
                    splices.extend(splice(at, n, after, at..at + n));
                }
                at += n + 1;
            }
            return Self(splices);
        }
        let shorter = n_old.min(n_new);
        let head = (0..shorter).take_while(|at| is_same(*at, *at)).count();
        let tail = (0..shorter - head)
            .take_while(|back| is_same(n_old - 1 - back, n_new - 1 - back))
            .count();
        let kept = head..n_new - tail;
        splices.extend(splice(head, n_old - head - tail, after, kept));
        Self(splices)
    }

    /// Makes the changes. `n_then` is the number of messages that the view was made for. It differs
    /// from today's if a compaction was made or withdrawn since. Then positions count from the end,
    /// and the first `n_summaries` messages stay.
    pub(in crate::agent) fn apply(
        &self,
        messages: &mut Vec<Message>,
        n_then: Option<usize>,
        n_summaries: usize,
    ) {
        let n_now = messages.len();
        if n_then.is_none() && n_summaries > 0 {
            // It is of a time before compactions, and its positions can't be found.
            return;
        }
        let n_then = n_then.unwrap_or(n_now);
        // From the back, so that places before stay what they were.
        for splice in self.0.iter().rev() {
            let Ok(with) = AgentState::from_json(splice.with.text()) else {
                continue;
            };
            let Some(range) = splice.range(n_then, n_now, n_summaries) else {
                continue;
            };
            messages.splice(range, with.messages().iter().cloned());
        }
    }
}

impl Splice {
    /// The messages that it replaces among `n_now` messages, if it was made for `n_then`. `None` if a
    /// summary replaces all of them.
    fn range(&self, n_then: usize, n_now: usize, n_summaries: usize) -> Option<Range<usize>> {
        let end = self.at.saturating_add(self.n);
        if n_then == n_now {
            let start = self.at.min(n_now);
            return Some(start..end.clamp(start, n_now));
        }
        // From the end, where both lists are equal.
        let now = |at: usize| (at + n_now).checked_sub(n_then);
        let is_summed_up = now(self.at).is_none_or(|start| start < n_summaries);
        let end = now(end).unwrap_or_default().min(n_now);
        if n_now > n_then && self.at == 0 {
            // What began with the first message does so still.
            return Some(0..if self.n == 0 { 0 } else { end });
        }
        if is_summed_up && end <= n_summaries {
            return None;
        }
        let start = now(self.at).unwrap_or_default().max(n_summaries).min(end);
        Some(start..end)
    }
}

fn splice(at: usize, n: usize, after: &Messages, places: std::ops::Range<usize>) -> Option<Splice> {
    let messages = places.filter_map(|place| after.get(place).cloned());
    let with = AgentState::initial().with_messages(messages);
    let with = Payload::from_text(with.to_json().ok()?).ok()?;
    Some(Splice { at, n, with })
}

fn same(a: &Message, b: &Message) -> bool {
    match (a, b) {
        (Message::User(a), Message::User(b)) => Arc::ptr_eq(a, b) || a == b,
        (Message::Assistant(a), Message::Assistant(b)) => Arc::ptr_eq(a, b) || a == b,
        (Message::ToolResult(a), Message::ToolResult(b)) => Arc::ptr_eq(a, b) || a == b,
        (Message::User(_) | Message::Assistant(_) | Message::ToolResult(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_view_makes_the_one_conversation_of_the_other(
            before in proptest::collection::vec(0u8..4, 0..12),
            after in proptest::collection::vec(0u8..4, 0..12),
        ) {
            let known: Vec<Message> = (0..4).map(|n| Message::from(format!("{n}"))).collect();
            let of = |list: &[u8]| -> Messages {
                list.iter().map(|n| known[usize::from(*n)].clone()).collect()
            };
            let (before, after) = (of(&before), of(&after));
            let view = View::between(&before, &after);
            prop_assert_eq!(view.is_empty(), before == after);
            let written = Payload::write(&view).unwrap();
            let mut made: Vec<Message> = before.iter().cloned().collect();
            written.read::<View>().unwrap().apply(&mut made, Some(before.len()), 0);
            prop_assert_eq!(made.into_iter().collect::<Messages>(), after);
        }
    }
}
