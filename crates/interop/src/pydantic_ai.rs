//! Pydantic AI's `ModelMessages`: histories into an archive and out of it.
//!
//! [`read`] checks a history in one pass against what the library's types say of it, versions 1.0 to
//! 2.68 together, and keeps every message as it stands; [`write()`] gives it back byte for byte.
//! [`append`] goes on with what another run added. The canonical document is a view of the archive
//! ([`Archive::to_thread`](crate::archive::Archive::to_thread)), and [`to_document`] the way there in
//! one step.

mod append;
mod check;
mod history;
mod messages;
mod note;
mod schema;
mod truncate;

pub use append::append;
pub(crate) use history::model_runs;
pub use history::{read, read_owned, write};
pub use messages::library_messages;

use crate::Converted;
use crate::archive::Format;
use crate::convert::{ReadOptions, SourceForm, in_source};
use thread::json::{Step, Within};
use thread::{DecodeError, Thread};

/// Why a value is no history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PydanticAiError {
    /// It is no JSON, or too large.
    #[error(transparent)]
    Json(#[from] DecodeError),
    /// A history is a list.
    #[error("a history is a list of messages, not {found}")]
    NotAList {
        /// What it is instead.
        found: &'static str,
    },
    /// A message is neither a request nor a response with parts.
    #[error("{pointer}: a message is a request or a response with a list of parts")]
    NotAMessage {
        /// Where.
        pointer: String,
    },
    /// Something in a message is not what any version of the library takes there.
    #[error("{pointer}: expected {expected}, found {found}")]
    Shape {
        /// Where.
        pointer: String,
        /// What was expected.
        expected: String,
        /// What is there.
        found: String,
    },
}

impl PydanticAiError {
    /// Where: a JSON pointer into the history.
    #[must_use]
    pub fn pointer(&self) -> &str {
        match self {
            Self::Json(error) => &error.pointer,
            Self::NotAList { .. } => "",
            Self::NotAMessage { pointer } | Self::Shape { pointer, .. } => pointer,
        }
    }
}

impl Within for PydanticAiError {
    fn within(mut self, step: Step<'_>) -> Self {
        match &mut self {
            Self::Json(error) => *error = error.clone().within(step),
            Self::NotAList { .. } => {}
            Self::NotAMessage { pointer } | Self::Shape { pointer, .. } => {
                pointer.insert_str(0, &thread::json::pointer([step]));
            }
        }
        self
    }
}

/// The document of a history, in one step. Losses are told where they stand in the history.
///
/// What is refused is what [`read`] refuses.
pub fn to_document(
    text: &str,
    options: &ReadOptions,
) -> Result<Converted<Thread>, PydanticAiError> {
    let archive = read(text, options)?;
    let Converted { value, losses } = archive.to_thread();
    let losses = in_source(SourceForm::Of(Format::PydanticAi), &archive, losses);
    Ok(Converted { value, losses })
}
