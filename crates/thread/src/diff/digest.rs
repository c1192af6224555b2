//! The hash of a document's exact text, which ties a diff to the two documents it was made of.

use crate::document::Thread;
use sha2::{Digest, Sha256};

/// The SHA-256 of a document's compact text, as [`Thread::encode`] writes it.
///
/// Not the content hash: documents of one meaning have different text hashes if they are spelled
/// differently.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextHash([u8; 32]);

impl TextHash {
    /// The hash of a document.
    #[must_use]
    pub fn of(thread: &Thread) -> Self {
        Self(Sha256::digest(thread.encode()).into())
    }

    /// Reads `sha256:` and 64 lowercase hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:")?.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = nibble(*high)? << 4 | nibble(*low)?;
        }
        Some(Self(hash))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl std::fmt::Display for TextHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("sha256:")?;
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl std::fmt::Debug for TextHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TextHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_back_as_it_is_shown_and_nothing_else_does() {
        let hash = TextHash::of(&Thread::decode("{}").unwrap());
        assert_eq!(TextHash::parse(&hash.to_string()), Some(hash));
        let shown = hash.to_string();
        for bad in [&shown[1..], &shown[..70], &shown.to_uppercase()] {
            assert_eq!(TextHash::parse(bad), None);
        }
    }
}
