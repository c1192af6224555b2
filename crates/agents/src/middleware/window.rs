//! Keeps the latest messages (UAP §6.2, pattern 2).

use super::cycles;
use super::{Middleware, MiddlewareContext};
use crate::error::AgentError;
use crate::strategy::prompt;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use upp::{Message, Messages};

/// Reduces a conversation to its latest messages, in whole cycles (UAP §6.2).
///
/// A cycle is a request to the model with its input, calls and results. Cycles are not split, so
/// the window never starts with results. Up to three earlier messages stay in front of the window
/// and count towards its size:
///
/// - the latest summary;
/// - if the window starts within a run, the input of that run, so that the user's message comes
///   first;
/// - in that case also the last prompt of the run's strategy.
///
/// Tool rounds dropped after the last of these are noted on it, so that limits on rounds still
/// apply. These messages and the last cycle, whose calls may be open, stay even if they exceed the
/// window. The run's resulting state lacks the dropped messages. If you need them, store the state
/// before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Maximum number of messages.
    pub max_messages: NonZeroUsize,
}

impl SlidingWindow {
    /// A window of at most `max_messages` messages.
    pub fn new(max_messages: NonZeroUsize) -> Self {
        Self { max_messages }
    }

    /// The messages that stay; none when all do.
    fn kept(self, messages: &Messages) -> Option<Vec<Message>> {
        let max = self.max_messages.get();
        let n = messages.len();
        let surplus = n.checked_sub(max).filter(|surplus| *surplus > 0)?;
        let mut start = cycles::first_from(messages, surplus)
            .or_else(|| cycles::last_until(messages, surplus))?;
        let mut head = head(messages, start);
        while head.len() + (n - start) > max
            && let Some(later) = cycles::first_from(messages, start + 1)
        {
            start = later;
            head = self::head(messages, start);
        }
        if head.len() == start {
            return None;
        }
        let mut kept = cycles::without(messages, &head, start);
        kept.extend((start..n).filter_map(|at| messages.get(at).cloned()));
        Some(kept)
    }
}

/// The indexes of the messages before the window that stay.
fn head(messages: &Messages, start: usize) -> BTreeSet<usize> {
    let is = |at: usize, what: fn(&Message) -> bool| messages.get(at).is_some_and(what);
    let last = |what: fn(&Message) -> bool| (0..start).rev().find(|at| is(*at, what));
    let summary = (0..start)
        .rev()
        .find(|at| cycles::is_summary(messages, *at));
    // The window begins within a run, be it the last one or an earlier one.
    let input = (!is(start, prompt::is_input))
        .then(|| last(prompt::is_input))
        .flatten();
    let mut head = cycles::needed(messages, start);
    head.extend(summary.into_iter().chain(input));
    head
}

impl Middleware for SlidingWindow {
    fn name(&self) -> &'static str {
        "sliding-window"
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        if let Some(messages) = self.kept(context.state.messages()) {
            context.state = context.state.with_context(messages);
        }
        ready(Ok(())).boxed()
    }
}
