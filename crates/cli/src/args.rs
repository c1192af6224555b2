//! The command line.

mod documents;
mod listen;
mod versions;

pub(crate) use documents::{Convert, Form, Going, Hash, LimitOptions, Source, Target, Validate};
pub(crate) use listen::Listen;
pub(crate) use versions::{
    Attribution, Diff, Downgrade, ForeignTools, Merge, Patch, Render, Unanswered, Upgrade,
};

use crate::store::is_empty_variable;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use std::path::PathBuf;
use timeline::{Machine as _, ThreadStatus};

/// The record, the durable runtime and the meeting place of AI agent threads.
#[derive(Debug, Parser)]
#[command(name = "loomline", version, max_term_width = 100)]
pub(crate) struct Arguments {
    /// The folder of the store [default: the user's data directory].
    #[arg(
        long,
        global = true,
        help_heading = "Everywhere",
        env = "LOOMLINE_DATA",
        value_name = "DIR"
    )]
    pub(crate) data: Option<PathBuf>,

    /// The configuration file; without one, development mode with an offline model.
    #[arg(
        long,
        global = true,
        help_heading = "Everywhere",
        env = "LOOMLINE_CONFIG",
        value_name = "FILE"
    )]
    pub(crate) config: Option<PathBuf>,

    /// Print JSON, for scripts.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,

    /// Leave out notes and progress. Results, losses and errors stay.
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    pub(crate) quiet: bool,

    /// Whether the output has colours: where a terminal reads, always or never.
    #[arg(
        long,
        global = true,
        help_heading = "Everywhere",
        value_name = "WHEN",
        default_value_t = ColorChoice::Auto
    )]
    pub(crate) color: ColorChoice,

    /// Say more; twice, everything.
    #[arg(long, short, global = true, help_heading = "Everywhere", action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// How what is logged is written to standard error.
    #[arg(
        long,
        global = true,
        help_heading = "Everywhere",
        env = "LOOMLINE_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub(crate) log_format: LogFormat,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Reads the command line, or says what is wrong with it and ends the program.
    pub(crate) fn read() -> Self {
        let matches = without_empty(Self::command()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// A variable that is empty is as good as none.
fn without_empty(command: clap::Command) -> clap::Command {
    let set = |arg: clap::Arg| match arg.get_env() {
        Some(name) if is_empty_variable(name) => arg.env(None::<&'static str>),
        Some(_) | None => arg,
    };
    command.mut_args(set).mut_subcommands(without_empty)
}

/// How what is logged is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// An object a line, for programs.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve threads over HTTP.
    Serve {
        /// Where to listen: an address or a name, a port, or both [default: 127.0.0.1:8787, or what the
        /// configuration says].
        #[arg(long, env = "LOOMLINE_LISTEN", value_name = "ADDR")]
        listen: Option<Listen>,
        /// Open the page in the browser.
        #[arg(long)]
        open: bool,
    },
    /// Run one prompt on a durable thread and stream the answer.
    Run(RunOptions),
    /// Look at threads, fork and delete them.
    #[command(subcommand)]
    Threads(Threads),
    /// Find threads by the words of their messages, answers and titles.
    #[command(
        after_help = "Example:\n  loomline search flight to lima --status open --since 2026-01-05T00:00:00Z"
    )]
    Search(SearchOptions),
    /// Look at the configured agents without calling anyone.
    #[command(subcommand)]
    Agents(Agents),
    /// Write a thread, by default as a `ThreadProtocol` 0.0.4 document.
    Export {
        /// The thread's key.
        #[arg(long, value_name = "KEY")]
        thread: String,
        /// The format of the output.
        #[arg(long, value_enum, value_name = "FORMAT", default_value = "thread")]
        to: Exchanged,
        /// The file to write, whole or not at all [default: standard output].
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Read a conversation from a file into a new thread.
    Import {
        /// The format of the file.
        #[arg(long, value_enum, value_name = "FORMAT")]
        from: Exchanged,
        /// The file, or - for standard input.
        file: PathBuf,
        /// The key of the new thread [default: a new id].
        #[arg(long, value_name = "KEY")]
        thread: Option<String>,
        /// The agent of the runs that name none.
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// The agent of each run: a JSON list of `agent`, `agent_id`, `run_id`, `n_messages`.
        #[arg(long, value_name = "FILE")]
        attribution: Option<PathBuf>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Turn a history of one format into another, and say what was lost.
    Convert(Convert),
    /// Compare two documents by what they mean: exit 0 if they mean the same, 3 if not.
    Diff(Diff),
    /// Apply a diff to the document it was made of.
    Patch(Patch),
    /// Merge two branches of a document; exit 3 if there are conflicts.
    Merge(Merge),
    /// Write a document in a later version, and say what was changed.
    Upgrade(Upgrade),
    /// Write a document in an earlier version, and say what was dropped.
    Downgrade(Downgrade),
    /// Write the model messages of a thread, as one of its agents sees it.
    Render(Render),
    /// Check a document, by default a `ThreadProtocol` one.
    Validate(Validate),
    /// Print the hash of a document's canonical form.
    Hash(Hash),
    /// Print the JSON Schema of a document.
    Schema(crate::schema::Schema),
    /// Check the store and the set-up, and say what to do.
    #[command(after_help = "Example:\n  loomline doctor --rebuild")]
    Doctor {
        /// First rebuild the tables and the full-text index from the log. No server may use the store.
        #[arg(long)]
        rebuild: bool,
    },
    /// Make an API key, and its hash for the configuration.
    Key {
        /// Make a key to encrypt the store with instead.
        #[arg(long)]
        store: bool,
    },
    /// Encrypt the store, change its key, or end its encryption.
    Rekey(Rekey),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The present key is the configuration's.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Rekey {
    /// The environment variable with the new key, as `loomline key --store` makes them.
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) new_key_env: Option<String>,
    /// Leave the store unencrypted.
    #[arg(long)]
    pub(crate) decrypt: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The message, or - to read it from standard input.
    pub(crate) prompt: String,
    /// The thread to continue [default: a new one].
    #[arg(long, value_name = "KEY")]
    pub(crate) thread: Option<String>,
    /// The agent that answers [default: the default agent].
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The maximum number of steps.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    #[command(flatten)]
    pub(crate) whose: Whose,
}

#[derive(Debug, Args)]
pub(crate) struct SearchOptions {
    /// The words, which one text must all have. The last one may be the beginning of a word.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Only threads whose last run is this agent's.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only threads of this status: open, streaming, closed or failed.
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<ThreadStatus>,
    /// Only threads that changed at this instant or later, such as 2026-01-05T08:00:00Z.
    #[arg(long, value_name = "INSTANT")]
    pub(crate) since: Option<Timestamp>,
    /// The maximum number of threads.
    #[arg(long, default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) whose: Whose,
}

fn status(name: &str) -> Result<ThreadStatus, String> {
    let all = ThreadStatus::ALL.iter();
    let found = all.copied().find(|status| status.name() == name);
    found.ok_or_else(|| "expected open, streaming, closed or failed".to_owned())
}

/// Whose threads are meant, and where they are.
#[derive(Debug, Args)]
pub(crate) struct Whose {
    /// Whose threads [default: the only tenant's].
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Ask the server at this URL. `LOOMLINE_KEY` has the key, which says whose threads [default: the server
    /// that serves the data directory, if one does].
    #[arg(
        long,
        env = "LOOMLINE_SERVER",
        value_name = "URL",
        conflicts_with = "tenant"
    )]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Threads {
    /// List threads, the last changed first.
    List {
        /// Only keys that begin so.
        #[arg(long, default_value = "")]
        prefix: String,
        /// The maximum number of results.
        #[arg(long, default_value_t = 50, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
        limit: usize,
        #[command(flatten)]
        whose: Whose,
    },
    /// Show a conversation.
    Show {
        /// The thread's key.
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Print a thread's events, and go on as they come.
    Tail {
        /// The thread's key.
        key: String,
        /// Begin after this event.
        #[arg(long, default_value_t = 0)]
        after: u64,
        /// Stop at the end of the log.
        #[arg(long)]
        no_follow: bool,
        #[command(flatten)]
        whose: Whose,
    },
    /// Make a thread that begins as a copy of another; the copy costs nothing.
    Fork {
        /// The thread's key.
        key: String,
        /// The new thread's key [default: a new id].
        new_key: Option<String>,
        /// Fork after this event [default: the end].
        #[arg(long)]
        at: Option<u64>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Draw the branches of a conversation: a thread, its forks, and theirs.
    Tree {
        /// The key of any of them.
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Delete a thread and everything of it.
    Delete {
        /// The thread's key.
        key: String,
        /// Delete it without asking. Only on a terminal there is a question.
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        whose: Whose,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// Check a configuration, and show what its agents are; exit 1 if it can't be served.
    Check,
    /// List the agents.
    List,
}

/// A format for import and export.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Exchanged {
    /// A `ThreadProtocol` document.
    #[value(alias = "threadprotocol")]
    Thread,
    /// All imported messages unchanged, and the later ones.
    Archive,
    /// Pydantic AI's message history (`all_messages_json()`).
    PydanticAi,
    /// Messages of the AI SDK's user interface.
    AiSdkUi,
}

impl Exchanged {
    /// Its name in the HTTP API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Archive => "archive",
            Self::PydanticAi => "pydantic-ai",
            Self::AiSdkUi => "ai-sdk-ui",
        }
    }

    pub(crate) fn form(self) -> Form {
        match self {
            Self::Thread => Form::Thread,
            Self::Archive => Form::Archive,
            Self::PydanticAi => Form::PydanticAi,
            Self::AiSdkUi => Form::AiSdkUi,
        }
    }
}
