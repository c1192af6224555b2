//! Why an answer, or the run that it is of, stopped before it was done: read in one way for all views.

use timeline::StepOutcome;

/// What cut something short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// There were no more tokens for it.
    Tokens,
    /// A filter of the provider's took the rest away.
    ContentFilter,
}

impl Cut {
    /// What cut an answer short whose model stopped for this reason (UPP §12).
    pub(crate) fn of_answer(stop_reason: Option<&str>) -> Option<Self> {
        match stop_reason? {
            "max_tokens" => Some(Self::Tokens),
            "content_filter" => Some(Self::ContentFilter),
            _ => None,
        }
    }

    /// What kept an agent from going on after this step.
    pub(crate) fn of_step(outcome: &StepOutcome) -> Option<Self> {
        (outcome.cut_short.as_deref() == Some(StepOutcome::SPENT)).then_some(Self::Tokens)
    }
}
