//! Keys of threads: those that a caller may make a thread with.

use crate::auth::Caller;
use crate::error::ApiError;
use runtime::ThreadRow;

/// Checks that a thread may have a key.
pub(crate) fn check_key(key: &str, pointer: &str) -> Result<(), ApiError> {
    crate::check_key(key).map_err(|invalid| ApiError::field(pointer, invalid.to_string()))
}

/// Checks that the caller may make a thread with a key. If none is named, the server mints one, which only an
/// unrestricted key reaches.
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
