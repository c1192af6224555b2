//! The command lines of the commands that compare, merge, translate and render documents.

use super::{Form, Going, LimitOptions, Source, Target};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `loomline diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The first document, or - for standard input.
    #[arg(value_name = "A")]
    pub(crate) from: PathBuf,
    /// The second document, or - for standard input.
    #[arg(value_name = "B")]
    pub(crate) to: PathBuf,
    /// The format of both documents; other formats than `thread` are converted to it first.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "thread")]
    pub(crate) format: Form,
    /// Ignore differences between `data-sys-*` events.
    #[arg(long)]
    pub(crate) without_sys: bool,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
}

/// `loomline patch`.
#[derive(Debug, Args)]
pub(crate) struct Patch {
    /// The document that the diff starts from, or - for standard input.
    #[arg(value_name = "DOCUMENT")]
    pub(crate) document: PathBuf,
    /// The diff, as `loomline diff --json` prints it, or - for standard input.
    #[arg(value_name = "DIFF")]
    pub(crate) diff: PathBuf,
    /// Apply the diff backwards: DOCUMENT is the result of the diff.
    #[arg(long)]
    pub(crate) reverse: bool,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
}

/// `loomline merge`.
#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// The common ancestor.
    #[arg(value_name = "BASE")]
    pub(crate) base: PathBuf,
    /// One branch. If both branches add entries at one position, these come first.
    #[arg(value_name = "OURS")]
    pub(crate) ours: PathBuf,
    /// The other branch.
    #[arg(value_name = "THEIRS")]
    pub(crate) theirs: PathBuf,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Write the conflicts to this file, as a JSON list [default: print them].
    #[arg(long, value_name = "FILE")]
    pub(crate) conflicts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
}

/// `loomline upgrade`.
#[derive(Debug, Args)]
pub(crate) struct Upgrade {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) target: Target,
    /// The version to write.
    #[arg(long, value_name = "VERSION", default_value = "0.0.4", value_parser = ["2.0.0", "0.0.3", "0.0.4"])]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) going: Going,
}

/// `loomline downgrade`.
#[derive(Debug, Args)]
pub(crate) struct Downgrade {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) target: Target,
    /// The version to write.
    #[arg(long, value_name = "VERSION", value_parser = ["2.0.0", "0.0.3", "0.0.4"])]
    pub(crate) to: String,
    /// If there are losses, write nothing and exit with 3.
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) going: Going,
}

/// `loomline render`.
#[derive(Debug, Args)]
pub(crate) struct Render {
    /// The id or the name of the agent that answers next.
    #[arg(long = "as", value_name = "AGENT")]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) target: Target,
    /// How the agent sees the author of a message.
    #[arg(long, value_enum, value_name = "HOW", default_value = "prefix")]
    pub(crate) attribution: Attribution,
    /// The form in which it sees the tool calls of other agents.
    #[arg(long, value_enum, value_name = "HOW", default_value = "show")]
    pub(crate) foreign_tools: ForeignTools,
    /// The treatment of calls without an answer.
    #[arg(long, value_enum, value_name = "HOW", default_value = "interrupted")]
    pub(crate) unanswered: Unanswered,
    /// Report omitted and changed parts.
    #[arg(long)]
    pub(crate) report: bool,
    #[command(flatten)]
    pub(crate) going: Going,
}

/// How an agent sees the author of a message.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Attribution {
    /// `{agent:NAME}: ` before each text.
    Prefix,
    /// A member `name` on each response.
    Name,
    /// Quotations in user messages.
    Quoted,
}

/// The form in which an agent sees the tool calls of other agents.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ForeignTools {
    /// Calls and results.
    Show,
    /// A summary of one sentence.
    Summarise,
    /// Nothing.
    Hide,
}

/// The treatment of calls without an answer.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Unanswered {
    /// They are left out together with their response.
    Drop,
    /// They get the result `interrupted`. The agent's own pending calls at the end of a complete last
    /// turn stay open.
    Interrupted,
}
