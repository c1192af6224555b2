//! The one place of this crate that mints ids and reads the clock.

use std::sync::Arc;

/// A new random id (UUID v4, UAP §3.4).
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate that mints ids"
)]
pub(crate) fn random() -> Arc<str> {
    uuid::Uuid::new_v4().to_string().into()
}

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
