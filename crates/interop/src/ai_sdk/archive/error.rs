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
        /// What was expected.
        expected: &'static str,
        /// How the line begins.
        found: String,
    },
    /// A member is missing or is not what it must be.
    #[error("{pointer:?}: expected {expected}, found {found}")]
    Shape {
        /// Where.
        pointer: String,
        /// What was expected.
        expected: &'static str,
        /// What is there.
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

/// What is not as it must be, here.
pub(super) fn shape(expected: &'static str, found: impl Into<String>) -> AiSdkError {
    AiSdkError::Shape {
        pointer: String::new(),
        expected,
        found: found.into(),
    }
}
