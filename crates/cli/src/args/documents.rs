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
    /// The file, or - for standard input, which it is without one.
    #[arg(value_name = "IN")]
    pub(crate) file: Option<PathBuf>,
    /// Each line is a document, as in files that end in .jsonl or .ndjson.
    #[arg(long)]
    pub(crate) jsonl: bool,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
}

/// How large a document may be.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LimitOptions {
    /// Levels of arrays and objects in a document, at most 1024.
    #[arg(long = "max-depth", value_name = "N", default_value_t = 128, help_heading = LIMITS,
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    depth: u16,
    /// Bytes of a document; K, M and G count in 1024s.
    #[arg(long = "max-bytes", value_name = "SIZE", default_value = "256M", help_heading = LIMITS, value_parser = size)]
    bytes: usize,
    /// Values in a document.
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

/// A number, with K, M or G behind it or not.
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

/// Where documents go.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The file to write, whole or not at all [default: standard output].
    #[arg(long, short, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

/// The reaction to a line that is not valid.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Going {
    /// With lines: report bad ones, leave them out and go on.
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// The names of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Everything that was read, as it was.
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
    /// Write nothing, and exit 3, if anything is lost.
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) going: Going,
    /// The id of the thread [default: what the source says, or what follows from it].
    #[arg(long, value_name = "ID")]
    pub(crate) thread_id: Option<String>,
    /// The title of the thread.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// The agent of the runs that name none.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The agent of each run: a JSON list of `agent`, `agent_id`, `run_id`, `n_messages`.
    #[arg(long, value_name = "FILE")]
    pub(crate) attribution: Option<PathBuf>,
    /// The instant of what has none, in RFC 3339.
    #[arg(long, value_name = "TIMESTAMP", default_value = "1970-01-01T00:00:00Z", value_parser = instant)]
    pub(crate) at: String,
    /// Believe what messages carry in our namespace: no client can have changed them.
    #[arg(long)]
    pub(crate) trust_namespace: bool,
    /// Write nothing in Loomline's namespace; data that the format can't hold is lost.
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
    /// The format of the document. A document of another format than `thread` is valid if it can be read.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "thread")]
    pub(crate) format: Form,
    /// Hold it to what writers must do, not only to what readers can take.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Take breaches of the order of timestamps as errors.
    #[arg(long)]
    pub(crate) deny_timestamps: bool,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// `loomline hash`.
#[derive(Debug, Args)]
pub(crate) struct Hash {
    /// Leave `data-sys-*` events out.
    #[arg(long)]
    pub(crate) without_sys: bool,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) going: Going,
}
