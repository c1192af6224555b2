//! Numbers, instants and names in columns of tables.

use jiff::Timestamp;
use std::fmt::Write as _;
use store::StoreError;
use timeline::{Interruption, Seq};

/// A count as a column; a larger count becomes the largest value.
pub(crate) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A column that counts.
pub(crate) fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// An instant in nanoseconds; years beyond 1677 to 2262 are held at the edge.
pub(crate) fn nanos(at: Timestamp) -> i64 {
    let edge = if at < Timestamp::UNIX_EPOCH {
        i64::MIN
    } else {
        i64::MAX
    };
    i64::try_from(at.as_nanosecond()).unwrap_or(edge)
}

/// The instant of a column.
pub(crate) fn instant(nanos: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_nanosecond(i128::from(nanos))
        .map_err(|error| StoreError::Damaged(error.to_string()))
}

/// The target in `thread_removals` of the runs that a compaction replaces. Its order is that of the
/// events.
pub(crate) fn compacted(seq: Seq) -> String {
    format!("compacted {:020}", seq.0)
}

/// The reason and the detail of an interruption.
pub(crate) fn interruption(why: Option<&Interruption>) -> (Option<&str>, Option<&str>) {
    let detail = why.and_then(|why| why.detail.as_deref());
    (why.map(|why| why.reason.as_str()), detail)
}

/// A SHA-256 from its hexadecimal digits.
pub(crate) fn unhex(digits: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() || pairs.len() != digest.len() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(pairs) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(digest)
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
