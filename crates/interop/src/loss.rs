//! What a conversion could not carry.

/// One thing the target format has no place for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where it stood in the source: a JSON pointer.
    pub pointer: String,
    /// What was lost.
    pub what: String,
}

/// The value of a conversion, and what it could not carry.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted<T> {
    /// The value.
    pub value: T,
    /// What was left behind, in the order of the source.
    pub losses: Vec<Loss>,
}

impl<T> Converted<T> {
    /// A value that carries everything.
    pub fn whole(value: T) -> Self {
        Self {
            value,
            losses: Vec::new(),
        }
    }

    /// The same losses with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Converted<U> {
        Converted {
            value: change(self.value),
            losses: self.losses,
        }
    }
}
