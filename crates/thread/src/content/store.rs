//! Where contents are kept.

use std::collections::BTreeMap;
use std::convert::Infallible;

/// Texts by their hash, `sha256:` and 64 hexadecimal digits.
///
/// A text never changes under its hash: putting it again has no effect, and what was put is given
/// back byte for byte.
pub trait ContentStore {
    /// Why a store fails.
    type Error: std::error::Error + 'static;

    /// Keeps a text.
    fn put(&mut self, hash: &str, text: &str) -> Result<(), Self::Error>;

    /// The text of a hash, if it is kept.
    fn get(&self, hash: &str) -> Result<Option<String>, Self::Error>;
}

/// Contents in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryContents {
    texts: BTreeMap<String, String>,
}

impl MemoryContents {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many texts are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

impl ContentStore for MemoryContents {
    type Error = Infallible;

    fn put(&mut self, hash: &str, text: &str) -> Result<(), Infallible> {
        if !self.texts.contains_key(hash) {
            self.texts.insert(hash.to_owned(), text.to_owned());
        }
        Ok(())
    }

    fn get(&self, hash: &str) -> Result<Option<String>, Infallible> {
        Ok(self.texts.get(hash).cloned())
    }
}
