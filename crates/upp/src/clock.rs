//! The one place of this crate that reads the clock.

/// The present instant.
pub(crate) fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
