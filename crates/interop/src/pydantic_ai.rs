//! Pydantic AI's `ModelMessages`: histories into an archive and out of it.
//!
//! [`read`] checks a history in one pass against the library's types, versions 1.0 to 2.68
//! together, and stores every message unchanged. [`write()`] returns it byte for byte. [`append`]
//! adds the messages of another run. The canonical document is a view of the archive
//! ([`Archive::to_thread`](crate::archive::Archive::to_thread)); [`to_document`] makes it in one
//! step.

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

/// An error of reading a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PydanticAiError {
    /// The text is not JSON, or too large.
    #[error(transparent)]
    Json(#[from] DecodeError),
    /// A history is a list.
    #[error("a history is a list of messages, not {found}")]
    NotAList {
        /// The type that was found.
        found: &'static str,
    },
    /// A message is neither a request nor a response with parts.
    #[error("{pointer}: a message is a request or a response with a list of parts")]
    NotAMessage {
        /// Its JSON Pointer.
        pointer: String,
    },
    /// A value in a message is not one that any version of the library accepts.
    #[error("{pointer}: expected {expected}, found {found}")]
    Shape {
        /// Its JSON Pointer.
        pointer: String,
        /// The expected value.
        expected: String,
        /// The value that was found.
        found: String,
    },
}

impl PydanticAiError {
    /// The JSON Pointer of the error in the history.
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

/// The document of a history, in one step. The pointers of losses refer to the history.
///
/// It refuses the same inputs as [`read`].
pub fn to_document(
    text: &str,
    options: &ReadOptions,
) -> Result<Converted<Thread>, PydanticAiError> {
    let archive = read(text, options)?;
    let Converted { value, losses } = archive.to_thread();
    let losses = in_source(SourceForm::Of(Format::PydanticAi), &archive, losses);
    Ok(Converted { value, losses })
}
