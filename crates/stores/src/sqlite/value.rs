//! Numbers and instants in SQLite's columns.

use jiff::Timestamp;
use store::StoreError;

/// A count as a column; a larger count becomes the largest value.
pub(super) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A column that counts.
pub(super) fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// An instant in nanoseconds; years beyond 1677 to 2262 are held at the edge.
pub(super) fn nanos(at: Timestamp) -> i64 {
    let edge = if at < Timestamp::UNIX_EPOCH {
        i64::MIN
    } else {
        i64::MAX
    };
    i64::try_from(at.as_nanosecond()).unwrap_or(edge)
}

/// The instant of a column.
pub(super) fn instant(nanos: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_nanosecond(i128::from(nanos))
        .map_err(|error| StoreError::Damaged(error.to_string()))
}
