//! Backups of a store in a directory of their own, and stores from them.
//!
//! A backup is a database and its manifest. A full backup is a copy of the store. An increment has the blocks and
//! contents that the backup before it lacks, and all rows of the small tables. The manifest is written last: a
//! database without one is what an interrupted backup has left.

mod apply;
mod chain;
mod cut;
mod file;
mod manifest;
mod restored;
mod take;

pub use manifest::{BackupKind, Manifest};
pub use restored::{Restored, restore_backup};
pub use take::back_up;

use super::connection::lock;
use super::key::StoreKey;
use crate::private;
use chain::Chain;
use std::path::{Path, PathBuf};
use store::StoreError;

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file failed.
    #[error("can't {what} {path}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The directory has no backup.
    #[error("there is no backup in {0}")]
    None(PathBuf),
    /// Every backup is later than the instant.
    #[error("the first backup is of {first}, after {at}")]
    NoneBefore {
        /// The instant.
        at: jiff::Timestamp,
        /// When the first backup was taken.
        first: jiff::Timestamp,
    },
    /// A backup that another one continues is missing.
    #[error("backup {missing} is missing, and backup {number} continues it")]
    Missing {
        /// The missing backup.
        missing: u64,
        /// The backup that needs it.
        number: u64,
    },
    /// A file is not what was written.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The data directory is in use.
    #[error("{0} is not empty; a restore needs a new or an empty directory")]
    NotEmpty(PathBuf),
    /// The restored store has faults.
    #[error("the restored store is not sound: {}", .0.join("; "))]
    Unsound(Vec<String>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The backups, in order.
    pub backups: Vec<Manifest>,
    /// How many stores were restored and checked: one for each full backup, with its last increment.
    pub n_restored: u64,
}

/// Checks the sums and the order of all backups of a directory. Restores the last backup of each chain into a
/// temporary place in the directory, and checks it. Blocks.
///
/// # Errors
///
/// [`BackupError`] for the first fault.
pub fn verify_backups(directory: &Path, key: Option<&StoreKey>) -> Result<Verified, BackupError> {
    let chain = Chain::read(directory)?;
    let _lock = lock(&directory.join(LOCK))?;
    chain.last()?;
    chain.check()?;
    for backup in chain.backups() {
        chain.check_file(backup)?;
    }
    let place = Scratch::new(directory)?;
    let mut n_restored = 0;
    for last in chain.last_of_each() {
        let to = place.0.join(format!("{:06}.db", last.number));
        restored::into_file(&chain, last, None, &to, key)?;
        file::remove(&to)?;
        n_restored += 1;
    }
    Ok(Verified {
        backups: chain.backups().to_vec(),
        n_restored,
    })
}

/// The name whose lock keeps two backups from writing to one directory.
const LOCK: &str = "backup";

/// A directory that is deleted at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(directory: &Path) -> Result<Self, BackupError> {
        let path = directory.join("verify.partial");
        clear(&path);
        let made = private::make_directory(&path).map_err(file::io("make", &path));
        made.map(|()| Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        clear(&self.0);
    }
}

fn clear(path: &Path) {
    // What stays is cleared by the next one.
    let _ = std::fs::remove_dir_all(path);
}
