//! Budgets that are spent.

use std::time::Duration;

/// A request is refused because a budget is used up. Nothing of it has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the limit {name} of {max} is reached; {}", .kind.advice())]
pub struct LimitReached {
    /// The name of the limit in the configuration, such as `tenant.concurrent_runs`.
    pub name: &'static str,
    /// Its value.
    pub max: u64,
    /// When the same request may succeed.
    pub kind: LimitKind,
}

/// When a request that a limit refused may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// After this time.
    Rate {
        /// The time.
        wait: Duration,
    },
    /// When something that runs or is open ends.
    Concurrency,
    /// When something that is stored is deleted.
    Storage,
}

impl LimitKind {
    fn advice(self) -> String {
        match self {
            Self::Rate { wait } => format!("try again in {} s", wait.as_secs() + 1),
            Self::Concurrency => "try again later".to_owned(),
            Self::Storage => "delete something, or ask the operator for more".to_owned(),
        }
    }
}
