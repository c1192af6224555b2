//! The agent, the tokens and the state of an execution.

use serde::Deserialize;
use timeline::{Execution, ExecutionStatus, Interruption, Payload, Reaction};

/// The name of an agent if the log has none.
pub(crate) const UNNAMED: &str = "agent";

/// The members of an execution's run that pages show.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RunFields {
    agent: Option<String>,
}

/// The agent of an execution.
pub(crate) fn agent_of(execution: &Execution) -> Option<String> {
    let run: RunFields = execution.run.as_ref()?.read().ok()?;
    run.agent
}

/// The tokens of an answer, as far as pages add them up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CountedTokens {
    /// The tokens that the model read.
    pub(crate) input_tokens: u64,
    /// The tokens that it wrote.
    pub(crate) output_tokens: u64,
}

impl CountedTokens {
    /// Reads a usage; zero if there is none.
    pub(crate) fn read(usage: Option<&Payload>) -> Self {
        let usage = usage.and_then(|usage| usage.read().ok());
        usage.unwrap_or_default()
    }

    /// The tokens of all answers of an execution.
    pub(crate) fn of(reaction: &Reaction) -> Self {
        let sums = interop::run::usage_of(reaction);
        let sum = |name| sums.get(name).copied().unwrap_or_default();
        Self {
            input_tokens: sum("inputTokens"),
            output_tokens: sum("outputTokens"),
        }
    }

    /// Both together.
    pub(crate) fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// The state of an execution as a word for the style sheet and one for people.
pub(crate) fn execution_state(
    reaction: &Reaction,
    is_waiting: bool,
) -> (&'static str, &'static str) {
    let reason = reaction.execution.interruption.as_ref();
    match reaction.execution.status {
        ExecutionStatus::Executing => ("running", "running"),
        _ if is_waiting => ("waits", "waits"),
        ExecutionStatus::Completed => ("ok", "done"),
        ExecutionStatus::Failed => match reason.map(|reason| reason.reason.as_str()) {
            Some(Interruption::USER_CANCELLED) => ("stopped", "stopped"),
            Some(_) | None => ("error", "failed"),
        },
    }
}
