//! The commands and options of `threads`.

use super::{TailOptions, Whose};
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Threads {
    /// List threads, the last changed first.
    #[command(after_help = "Example:\n  loomline threads list --prefix support-")]
    List {
        /// Only threads whose keys start with this prefix.
        #[arg(long, default_value = "")]
        prefix: String,
        /// The maximum number of results.
        #[arg(long, default_value_t = 50, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
        limit: usize,
        #[command(flatten)]
        whose: Whose,
    },
    /// Show the conversation of a thread.
    #[command(after_help = "Example:\n  loomline threads show support-42")]
    Show {
        /// The key of the thread.
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Print the events of a thread, like `loomline tail`.
    #[command(after_help = "Example:\n  loomline threads tail support-42")]
    Tail(TailOptions),
    /// Create a thread that continues another one from some event. Nothing is copied.
    #[command(after_help = "Example:\n  loomline threads fork support-42 support-43 --at 120")]
    Fork {
        /// The key of the thread.
        key: String,
        /// The key of the new thread [default: a new id].
        new_key: Option<String>,
        /// Fork after the event with this number [default: the end].
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Let a summary replace the older runs when a model reads a thread. Nothing is deleted.
    ///
    /// The summary is a text of yours. Without a text, the command lists the compactions of the thread.
    #[command(
        after_help = "Examples:\n  loomline threads compact support-42 --keep-runs 5 --summary-file summary.txt\n  loomline threads compact support-42 --undo"
    )]
    Compact(CompactOptions),
    /// Draw the branches of a conversation: a thread, its forks, and their forks.
    #[command(after_help = "Example:\n  loomline threads tree support-42")]
    Tree {
        /// The key of one of the threads.
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Delete a thread with all its data.
    #[command(after_help = "Example:\n  loomline threads delete support-42 --yes")]
    Delete {
        /// The key of the thread.
        key: String,
        /// Delete without confirmation. The command asks only on a terminal.
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        whose: Whose,
    },
}

/// The options of `threads compact`.
#[derive(Debug, Args)]
pub(crate) struct CompactOptions {
    /// The key of the thread.
    pub(crate) key: String,
    /// The summary.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["summary_file", "undo"])]
    pub(crate) summary: Option<String>,
    /// Read the summary from a file; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "undo")]
    pub(crate) summary_file: Option<PathBuf>,
    /// The last execution that the summary replaces.
    #[arg(long, value_name = "EXECUTION", group = "cut")]
    pub(crate) through: Option<String>,
    /// The last event that the summary replaces; it ends a run.
    #[arg(long, value_name = "SEQ", group = "cut")]
    pub(crate) event: Option<u64>,
    /// Keep this many finished runs; the summary replaces the older ones [default: 3].
    #[arg(long, value_name = "N", group = "cut")]
    pub(crate) keep_runs: Option<usize>,
    /// Withdraw a compaction.
    #[arg(long, conflicts_with = "cut")]
    pub(crate) undo: bool,
    /// The compaction to withdraw [default: the one that counts].
    #[arg(long, value_name = "ID", requires = "undo")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) whose: Whose,
}
