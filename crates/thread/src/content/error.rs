//! Why contents were not moved.

use crate::json::DecodeError;

/// Why contents were not moved out of a document.
#[derive(Debug, thiserror::Error)]
pub enum ExternaliseError<E: std::error::Error + 'static> {
    /// The store failed.
    #[error("the content at {pointer:?} was not stored")]
    Store {
        /// The JSON Pointer of the content.
        pointer: String,
        /// Why.
        #[source]
        source: E,
    },
}

/// Why contents were not put back into a document.
#[derive(Debug, thiserror::Error)]
pub enum InlineError<E: std::error::Error + 'static> {
    /// The store failed.
    #[error("the content for {pointer:?} was not read")]
    Store {
        /// The JSON Pointer of the reference.
        pointer: String,
        /// Why.
        #[source]
        source: E,
    },
    /// The store has no such content.
    #[error("the store has no {hash}, which {pointer:?} refers to")]
    Missing {
        /// The JSON Pointer of the reference.
        pointer: String,
        /// The hash of the content.
        hash: String,
    },
    /// The reference says one hash in its URI and another beside it, or the stored text has
    /// another than the reference says.
    #[error("the content for {pointer:?} has the hash {found}, expected {expected}")]
    HashMismatch {
        /// The JSON Pointer of the reference.
        pointer: String,
        /// The hash in the reference's URI.
        expected: String,
        /// The hash found.
        found: String,
    },
    /// The stored text is no JSON.
    #[error("the content for {pointer:?} can't be read")]
    Decode {
        /// The JSON Pointer of the reference.
        pointer: String,
        /// Why.
        #[source]
        source: DecodeError,
    },
}
