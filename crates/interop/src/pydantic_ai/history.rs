//! Histories in and out of an archive.

use super::PydanticAiError;
use crate::Converted;
use crate::archive::{Archive, Run};
use crate::convert::ReadOptions;
use crate::runs::ModelRun;

/// Reads a history into an archive, message by message as it stands.
pub fn read(text: &str, options: &ReadOptions) -> Result<Archive, PydanticAiError> {
    let _ = text;
    Ok(Archive::new("", &options.at))
}

/// Goes on with an archive: the whole history after another run, or only what the run added.
pub fn append(
    archive: &mut Archive,
    text: &str,
    options: &ReadOptions,
) -> Result<(), PydanticAiError> {
    let _ = (archive, text, options);
    Ok(())
}

/// The history of an archive.
pub fn write(archive: &Archive) -> Converted<String> {
    let _ = archive;
    Converted::whole(String::new())
}

pub(crate) fn model_runs(run: &Run, pointer: &str) -> Converted<Vec<ModelRun>> {
    let _ = (run, pointer);
    Converted::whole(Vec::new())
}
