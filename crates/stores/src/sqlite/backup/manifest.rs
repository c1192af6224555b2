//! The manifest of a backup.

use super::BackupError;
use super::file::{self, create, io, partial, publish};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The form of backups that this program writes and reads.
pub(super) const FORMAT: u32 = 1;

/// The two kinds of backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackupKind {
    /// The whole store.
    Full,
    /// The rows that the backup before it lacks.
    Increment,
}

/// The backup that an increment continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Its number.
    pub number: u64,
    /// The SHA-256 of its file.
    pub sha256: String,
}

/// The description of one backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this form.
    pub format: u32,
    /// The number of the backup, from 1.
    pub number: u64,
    /// The kind.
    pub kind: BackupKind,
    /// The backup that an increment continues.
    pub previous: Option<Previous>,
    /// Everything that was committed before this instant is in the backup.
    pub taken_at: Timestamp,
    /// The version of the program.
    pub program: String,
    /// The version of the store's schema.
    pub schema: u64,
    /// Whether the file is encrypted, with the store's key.
    pub encrypted: bool,
    /// The size of the file.
    pub bytes: u64,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The SHA-256 of which blocks were erased. An increment can't erase what a backup before it has.
    #[serde(default)]
    pub erasures: Option<String>,
    /// The size of the store.
    #[serde(flatten)]
    pub counts: StoreCounts,
}

/// How much a store has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreCounts {
    /// Threads.
    pub threads: u64,
    /// Events.
    pub events: u64,
    /// Blocks.
    pub blocks: u64,
    /// The number of the last block.
    pub last_block: u64,
    /// Tokens.
    pub tokens: u64,
    /// Objects.
    pub objects: u64,
    /// Contents.
    pub contents: u64,
    /// Checkpoints of agents.
    pub checkpoints: u64,
    /// Blocks whose content was erased.
    #[serde(default)]
    pub erased: u64,
}

impl Manifest {
    /// The database of a backup with this number.
    pub(super) fn file(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{number:06}.db"))
    }

    fn path(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{number:06}.json"))
    }

    /// Writes it. From then on the backup counts.
    pub(super) fn write(&self, directory: &Path) -> Result<(), BackupError> {
        let path = Self::path(directory, self.number);
        let new = partial(&path);
        file::remove(&new)?;
        let mut text =
            serde_json::to_string_pretty(self).map_err(|error| io("write", &path)(error.into()))?;
        text.push('\n');
        create(&new)?
            .write_all(text.as_bytes())
            .map_err(io("write", &new))?;
        publish(&new, &path)
    }

    /// Reads the manifest of a file name; `None` if the name is not one of a manifest.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, BackupError> {
        if number(path, "json").is_none() {
            return Ok(None);
        }
        let damaged = |what: String| BackupError::Damaged {
            path: path.to_owned(),
            what,
        };
        let text = std::fs::read_to_string(path).map_err(io("read", path))?;
        let read: Self = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if read.format != FORMAT {
            return Err(damaged(format!(
                "its form has version {}, and this program knows {FORMAT}",
                read.format
            )));
        }
        if number(path, "json") != Some(read.number) {
            return Err(damaged("its number is not that of its name".to_owned()));
        }
        Ok(Some(read))
    }
}

/// The number in a file name of a backup.
pub(super) fn number(path: &Path, extension: &str) -> Option<u64> {
    let is_one = path.extension()?.to_str()? == extension;
    let stem = path.file_stem()?.to_str()?;
    let is_number = stem.len() >= 6 && stem.bytes().all(|digit| digit.is_ascii_digit());
    stem.parse().ok().filter(|_| is_one && is_number)
}
