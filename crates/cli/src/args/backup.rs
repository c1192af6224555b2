//! The options of `backup`, `restore` and `tenant`.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The directory of the backups, which is created.
    pub(crate) directory: PathBuf,
    /// Back up the whole store, although the directory has a backup that could be continued.
    #[arg(long)]
    pub(crate) full: bool,
    /// Back up nothing: check all backups of the directory, and restore them into a temporary place there.
    #[arg(long, conflicts_with = "full")]
    pub(crate) verify: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The directory of the backups.
    pub(crate) directory: PathBuf,
    /// The new data directory. It must not exist or be empty.
    #[arg(long, value_name = "DATA_DIR")]
    pub(crate) to: PathBuf,
    /// Restore the store as it was at this instant, such as 2026-01-05T08:00:00Z [default: the last backup].
    #[arg(long, value_name = "INSTANT")]
    pub(crate) at: Option<Timestamp>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tenant {
    /// Write all data of a tenant as lines of JSON. A server may use the store.
    #[command(after_help = "Example:\n  loomline tenant export acme -o acme.jsonl")]
    Export {
        /// The name of the tenant.
        tenant: String,
        /// The output file, which is written completely or not at all [default: standard output].
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The database [default: that of the tenant].
        #[arg(long, value_name = "NAME")]
        shard: Option<String>,
    },
    /// Read the data of a tenant into the store. No server may use a store in a file.
    #[command(
        after_help = "Example:\n  loomline tenant import acme.jsonl --data /var/lib/loomline"
    )]
    Import {
        /// The file from `loomline tenant export`.
        file: PathBuf,
        /// The database [default: that of the tenant].
        #[arg(long, value_name = "NAME")]
        shard: Option<String>,
    },
    /// Copy the data of a paused tenant into another database, and compare. Servers may use both.
    ///
    /// The former database keeps its data until it is purged there.
    #[command(after_help = "Example:\n  loomline tenant move acme --to big")]
    Move {
        /// The name of the tenant.
        tenant: String,
        /// The shard; `default` is the database of `[store]`.
        #[arg(long, value_name = "SHARD")]
        to: String,
    },
}
