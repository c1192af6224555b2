//! Why a text is no list of UI messages, or no stream.

use crate::ai_sdk::sse::EventTooLarge;
use thread::DecodeError;
use thread::json::{Step, Within};

/// Why a text is no list of UI messages, or no stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AiSdkError {
    /// It is not JSON, or too large.
    #[error(transparent)]
    Json(#[from] DecodeError),
    /// An event is too large.
    #[error(transparent)]
    TooLarge(#[from] EventTooLarge),
    /// It is no stream.
    #[error("line {line}: expected {expected}, found {found}")]
    NoStream {
        /// The first line that is not blank, from 1.
        line: usize,
        /// The expected value.
        expected: &'static str,
        /// The start of the line.
        found: String,
    },
    /// A member is missing or is not what it must be.
    #[error("{pointer:?}: expected {expected}, found {found}")]
    Shape {
        /// JSON pointer to the value.
        pointer: String,
        /// The expected value.
        expected: &'static str,
        /// The value found.
        found: String,
    },
}

impl AiSdkError {
    /// Where, as a JSON pointer, if it is of one place.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Json(error) => Some(&error.pointer),
            Self::Shape { pointer, .. } => Some(pointer),
            Self::TooLarge(_) | Self::NoStream { .. } => None,
        }
    }
}

impl Within for AiSdkError {
    fn within(self, step: Step<'_>) -> Self {
        match self {
            Self::Json(error) => Self::Json(error.within(step)),
            Self::TooLarge(error) => Self::TooLarge(error),
            Self::NoStream { .. } => self,
            Self::Shape {
                pointer,
                expected,
                found,
            } => Self::Shape {
                pointer: format!("{}{pointer}", thread::json::pointer([step])),
                expected,
                found,
            },
        }
    }
}

/// The error for a value of the wrong shape at the root.
pub(super) fn shape(expected: &'static str, found: impl Into<String>) -> AiSdkError {
    AiSdkError::Shape {
        pointer: String::new(),
        expected,
        found: found.into(),
    }
}
