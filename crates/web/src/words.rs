//! Words for states, outcomes and numbers that several pages show.

use std::fmt::Display;
use timeline::ThreadStatus;

/// The outcome of a call that a stop of the process interrupted.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// A thread's status as a word for the style sheet and one for people.
pub(crate) fn status_words(status: ThreadStatus) -> (&'static str, &'static str) {
    match status {
        ThreadStatus::Open => ("open", "open"),
        ThreadStatus::Streaming => ("running", "working"),
        ThreadStatus::Closed => ("closed", "closed"),
        ThreadStatus::Failed => ("error", "failed"),
    }
}

/// The outcome of a call in words.
pub(crate) fn outcome_words(outcome: &str) -> &str {
    match outcome {
        INTERRUPTED => "outcome unknown",
        other => other,
    }
}

/// A number of things: `1 step`, `2 steps`.
pub(crate) fn counted<N: Copy + Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let ending = if n == N::from(1) { "" } else { "s" };
    format!("{n} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_things_has_a_singular() {
        assert_eq!(counted(0_usize, "step"), "0 steps");
        assert_eq!(counted(1_u64, "step"), "1 step");
        assert_eq!(counted(2_u32, "step"), "2 steps");
    }
}
