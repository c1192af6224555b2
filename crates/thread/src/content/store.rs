//! Stores for contents.

use std::collections::BTreeMap;
use std::convert::Infallible;

/// A store of texts by their hash, `sha256:` and 64 hexadecimal digits.
///
/// The text of a hash never changes: storing it again has no effect, and reading returns it byte
/// for byte.
pub trait ContentStore {
    /// The error of the store.
    type Error: std::error::Error + 'static;

    /// Stores a text under its hash.
    fn put(&mut self, hash: &str, text: &str) -> Result<(), Self::Error>;

    /// The text with this hash; `None` if it is not stored.
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

    /// The number of stored texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether no text is stored.
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
