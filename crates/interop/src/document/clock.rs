//! Instants of a document, in order.

use jiff::Timestamp;

/// A clock whose instants never go back (rules 4 and 5).
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    last: Timestamp,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            last: Timestamp::MIN,
        }
    }

    /// This instant, or the last one if that is later.
    pub(super) fn at(&mut self, instant: Timestamp) -> String {
        self.last = self.last.max(instant);
        rfc3339(self.last)
    }

    /// Advances the clock to an instant that is already in the document.
    pub(super) fn pass(&mut self, instant: Option<&str>) {
        if let Some(instant) = instant.and_then(|text| text.parse().ok()) {
            self.last = self.last.max(instant);
        }
    }
}

/// An instant in RFC 3339.
pub(super) fn rfc3339(instant: Timestamp) -> String {
    instant.to_string()
}
