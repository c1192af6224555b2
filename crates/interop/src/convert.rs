//! Any format into an archive, an archive into any format, by name.

use crate::archive::{Archive, ArchiveError, Format};
use crate::pydantic_ai::PydanticAiError;
use crate::{Converted, Loss, ai_sdk, pydantic_ai};
use thread::{DecodeError, Limits, Thread};

/// Information that a source lacks.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The limits on the size of the source.
    pub limits: Limits,
    /// The id of the thread. By default it is the source's id, or an id derived from the source.
    pub thread_id: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The agents of the runs. An entry without run and count applies to every run that no other
    /// entry names.
    pub attribution: Vec<AttributedFields>,
    /// The timestamp for data without one, in RFC 3339.
    pub at: String,
    /// Whether to trust the metadata in this crate's namespace.
    pub trust: Trust,
    /// The major version of `ai` that the source is from: 5, 6 or 7.
    pub ai_sdk: u8,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            thread_id: None,
            title: None,
            attribution: Vec::new(),
            at: "1970-01-01T00:00:00Z".to_owned(),
            trust: Trust::Nothing,
            ai_sdk: 7,
        }
    }
}

/// The agent of a run, as the caller states it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributedFields {
    /// The agent's name.
    pub agent: String,
    /// The agent's id; without one, the id that follows from its name.
    pub agent_id: Option<String>,
    /// The run it was, by its `run_id`.
    pub run_id: Option<String>,
    /// The number of messages that the run added, if no `run_id` shows it.
    pub n_messages: Option<usize>,
}

/// Whether to trust the metadata that messages have in this crate's namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// No: the data comes from a client, which can write anything.
    #[default]
    Nothing,
    /// Yes: the data was stored where no client could change it.
    OwnNamespace,
}

/// Options for writing an archive.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// The major version of `ai` that is written for: 5, 6 or 7.
    pub ai_sdk: u8,
    /// Whether to write data without a place in the target into this crate's namespace, if the
    /// target has one.
    pub namespace: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            ai_sdk: 7,
            namespace: true,
        }
    }
}

/// The reason why a source can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The text is not JSON, or too large.
    #[error(transparent)]
    Json(#[from] DecodeError),
    /// The text is not an archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The text is not a history of Pydantic AI.
    #[error(transparent)]
    PydanticAi(#[from] PydanticAiError),
    /// The text is neither a list of UI messages nor a stream of the AI SDK.
    #[error(transparent)]
    AiSdk(#[from] ai_sdk::AiSdkError),
    /// A source of this kind can't be added to an archive.
    #[error("an archive can't be continued with {0}")]
    Append(&'static str),
}

impl ConvertError {
    /// The JSON Pointer in the source, if the error has one position.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Json(error) => Some(&error.pointer),
            Self::Archive(error) => error.pointer(),
            Self::PydanticAi(error) => Some(error.pointer()),
            Self::AiSdk(error) => error.pointer(),
            Self::Append(_) => None,
        }
    }
}

/// The form of a text, as source or as target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceForm {
    /// An archive.
    Archive,
    /// A history or document of this format.
    Of(Format),
}

impl SourceForm {
    /// The name, as in `loomline convert --from`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Of(format) => format.name(),
        }
    }
}

/// Reads a source into an archive.
pub fn read(
    form: SourceForm,
    text: &str,
    options: &ReadOptions,
) -> Result<Converted<Archive>, ConvertError> {
    Ok(match form {
        SourceForm::Archive => Converted::whole(Archive::decode(text, &options.limits)?),
        SourceForm::Of(Format::Thread) => {
            let thread = Thread::decode_with(text, &options.limits)?;
            Converted::whole(Archive::from_thread(&thread))
        }
        SourceForm::Of(Format::PydanticAi) => Converted::whole(pydantic_ai::read(text, options)?),
        SourceForm::Of(Format::AiSdkUi) => ai_sdk::read_messages(text, options)?,
        SourceForm::Of(Format::AiSdkStream) => ai_sdk::read_stream(text, options)?,
    })
}

/// The losses of an archive that was read from one source, with pointers into that source.
///
/// A pointer without an equivalent in the source, such as one into the archive's root, stays
/// unchanged.
#[must_use]
pub fn in_source(form: SourceForm, archive: &Archive, losses: Vec<Loss>) -> Vec<Loss> {
    let moved = losses.into_iter().map(|Loss { pointer, what }| {
        let pointer = place_in_source(form, archive, &pointer).unwrap_or(pointer);
        Loss { pointer, what }
    });
    moved.collect()
}

fn place_in_source(form: SourceForm, archive: &Archive, pointer: &str) -> Option<String> {
    let (run, rest) = pointer.strip_prefix("/runs/")?.split_once('/')?;
    let before = archive.runs.get(..run.parse().ok()?)?;
    let list = match form {
        // The pointer is one into the source already.
        SourceForm::Archive => return None,
        SourceForm::Of(Format::Thread) => match rest.strip_prefix("root") {
            Some(root) => return Some(root.to_owned()),
            None => "/turns",
        },
        SourceForm::Of(Format::PydanticAi | Format::AiSdkUi | Format::AiSdkStream) => "",
    };
    let rest = rest.strip_prefix("records/")?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (record, rest) = rest.split_at_checked(end)?;
    let before: usize = before.iter().map(|run| run.records.len()).sum();
    let place = before + record.parse::<usize>().ok()?;
    Some(format!("{list}/{place}{rest}"))
}

/// Appends to an archive: a longer history, or the next run.
pub fn append(
    archive: &mut Archive,
    form: SourceForm,
    text: &str,
    options: &ReadOptions,
) -> Result<Vec<Loss>, ConvertError> {
    match form {
        SourceForm::Of(Format::PydanticAi) => {
            pydantic_ai::append(archive, text, options)?;
            Ok(Vec::new())
        }
        SourceForm::Of(Format::AiSdkUi) => Ok(ai_sdk::append_messages(archive, text, options)?),
        SourceForm::Of(Format::AiSdkStream) => Ok(ai_sdk::append_stream(archive, text, options)?),
        SourceForm::Archive | SourceForm::Of(Format::Thread) => {
            Err(ConvertError::Append(form.name()))
        }
    }
}

/// Writes an archive in a form.
pub fn write(form: SourceForm, archive: &Archive, options: &WriteOptions) -> Converted<String> {
    match form {
        SourceForm::Archive => Converted::whole(archive.encode()),
        SourceForm::Of(Format::Thread) => archive.to_thread().map(|thread| thread.encode()),
        SourceForm::Of(Format::PydanticAi) => pydantic_ai::write(archive),
        SourceForm::Of(Format::AiSdkUi) => ai_sdk::write_messages(archive, options),
        SourceForm::Of(Format::AiSdkStream) => ai_sdk::write_stream(archive, options),
    }
}
