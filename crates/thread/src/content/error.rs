//! The errors of moving contents.

use crate::json::DecodeError;

/// The reason why contents were not moved out of a document.
#[derive(Debug, thiserror::Error)]
pub enum ExternaliseError<E: std::error::Error + 'static> {
    /// The store failed.
    #[error("the content at {pointer:?} was not stored")]
    Store {
        /// The JSON Pointer of the content.
        pointer: String,
        /// The error of the store.
        #[source]
        source: E,
    },
}

/// The reason why contents were not restored in a document.
#[derive(Debug, thiserror::Error)]
pub enum InlineError<E: std::error::Error + 'static> {
    /// The store failed.
    #[error("the content for {pointer:?} was not read")]
    Store {
        /// The JSON Pointer of the reference.
        pointer: String,
        /// The error of the store.
        #[source]
        source: E,
    },
    /// The store lacks the content.
    #[error("the store has no {hash}, which {pointer:?} refers to")]
    Missing {
        /// The JSON Pointer of the reference.
        pointer: String,
        /// The hash of the content.
        hash: String,
    },
    /// The hash in the reference's URI differs from its `hash` member, or the stored text has
    /// another hash.
    #[error("the content for {pointer:?} has the hash {found}, expected {expected}")]
    HashMismatch {
        /// The JSON Pointer of the reference.
        pointer: String,
        /// The hash in the reference's URI.
        expected: String,
        /// The hash found.
        found: String,
    },
    /// The stored text is not JSON.
    #[error("the content for {pointer:?} can't be read")]
    Decode {
        /// The JSON Pointer of the reference.
        pointer: String,
        /// The error of decoding.
        #[source]
        source: DecodeError,
    },
}
