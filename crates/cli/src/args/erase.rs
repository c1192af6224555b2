//! The options of `purge` and `storage`.

use clap::Args;
use clap::builder::RangedU64ValueParser;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true)
    .args(["threads", "unchanged_days", "all", "removed"]))]
pub(crate) struct Purge {
    /// The keys or ids of the threads.
    #[arg(value_name = "KEY")]
    pub(crate) threads: Vec<String>,
    /// All threads that have not changed for this number of days.
    #[arg(long, value_name = "N", conflicts_with = "threads",
        value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) unchanged_days: Option<u32>,
    /// All threads, files, other objects and checkpoints of the tenant. Runs are stopped.
    #[arg(long, conflicts_with_all = ["threads", "unchanged_days", "removed"])]
    pub(crate) all: bool,
    /// Keep the threads, and erase their removed messages, removed answers and withdrawn summaries.
    #[arg(long)]
    pub(crate) removed: bool,
    /// Change nothing; print what would be purged.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Purge without confirmation. The command asks only on a terminal. Without one, only named threads are purged
    /// without this option.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Do not write the file anew.
    #[arg(long)]
    pub(crate) no_compact: bool,
    /// The tenant [default: the only tenant].
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// The database [default: that of the tenant]. A tenant that was moved has left its data in its former one.
    #[arg(long, value_name = "NAME")]
    pub(crate) shard: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Storage {
    /// The tenant whose largest threads are listed [default: the only tenant].
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// The key or the id of a thread: only its data is shown.
    #[arg(long, value_name = "KEY")]
    pub(crate) thread: Option<String>,
    /// The database [default: that of the tenant].
    #[arg(long, value_name = "NAME")]
    pub(crate) shard: Option<String>,
    /// The maximum number of threads.
    #[arg(long, default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new())]
    pub(crate) limit: usize,
}
