//! The rules for thread keys.

/// Maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 512;

/// Why a key is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// It is empty.
    #[error("a key is not empty")]
    Empty,
    /// It is longer than [`MAX_KEY_BYTES`].
    #[error("a key has at most {MAX_KEY_BYTES} bytes")]
    TooLong,
    /// It has characters that a path or a line can't contain.
    #[error("a key is not \".\" or \"..\" and has no control characters")]
    Unprintable,
}

/// Checks that a key is valid for a new thread.
pub fn check_key(key: &str) -> Result<(), InvalidKey> {
    if key.is_empty() {
        Err(InvalidKey::Empty)
    } else if key.len() > MAX_KEY_BYTES {
        Err(InvalidKey::TooLong)
    } else if matches!(key, "." | "..") || key.chars().any(char::is_control) {
        Err(InvalidKey::Unprintable)
    } else {
        Ok(())
    }
}
