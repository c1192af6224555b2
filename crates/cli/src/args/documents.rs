//! The command lines of the commands that read documents.

use clap::{Args, ValueEnum};
use interop::archive::Format;
use interop::convert;
use std::path::PathBuf;
use thread::Limits;

const LIMITS: &str = "Limits";

/// The format of the input.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The file, or - for standard input [default: standard input].
    #[arg(value_name = "IN")]
    pub(crate) file: Option<PathBuf>,
    /// Read one document per line. This is the default for files that end in .jsonl or .ndjson.
    #[arg(long)]
    pub(crate) jsonl: bool,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
}

/// The limits of a document.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LimitOptions {
    /// Maximum nesting depth of a document: 1 to 1024.
    #[arg(long = "max-depth", value_name = "N", default_value_t = 128, help_heading = LIMITS,
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    depth: u16,
    /// Maximum size of a document, in bytes. K, M and G are powers of 1024.
    #[arg(long = "max-bytes", value_name = "SIZE", default_value = "256M", help_heading = LIMITS, value_parser = size)]
    bytes: usize,
    /// Maximum number of JSON values in a document.
    #[arg(long = "max-values", value_name = "N", default_value = "16M", help_heading = LIMITS, value_parser = size)]
    values: usize,
}

impl LimitOptions {
    pub(crate) fn limits(self) -> Limits {
        Limits {
            max_depth: self.depth.into(),
            max_bytes: self.bytes,
            max_nodes: self.values,
        }
    }
}

/// A number, with or without K, M or G.
fn size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (text.get(..text.len() - 1), 10),
        Some(b'M' | b'm') => (text.get(..text.len() - 1), 20),
        Some(b'G' | b'g') => (text.get(..text.len() - 1), 30),
        _ => (Some(text), 0),
    };
    let number = digits.and_then(|digits| digits.parse::<usize>().ok());
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|number| *number > 0)
        .ok_or_else(|| "expected a number such as 1000, 64K, 256M or 1G".to_owned())
}

/// The output.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The output file, which is written completely or not at all [default: standard output].
    #[arg(long, short, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

/// The reaction to a line that is not valid.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Going {
    /// With lines: report invalid lines, leave them out and continue.
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// The names of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// An archive, which has the source unchanged.
    Archive,
    /// A `ThreadProtocol` document.
    Thread,
    /// Pydantic AI's message history.
    PydanticAi,
    /// Messages of the AI SDK's user interface.
    AiSdkUi,
    /// A UI message stream of the AI SDK.
    AiSdkStream,
}

impl Form {
    pub(crate) fn of(self) -> convert::SourceForm {
        match self {
            Self::Archive => convert::SourceForm::Archive,
            Self::Thread => convert::SourceForm::Of(Format::Thread),
            Self::PydanticAi => convert::SourceForm::Of(Format::PydanticAi),
            Self::AiSdkUi => convert::SourceForm::Of(Format::AiSdkUi),
            Self::AiSdkStream => convert::SourceForm::Of(Format::AiSdkStream),
        }
    }
}

/// `loomline convert`.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// The format of the input.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) from: Form,
    /// The format of the output.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Form,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) target: Target,
    /// If there are losses, write nothing and exit with 3.
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) going: Going,
    /// The id of the thread [default: the id in the source, or an id derived from it].
    #[arg(long, value_name = "ID")]
    pub(crate) thread_id: Option<String>,
    /// The title of the thread.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// The agent of runs without an agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The agent of each run: a JSON list of objects with `agent`, `agent_id`, `run_id` and `n_messages`.
    #[arg(long, value_name = "FILE")]
    pub(crate) attribution: Option<PathBuf>,
    /// The timestamp of messages without one, in RFC 3339.
    #[arg(long, value_name = "TIMESTAMP", default_value = "1970-01-01T00:00:00Z", value_parser = instant)]
    pub(crate) at: String,
    /// Trust the parts in Loomline's namespace. Use it only if no client can have changed them.
    #[arg(long)]
    pub(crate) trust_namespace: bool,
    /// Write no parts in Loomline's namespace; data without another form is lost.
    #[arg(long)]
    pub(crate) no_namespace: bool,
    /// The major version of the AI SDK.
    #[arg(long, value_name = "VERSION", default_value_t = 7, value_parser = clap::value_parser!(u8).range(5..=7))]
    pub(crate) ai_sdk: u8,
    /// Append to this archive; the input is either the new run or the whole history.
    #[arg(long, value_name = "ARCHIVE", conflicts_with = "jsonl")]
    pub(crate) onto: Option<PathBuf>,
}

fn instant(text: &str) -> Result<String, String> {
    let parsed = text.parse::<jiff::Timestamp>();
    parsed
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// `loomline validate`.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The format of the document. Documents of formats other than `thread` are valid if they can be read.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "thread")]
    pub(crate) format: Form,
    /// Check the rules for writers, not only those for readers.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Report timestamps out of order as errors.
    #[arg(long)]
    pub(crate) deny_timestamps: bool,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// `loomline hash`.
#[derive(Debug, Args)]
pub(crate) struct Hash {
    /// Leave out `data-sys-*` events.
    #[arg(long)]
    pub(crate) without_sys: bool,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) going: Going,
}
