//! The command line.

mod backup;
mod documents;
mod erase;
mod listen;
#[cfg(test)]
mod reference;
mod threads;
mod versions;

pub(crate) use backup::{Backup, Restore, Tenant};
pub(crate) use documents::{Convert, Form, Going, Hash, LimitOptions, Source, Target, Validate};
pub(crate) use erase::{Purge, Storage};
pub(crate) use listen::Listen;
pub(crate) use threads::{CompactOptions, Threads};
pub(crate) use versions::{
    Attribution, Diff, Downgrade, ForeignTools, Merge, Patch, Render, Unanswered, Upgrade,
};

use crate::environment::is_empty_variable;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use std::path::PathBuf;
use timeline::{Machine as _, ThreadStatus};

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// Run AI agents on durable conversation threads, and convert conversation histories.
#[derive(Debug, Parser)]
#[command(
    name = "loomline",
    version,
    max_term_width = 100,
    after_help = "Examples:
  loomline serve                               a server with an offline demo agent
  loomline serve --model openai/gpt-5-mini     a server with a real model
  loomline run \"Plan a trip to Lima\"           one answer in the terminal
  loomline COMMAND --help                      the options and an example of a command"
)]
pub(crate) struct Arguments {
    /// The data directory [default: the user's data directory].
    ///
    /// It contains the store, its lock and the uploaded files.
    #[arg(long, global = true, help_heading = GLOBAL, env = "LOOMLINE_DATA", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// The configuration file.
    ///
    /// Without a file and without --model, the server runs in development mode with an offline model.
    #[arg(long, global = true, help_heading = GLOBAL, env = "LOOMLINE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print one JSON value per line, for scripts.
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,

    /// Print results, losses and errors only.
    #[arg(long, short, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,

    /// When to print colours.
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,

