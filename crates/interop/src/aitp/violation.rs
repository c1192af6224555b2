//! What is wrong with something that came in.

use thread::json::{Step, pointer};

/// One thing that is wrong: where, and what was expected there.
///
/// What was found is not in it: forms hold addresses and worse, and errors end up in logs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?}: expected {expected}")]
pub struct MessageViolation {
    /// A JSON pointer into what was read; empty for the whole.
    pub pointer: String,
    /// What was expected there, to follow the word "expected".
    pub expected: String,
}

impl MessageViolation {
    pub(crate) fn new(pointer: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            expected: expected.into(),
        }
    }
}

/// The pointer of a member of what stands at `at`.
pub(super) fn member(at: &str, key: &str) -> String {
    format!("{at}{}", pointer([Step::Key(key)]))
}
