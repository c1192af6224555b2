//! Why a compaction can't end at a position.

use timeline::{ExecutionId, Seq};

/// A compaction can't end there; nothing has been written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a compaction can't end there: {why}; {}", advice(self.next.as_ref()))]
pub struct IllegalCut {
    /// Why.
    pub why: CutRefusal,
    /// The next end that is possible.
    pub next: Option<LegalCut>,
}

/// A possible end of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalCut {
    /// The last execution before it.
    pub execution_id: ExecutionId,
    /// The last event of that execution; `None` if it is in the log of an ancestor.
    pub seq: Option<Seq>,
}

/// Why a compaction can't end at a position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutRefusal {
    /// The execution is not over.
    #[error("execution {0} still runs")]
    Running(ExecutionId),
    /// No run ends with this event.
    #[error("no run ends with event {0}")]
    NoBorder(Seq),
    /// The run continues with another execution.
    #[error("execution {by} continues execution {execution}")]
    Continued {
        /// The execution.
        execution: ExecutionId,
        /// The next one.
        by: ExecutionId,
    },
    /// A call has no result yet.
    #[error("the tool call {0:?} has no result there")]
    Unanswered(String),
    /// There is no such end after that of the compaction that counts.
    #[error("no older run is left to compact")]
    NothingOlder,
}

fn advice(next: Option<&LegalCut>) -> String {
    match next {
        Some(next) => format!("the next possible end is execution {}", next.execution_id),
        None => "no later end is possible now".to_owned(),
    }
}
