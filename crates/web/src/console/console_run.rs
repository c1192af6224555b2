//! A run with its times, as the console shows it.

use crate::execution::{UNNAMED, agent_of};
use crate::link::event_path;
use interop::run::{ExecutionTimes, StepTimes};
use jiff::Timestamp;
use maud::{Markup, html};
use std::collections::BTreeMap;
use timeline::{Item, Reaction, Seq, StepId};

/// The run that continues another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunContinuation {
    /// The id of its execution.
    pub execution_id: String,
    /// When it began.
    pub created_at: Timestamp,
}

/// A run in the console.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleRun<'a> {
    /// The key of its thread.
    pub thread_key: &'a str,
    /// Its execution with its steps.
    pub reaction: &'a Reaction,
    /// The times of its attempts, calls and restarts.
    pub times: &'a ExecutionTimes,
    /// The item that it responds to.
    pub trigger: &'a Item,
    /// The run that continues it.
    pub continuation: Option<&'a RunContinuation>,
    /// Whether its calls wait for answers.
    pub is_waiting: bool,
    /// The event that began it; absent if that is in the log of the thread that this one was forked from.
    pub seq: Option<u64>,
}

impl ConsoleRun<'_> {
    /// A link to an event in the log, if the thread's own log has it.
    pub(super) fn event_link(&self, seq: Seq) -> Markup {
        html! {
            @if self.seq.is_some() { a href=(event_path(self.thread_key, seq.0)) { (seq.0) } }
            @else { (seq.0) }
        }
    }

    /// The times of its steps, by their ids.
    pub(super) fn step_times(&self) -> BTreeMap<&StepId, &StepTimes> {
        let steps = self.times.steps.iter();
        steps.map(|times| (&times.id, times)).collect()
    }

    /// Its agent.
    pub(super) fn agent(&self) -> String {
        agent_of(&self.reaction.execution).unwrap_or_else(|| UNNAMED.to_owned())
    }
}
