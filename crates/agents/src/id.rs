//! The only place in this crate that makes ids and reads the clock.

use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// An id as text. The text of a new id is formatted only when it is read, because each change of a
/// state makes an id and few of them are read.
#[derive(Clone)]
pub(crate) enum Id {
    /// Minted here.
    Minted(Uuid, OnceLock<Arc<str>>),
    /// An existing id that was read; any text.
    Fixed(Arc<str>),
}

impl Id {
    /// A new random id (UUID v4, UAP §3.4).
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of this crate that mints ids"
    )]
    pub(crate) fn random() -> Self {
        Self::Minted(Uuid::new_v4(), OnceLock::new())
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        self.shared()
    }

    /// The text. Cloning it is cheap.
    pub(crate) fn shared(&self) -> &Arc<str> {
        match self {
            Self::Minted(id, text) => text.get_or_init(|| {
                let mut buffer = Uuid::encode_buffer();
                let text: &str = id.hyphenated().encode_lower(&mut buffer);
                text.into()
            }),
            Self::Fixed(text) => text,
        }
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Minted(id, _), Self::Minted(other, _)) => id == other,
            (Self::Minted(..) | Self::Fixed(_), _) => self.as_str() == other.as_str(),
        }
    }
}

impl std::fmt::Debug for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// A new random id (UUID v4, UAP §3.4).
pub(crate) fn random() -> Arc<str> {
    Arc::clone(Id::random().shared())
}

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
