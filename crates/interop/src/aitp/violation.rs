//! Violations in received data.

use thread::json::{Step, pointer};

/// One violation: its place and the expected value.
///
/// It omits the value found, because forms hold private data and errors end up in logs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?}: expected {expected}")]
pub struct MessageViolation {
    /// A JSON pointer into what was read; empty for the whole.
    pub pointer: String,
    /// The expected value, to follow the word "expected".
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

/// The JSON pointer of the member `key` of the value at `at`.
pub(super) fn member(at: &str, key: &str) -> String {
    format!("{at}{}", pointer([Step::Key(key)]))
}
