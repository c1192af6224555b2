//! The canonical form of a document and its hash.
