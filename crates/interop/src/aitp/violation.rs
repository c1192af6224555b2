//! What is wrong with something that came in.

/// One thing that is wrong: where, and what was expected there.
///
/// What was found is not in it: forms hold addresses and worse, and errors end up in logs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?}: expected {expected}")]
pub struct Violation {
    /// A JSON pointer into what was read; empty for the whole.
    pub pointer: String,
    /// What was expected there, to follow the word "expected".
    pub expected: String,
}

impl Violation {
    pub(crate) fn new(pointer: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            expected: expected.into(),
        }
    }
}

/// One member of a pointer.
pub(super) fn token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
