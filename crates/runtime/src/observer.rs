//! Metrics of a runtime.

use jiff::Timestamp;
use std::time::Duration;
use timeline::{Event, Execution, ExecutionStatus, Interruption};

/// Receives the ends of executions, for metrics.
pub trait Observer: Send + Sync {
    /// A running execution has ended, and its log has that fact. An execution that ends in the
    /// transaction that starts it did not run and is not reported. The runtime holds the thread's
    /// lock during this call, so it must be fast.
    fn ended(&self, ended: &Ended);
}

/// An execution that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its agent, if it was started for a named one.
    pub agent: Option<String>,
    /// Why it was stopped or failed; none if it completed.
    pub reason: Option<String>,
    /// The time from its start to its end, including downtimes of a process.
    pub took: Duration,
}

impl Ended {
    /// Reads the end of the running execution from an event; none if the event is about something
    /// else.
    pub(crate) fn of(event: &Event, running: Option<&Execution>, at: Timestamp) -> Option<Self> {
        let Event::ExecutionStatusChanged {
            execution_id,
            to,
            interruption,
            ..
        } = event
        else {
            return None;
        };
        let running = running.filter(|running| running.id == *execution_id)?;
        let reason = match to {
            ExecutionStatus::Executing => return None,
            ExecutionStatus::Completed => None,
            ExecutionStatus::Failed => Some(reason(interruption.as_ref())),
        };
        let run = running.run.as_ref();
        Some(Self {
            agent: run.and_then(|run| run.str_field("agent")),
            reason,
            took: at
                .duration_since(running.created_at)
                .try_into()
                .unwrap_or_default(),
        })
    }
}

fn reason(why: Option<&Interruption>) -> String {
    why.map_or("error", |why| why.reason.as_str()).to_owned()
}

/// Counts nothing.
pub(crate) struct Nobody;

impl Observer for Nobody {
    fn ended(&self, _: &Ended) {}
}
