//! The keys that threads are made with.

/// The most bytes of a key.
pub const MAX_KEY_BYTES: usize = 512;

/// Why no thread is made under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// It is empty.
    #[error("a key is not empty")]
    Empty,
    /// It is longer than [`MAX_KEY_BYTES`].
    #[error("a key has at most {MAX_KEY_BYTES} bytes")]
    TooLong,
    /// It could not stand in a path, or in a line.
    #[error("a key is not \".\" or \"..\" and has no control characters")]
    Unprintable,
}

/// Whether a thread may be made under this key.
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
