//! Who counts what a runtime does.

use jiff::Timestamp;
use std::time::Duration;
use timeline::{Event, Execution, ExecutionStatus, Interruption};

/// Is told what becomes of executions, for figures.
pub trait Observer: Send + Sync {
    /// An execution that was running is over, and its log says so. One that ends in the transaction that begins it
    /// has not run, and is not told. This is called while the thread is held: be quick.
    fn ended(&self, ended: &Ended);
}

/// An execution that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its agent, if it was begun for one in particular.
    pub agent: Option<String>,
    /// Why it was stopped or has failed; absent where it has completed.
    pub reason: Option<String>,
    /// From its beginning to its end, with what lay between where a process was down.
    pub took: Duration,
}

impl Ended {
    /// What an event says of the execution that was running until then, if it is about that one.
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
