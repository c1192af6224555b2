//! Any format into an archive, an archive into any format, by name.

use crate::archive::{Archive, ArchiveError, Format};
use crate::pydantic_ai::PydanticAiError;
use crate::{Converted, Loss, ai_sdk, pydantic_ai};
use thread::{DecodeError, Limits, Thread};

/// What a source does not say of itself.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// How large the source may be.
    pub limits: Limits,
    /// The id of the thread; without one, what the source says, or an id that follows from it.
    pub thread_id: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// Who ran. An entry without run and count stands for every run that no other entry names.
    pub attribution: Vec<AttributedFields>,
    /// The instant of what has none, in RFC 3339.
    pub at: String,
    /// Whether what a message carries in our namespace is believed.
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

/// Which agent a run was, said by the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributedFields {
    /// The agent's name.
    pub agent: String,
    /// The agent's id; without one, the id that follows from its name.
    pub agent_id: Option<String>,
    /// The run it was, by its `run_id`.
    pub run_id: Option<String>,
    /// How many messages the run added, where no `run_id` tells.
    pub n_messages: Option<usize>,
}

/// Whether what a message carries in our namespace is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// No: it comes from a client, who can have written anything.
    #[default]
    Nothing,
    /// Yes: it was kept where no client could change it.
    OwnNamespace,
}

/// How an archive is written.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// The major version of `ai` that is written for: 5, 6 or 7.
    pub ai_sdk: u8,
    /// Whether what the target has no place for travels in our namespace, where there is one.
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

/// Why a source can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// It is no JSON, or too large.
    #[error(transparent)]
    Json(#[from] DecodeError),
    /// It is no archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// It is no history of Pydantic AI.
    #[error(transparent)]
    PydanticAi(#[from] PydanticAiError),
    /// It is no list of UI messages, or no stream of the AI SDK.
    #[error(transparent)]
    AiSdk(#[from] ai_sdk::AiSdkError),
    /// A source of this kind can't be added to an archive.
    #[error("an archive can't be continued with {0}")]
    Append(&'static str),
}

impl ConvertError {
    /// Where in the source, as a JSON pointer, if the error is of one place.
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

/// What a text is, or is to be.
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
/// A place that no source has, such as one of the archive's own root, stays as it is.
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

/// Goes on with an archive: a history that has grown, or the next run.
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
