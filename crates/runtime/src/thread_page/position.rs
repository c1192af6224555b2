//! Positions in a thread with its ancestors.

/// The position of an event in a thread, counted from 1, with the events of its ancestors.
///
/// For a thread that is no fork it equals the event's `Seq`. For an event of a fork's own log it
/// is that `Seq` plus the number of events of its ancestors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// Before everything.
    pub const START: Self = Self(0);
    /// After everything.
    pub const END: Self = Self(u64::MAX);

    /// The next position.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The previous position.
    #[must_use]
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}
