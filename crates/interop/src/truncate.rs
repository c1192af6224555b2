//! The reason why an answer or a run stopped early, derived in one way for all views.

use timeline::StepOutcome;

/// The reason why an output was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The token limit was reached.
    Tokens,
    /// A filter of the provider's took the rest away.
    ContentFilter,
}

impl Cut {
    /// The reason why an answer was cut short, from the model's stop reason (UPP §12).
    pub(crate) fn of_answer(stop_reason: Option<&str>) -> Option<Self> {
        match stop_reason? {
            "max_tokens" => Some(Self::Tokens),
            "content_filter" => Some(Self::ContentFilter),
            _ => None,
        }
    }

    /// The reason why the agent stopped early after this step.
    pub(crate) fn of_step(outcome: &StepOutcome) -> Option<Self> {
        (outcome.cut_short.as_deref() == Some(StepOutcome::SPENT)).then_some(Self::Tokens)
    }
}
