//! The keys that a caller may create threads with.

use crate::auth::Caller;
use crate::error::ApiError;
use runtime::ThreadRow;

/// Checks that a key is valid for a thread.
pub(crate) fn check_key(key: &str, pointer: &str) -> Result<(), ApiError> {
    crate::check_key(key).map_err(|invalid| ApiError::field(pointer, invalid.to_string()))
}

/// Checks that the caller may create a thread with a key. If none is named, the server generates one,
/// which only an unrestricted key can access.
pub(crate) fn check_new_key(
    caller: &Caller,
    key: Option<&str>,
    pointer: &str,
) -> Result<(), ApiError> {
    match key {
        Some(key) => {
            check_key(key, pointer)?;
            caller.check(key)
        }
        None if caller.is_restricted() => Err(ApiError::ForbiddenThread),
        None => Ok(()),
    }
}

/// The key of a thread.
pub(crate) fn key_of(row: &ThreadRow) -> &str {
    let key = row.thread.key.as_deref();
    key.unwrap_or_else(|| row.thread.id.as_str())
}