    /// Log more; -vv logs everything.
    #[arg(long, short, global = true, help_heading = GLOBAL, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// The format of the log on standard error.
    #[arg(long, global = true, help_heading = GLOBAL, env = "LOOMLINE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Reads the command line. If it is wrong, prints the error and ends the program.
    pub(crate) fn read() -> Self {
        let matches = without_empty(Self::command()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The command without the environment variables that are empty.
fn without_empty(command: clap::Command) -> clap::Command {
    let set = |arg: clap::Arg| match arg.get_env() {
        Some(name) if is_empty_variable(name) => arg.env(None::<&'static str>),
        Some(_) | None => arg,
    };
    command.mut_args(set).mut_subcommands(without_empty)
}

/// The format of the log.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve agents and their threads over HTTP.
    #[command(after_help = "Examples:
  loomline serve --open
  OPENAI_API_KEY=... loomline serve --model openai/gpt-5-mini
  loomline serve --config loomline.toml --listen 0.0.0.0:8787")]
    Serve {
        /// The address: a host, a port or both [default: 127.0.0.1:8787, or `listen` of the configuration].
        #[arg(long, alias = "port", env = "LOOMLINE_LISTEN", value_name = "ADDR")]
        listen: Option<Listen>,
        /// Open the web interface in the browser.
        #[arg(long)]
        open: bool,
        #[command(flatten)]
        model: ModelOptions,
    },
    /// Write a configuration file.
    #[command(after_help = "Examples:
  loomline init --model anthropic/claude-sonnet-4-5
  loomline init --model openai/gpt-5-mini --tenant acme --output /etc/loomline/loomline.toml")]
    Init(InitOptions),
    /// Run one prompt on a durable thread and stream the answer.
    #[command(after_help = "Examples:
  loomline run \"Plan a trip to Lima\" --thread trip
  loomline run \"Make it cheaper\" --thread trip
  git diff | loomline run - --model openai/gpt-5-mini")]
    Run(RunOptions),
    /// List, show, fork and delete threads.
    #[command(subcommand)]
    Threads(Threads),
    /// Print the events of a thread, and follow new ones.
    #[command(after_help = "Examples:
  loomline tail support-42
  loomline tail support-42 --after 120 --no-follow
  loomline tail support-42 --check")]
    Tail(TailOptions),
    /// Draw the runs of a thread as a waterfall.
    #[command(after_help = "Examples:
  loomline trace support-42
  loomline trace support-42 --all")]
    Trace(TraceOptions),
    /// Open the web interface of the running server in the browser.
    #[command(after_help = "Examples:
  loomline open
  loomline open support-42")]
    Open {
        /// The key of the thread to show [default: a new chat].
        key: Option<String>,
    },
    /// Find threads by the words of their messages, answers and titles.
    #[command(
        after_help = "Example:\n  loomline search flight to lima --status open --since 2026-01-05T00:00:00Z"
    )]
    Search(SearchOptions),
    /// List and check the configured agents. No model is called.
    #[command(subcommand)]
    Agents(Agents),
    /// Write a thread as a document.
    #[command(after_help = "Example:\n  loomline export --thread support-42 -o support-42.json")]
    Export {
        /// The key of the thread.
        #[arg(long, value_name = "KEY")]
        thread: String,
        /// The format of the output. `thread` is a `ThreadProtocol` 0.0.4 document.
        #[arg(long, value_enum, value_name = "FORMAT", default_value = "thread")]
        to: Exchanged,
        /// The output file, which is written completely or not at all [default: standard output].
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Store tool results of more than 100 KB in this directory, and refer to them.
        ///
        /// Equal results are stored once, also those of other documents.
        #[arg(long, value_name = "DIR")]
        contents: Option<PathBuf>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Read a conversation from a file into a new thread.
    #[command(
        after_help = "Example:\n  loomline import --from pydantic-ai history.json --thread support-42"
    )]
    Import {
        /// The format of the file.
        #[arg(long, value_enum, value_name = "FORMAT")]
        from: Exchanged,
        /// The file, or - for standard input.
        file: PathBuf,
        /// The key of the new thread [default: a new id].
        #[arg(long, value_name = "KEY")]
        thread: Option<String>,
        /// The agent of runs without an agent.
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// The agent of each run: a JSON list of objects with `agent`, `agent_id`, `run_id` and `n_messages`.
        #[arg(long, value_name = "FILE")]
        attribution: Option<PathBuf>,
        /// The directory with the contents that the document refers to.
        #[arg(long, value_name = "DIR")]
        contents: Option<PathBuf>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Convert a history to another format, and list the losses.
    #[command(
        after_help = "Example:\n  loomline convert --from pydantic-ai --to thread history.json -o thread.json"
    )]
    Convert(Convert),
    /// Compare the meaning of two documents. Exits with 0 if it is equal, else with 3.
    #[command(after_help = "Example:\n  loomline diff before.json after.json")]
    Diff(Diff),
    /// Apply a diff to the document that it starts from.
    #[command(
        after_help = "Example:\n  loomline diff a.json b.json --json > diff.json
  loomline patch a.json diff.json -o b.json"
    )]
    Patch(Patch),
    /// Merge two branches of a document. Exits with 3 if there are conflicts.
    #[command(
        after_help = "Example:\n  loomline merge base.json ours.json theirs.json -o merged.json"
    )]
    Merge(Merge),
    /// Convert a document to a later version, and list the changes.
    #[command(after_help = "Example:\n  loomline upgrade old.json -o new.json")]
    Upgrade(Upgrade),
    /// Convert a document to an earlier version, and list the losses.
    #[command(after_help = "Example:\n  loomline downgrade --to 2.0.0 new.json -o old.json")]
    Downgrade(Downgrade),
    /// Write the model messages of a document, as one of its agents sees them.
    #[command(after_help = "Example:\n  loomline render --as editor thread.json")]
    Render(Render),
    /// Check a document.
    #[command(after_help = "Example:\n  loomline validate --strict thread.json")]
    Validate(Validate),
    /// Print the hash of the canonical form of a document.
    #[command(after_help = "Example:\n  loomline hash thread.json")]
    Hash(Hash),
    /// Print the JSON Schema of a document.
    #[command(after_help = "Example:\n  loomline schema 0.0.4 --strict")]
    Schema(crate::schema::Schema),
    /// Check the store and the configuration, and suggest remedies.
    #[command(after_help = "Example:\n  loomline doctor --rebuild")]
    Doctor {
        /// First rebuild the tables and the full-text index from the log. No server may use a store in a file;
        /// with a database, writes wait, and fail after a minute.
        #[arg(long)]
        rebuild: bool,
        /// Compare the threads with a file that `loomline seal` wrote.
        #[arg(long, value_name = "FILE")]
        seal: Option<PathBuf>,
        /// The public key that must have signed the seal, in hexadecimal digits.
        #[arg(long, value_name = "KEY", requires = "seal")]
        seal_key: Option<String>,
    },
    /// Print the chain of sums of a thread's log, and check it.
    #[command(after_help = "Example:\n  loomline prove support-42")]
    Prove(ProveOptions),
    /// Write where the log of each thread ends, to keep it outside the store.
    #[command(after_help = "Example:\n  loomline seal monday.json --sign key.der")]
    Seal(SealOptions),
    /// Create an API key and its hash for the configuration.
    #[command(after_help = "Example:\n  loomline key")]
    Key {
        /// Create an encryption key for the store instead.
        #[arg(long)]
        store: bool,
    },
    /// Encrypt the store, change its key, or decrypt it.
    #[command(after_help = "Example:\n  loomline rekey --new-key-env NEW_STORE_KEY")]
    Rekey(Rekey),
    /// Back up the store into a directory, also while a server uses it.
    ///
    /// The first backup of a directory is full. The next ones have what the backup before them lacks.
    #[command(after_help = "Examples:
  loomline backup /var/backups/loomline
  loomline backup --verify /var/backups/loomline")]
    Backup(Backup),
    /// Make a data directory from backups.
    #[command(after_help = "Examples:
  loomline restore /var/backups/loomline --to /var/lib/loomline
  loomline restore /var/backups/loomline --to /var/lib/loomline --at 2026-01-05T08:00:00Z")]
    Restore(Restore),
    /// Export and import all data of a tenant.
    #[command(subcommand)]
    Tenant(Tenant),
    /// Delete threads or removed messages for good, return their space, and prove that their bytes are gone.
    #[command(after_help = "Examples:
  loomline purge support-42
  loomline purge --unchanged-days 365 --tenant acme --dry-run
  loomline purge --removed
  loomline purge --all --tenant acme --yes")]
    Purge(Purge),
    /// Show what takes the space of the store: by kind, by tenant and by thread.
    #[command(after_help = "Examples:
  loomline storage
  loomline storage --thread support-42")]
    Storage(Storage),
    /// Print completions for a shell.
    #[command(
        after_help = "Example:\n  loomline completions bash > /usr/share/bash-completion/completions/loomline"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command.
    #[command(hide = true)]
    Man {
        /// The folder, which must exist.
        folder: PathBuf,
    },
}

