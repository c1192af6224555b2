//! Errors on which a client stops reading a stream.

use crate::ai_sdk::chunk::{FieldFault, Major, text};
use thread::Json;

/// Why a client would give up on a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReduceError {
    /// A chunk has a type that clients of this version don't know.
    #[error("chunk {place} has the unknown type {kind:?}, expected one of ai {major:?}")]
    UnknownType {
        /// Its place in the stream.
        place: usize,
        /// The type.
        kind: String,
        /// The version of the client.
        major: Major,
    },
    /// A chunk continues a block or a call that was never started.
    #[error("chunk {place} of type {kind:?} continues {id:?}, which never began")]
    NotStarted {
        /// Its place in the stream.
        place: usize,
        /// The type.
        kind: String,
        /// The block, call or approval.
        id: String,
    },
    /// A chunk is no object.
    #[error("chunk {place} is of type {found}, expected an object")]
    NotAnObject {
        /// Its place in the stream.
        place: usize,
        /// The type of it.
        found: &'static str,
    },
    /// A field of a chunk is missing, or is not what it must be.
    #[error("{field} of chunk {place} of type {kind:?} is {}, expected {expected}", found.unwrap_or("missing"))]
    Field {
        /// Its place in the stream.
        place: usize,
        /// The type of the chunk.
        kind: String,
        /// The field.
        field: &'static str,
        /// The expected value.
        expected: &'static str,
        /// The type found.
        found: Option<&'static str>,
    },
    /// The message's metadata is no object, and there is more of it.
    #[error("chunk {place} adds to metadata of type {known}, expected an object")]
    Unmergeable {
        /// Its place in the stream.
        place: usize,
        /// The type of the existing metadata.
        known: &'static str,
    },
    /// An earlier chunk was refused.
    #[error("the stream was abandoned at chunk {place}, expected no further chunk")]
    Over {
        /// The place of the chunk that was refused.
        place: usize,
    },
}

/// The error of one chunk.
pub(super) enum ChunkError {
    Field(FieldFault),
    NotStarted(String),
    Unmergeable(&'static str),
}

impl From<FieldFault> for ChunkError {
    fn from(fault: FieldFault) -> Self {
        Self::Field(fault)
    }
}

impl ChunkError {
    /// Adds the chunk's place to the error.
    pub(super) fn at(self, place: usize, chunk: &Json) -> ReduceError {
        let kind = text(chunk, "type").to_owned();
        match self {
            Self::NotStarted(id) => ReduceError::NotStarted { place, kind, id },
            Self::Unmergeable(known) => ReduceError::Unmergeable { place, known },
            Self::Field(FieldFault::NotAnObject { found }) => {
                ReduceError::NotAnObject { place, found }
            }
            Self::Field(FieldFault::UnknownType { kind, major }) => {
                ReduceError::UnknownType { place, kind, major }
            }
            Self::Field(FieldFault::Field {
                field,
                expected,
                found,
            }) => ReduceError::Field {
                place,
                kind,
                field,
                expected,
                found,
            },
        }
    }
}
