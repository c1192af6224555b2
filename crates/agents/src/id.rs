//! The one place of this crate that mints ids and reads the clock.

use std::sync::Arc;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// An id as text: one that was minted here lies in place, for a state has a new one with each change
/// and few of them are ever shared.
#[derive(Clone)]
pub(crate) enum Id {
    /// Minted here.
    Minted([u8; Hyphenated::LENGTH]),
    /// Read from elsewhere, whatever it is.
    Given(Arc<str>),
}

impl Id {
    /// A new random id (UUID v4, UAP §3.4).
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of this crate that mints ids"
    )]
    pub(crate) fn random() -> Self {
        let mut text = [0; Hyphenated::LENGTH];
        Uuid::new_v4().hyphenated().encode_lower(&mut text);
        Self::Minted(text)
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            // A UUID is ASCII.
            Self::Minted(text) => std::str::from_utf8(text).unwrap_or_default(),
            Self::Given(text) => text,
        }
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl std::fmt::Debug for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// A new random id (UUID v4, UAP §3.4).
pub(crate) fn random() -> Arc<str> {
    Id::random().as_str().into()
}

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