/// A model from the command line instead of a configuration file.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ModelOptions {
    /// The model of the agent `assistant`, instead of a configuration file.
    ///
    /// PROVIDER is openai, anthropic, google, ollama, openrouter or another provider of the configuration.
    /// With --base-url it can be left out.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// The base URL of the provider, or of a server that is compatible with Chat Completions.
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,
    /// The environment variable with the API key [default: that of the provider, such as `OPENAI_API_KEY`].
    #[arg(long, value_name = "VARIABLE", requires = "model")]
    pub(crate) api_key_env: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct InitOptions {
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    /// The instructions of the agent.
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// A tenant with a new API key, so that the server accepts other machines.
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// The file to write.
    #[arg(long, short, value_name = "FILE", default_value = "loomline.toml")]
    pub(crate) output: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TailOptions {
    /// The key of the thread.
    pub(crate) key: String,
    /// Start after the event with this number.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
    /// Stop at the end of the log.
    #[arg(long)]
    pub(crate) no_follow: bool,
    /// Check the events against the state machines, and stop with code 1 at the first error.
    ///
    /// The check begins with the first event of the log, also with --after.
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) whose: Whose,
}

#[derive(Debug, Args)]
pub(crate) struct TraceOptions {
    /// The key of the thread.
    pub(crate) key: String,
    /// The id of the run [default: the last run].
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// All runs of the thread.
    #[arg(long, conflicts_with = "run")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) whose: Whose,
}

#[derive(Debug, Args)]
pub(crate) struct ProveOptions {
    /// The key or the id of the thread.
    pub(crate) thread: String,
    /// The tenant of the thread [default: the only tenant].
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// The database [default: that of the tenant].
    #[arg(long, value_name = "NAME")]
    pub(crate) shard: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SealOptions {
    /// The file to write.
    pub(crate) file: PathBuf,
    /// Sign the seal with this Ed25519 key, a file in PKCS #8 and DER.
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
}

/// The new key of a store. The configuration names the current one.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Rekey {
    /// The environment variable with the new key, which `loomline key --store` creates.
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
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) whose: Whose,
}

#[derive(Debug, Args)]
pub(crate) struct SearchOptions {
    /// The words. One text must contain all of them; the last word may be incomplete.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Only threads whose last run has this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only threads of this status: open, streaming, closed or failed.
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<ThreadStatus>,
    /// Only threads that changed at or after this instant, such as 2026-01-05T08:00:00Z.
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

/// The tenant of the threads, and the server that has them.
#[derive(Debug, Args)]
pub(crate) struct Whose {
    /// The tenant of the threads [default: the only tenant].
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// The URL of the server [default: the server that uses the data directory, if one runs].
    ///
    /// The variable `LOOMLINE_KEY` contains the API key, which determines the tenant. `SSL_CERT_FILE` names a
    /// file with further certificates to trust.
    #[arg(
        long,
        env = "LOOMLINE_SERVER",
        value_name = "URL",
        conflicts_with = "tenant"
    )]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// Check a configuration and show its agents. Exits with 1 if the server can't use it.
    #[command(after_help = "Example:\n  loomline agents check --config loomline.toml")]
    Check,
    /// List the agents, one per line.
    #[command(after_help = "Example:\n  loomline agents list --config loomline.toml")]
    List,
}

/// A format for import and export.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Exchanged {
    /// A `ThreadProtocol` document.
    #[value(alias = "threadprotocol")]
    Thread,
    /// An archive: all imported messages unchanged, and the later ones.
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
