//! The attempts to decide what another node overtakes.

use std::time::Duration;

/// A part of the longest pause before the third attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// The attempts to decide.
pub(crate) struct Tries {
    n: u32,
    max: u32,
    /// After this number of attempts, pauses become no longer.
    longest: u32,
}

impl Tries {
    /// Afterwards the requests of other nodes have the precedence.
    pub(crate) const OF_REQUEST: Self = Self {
        n: 0,
        max: 8,
        longest: 8,
    };
    /// The model call of a step that can't be written would be lost, and requests come to an end.
    pub(crate) const OF_OWNER: Self = Self {
        n: 0,
        max: u32::MAX,
        longest: 3,
    };

    /// The longest pause before the next attempt; none if there is no further one.
    pub(crate) fn next_pause(&mut self) -> Option<Duration> {
        self.n = self.n.saturating_add(1);
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.n.min(self.longest));
        (self.n < self.max).then_some(if self.n > 1 { pause } else { Duration::ZERO })
    }
}
