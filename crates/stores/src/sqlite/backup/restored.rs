//! Stores from backups.

use super::BackupError;
use super::apply::{apply, derive};
use super::chain::Chain;
use super::cut::{count_usage, extend};
use super::file::{io, partial, publish, remove};
use super::manifest::{Manifest, StoreCounts};
use super::take::{counts, opened, scratch};
use crate::private;
use crate::sqlite::check;
use crate::sqlite::connection::{lock, reading, sibling};
use crate::sqlite::error::statement;
use crate::sqlite::key::StoreKey;
use crate::sqlite::migrations::MIGRATIONS;
use crate::sqlite::schema;
use jiff::Timestamp;
use rusqlite::config::DbConfig;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use store::StoreError;

/// A restored store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The backup that it is from.
    pub backup: Manifest,
    /// The backup after the instant, from which the events up to it were taken.
    pub events_from: Option<u64>,
    /// The size of the store.
    pub counts: StoreCounts,
}

/// Makes a store at `to` from the last backup, or as it was at an instant. Blocks.
///
/// At an instant, the log has exactly the commits whose events are not after it, as far as there is a backup after
/// it. Objects, checkpoints and deletions are those of the last backup that is not after it.
///
/// # Errors
///
/// [`BackupError::NotEmpty`] if the directory of `to` has files; otherwise [`BackupError`] for the first fault of
/// the backups or of the restored store. There is no store at `to` then.
pub fn restore_backup(
    directory: &Path,
    to: &Path,
    at: Option<Timestamp>,
    key: Option<&StoreKey>,
) -> Result<Restored, BackupError> {
    let chain = Chain::read(directory)?;
    let (backup, next) = match at {
        Some(at) => chain.around(at)?,
        None => (chain.last()?, None),
    };
    let place = to.parent().unwrap_or(Path::new("."));
    private::make_directory(place).map_err(io("make", place))?;
    empty(place, to)?;
    let _lock = lock(to)?;
    // Another restore may have been faster.
    empty(place, to)?;
    let new = partial(to);
    for left in leftovers(&new) {
        remove(&left)?;
    }
    let cut = next.zip(at);
    let counts = into_file(&chain, backup, cut, &new, key)?;
    publish(&new, to)?;
    Ok(Restored {
        backup: backup.clone(),
        events_from: next.map(|next| next.number),
        counts,
    })
}

/// The files of an unfinished restore.
fn leftovers(new: &Path) -> [PathBuf; 4] {
    let named = |suffix: &str| {
        let mut name = new.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    ["", "-wal", "-shm", "-journal"].map(named)
}

/// Refuses a directory with other files than those of an interrupted restore.
fn empty(place: &Path, to: &Path) -> Result<(), BackupError> {
    let mut known = leftovers(&partial(to)).to_vec();
    known.push(sibling(to, "lock"));
    for entry in std::fs::read_dir(place).map_err(io("read", place))? {
        let entry = entry.map_err(io("read", place))?;
        if !known
            .iter()
            .any(|it| it.file_name() == Some(&entry.file_name()))
        {
            return Err(BackupError::NotEmpty(place.to_owned()));
        }
    }
    Ok(())
}

/// Makes the file, and checks it. If that fails, there is no file.
pub(super) fn into_file(
    chain: &Chain,
    backup: &Manifest,
    cut: Option<(&Manifest, Timestamp)>,
    to: &Path,
    key: Option<&StoreKey>,
) -> Result<StoreCounts, BackupError> {
    let made = made(chain, backup, cut, to, key);
    if made.is_err() {
        for left in leftovers(to) {
            // The error at hand says more than that of the deletion.
            let _ = remove(&left);
        }
    }
    made
}

fn made(
    chain: &Chain,
    backup: &Manifest,
    cut: Option<(&Manifest, Timestamp)>,
    to: &Path,
    key: Option<&StoreKey>,
) -> Result<StoreCounts, BackupError> {
    let needed = chain.up_to(backup)?;
    for part in needed.iter().copied().chain(cut.map(|(next, _)| next)) {
        chain.check_file(part)?;
    }
    let (Some(full), increments) = (needed.first(), needed.get(1..).unwrap_or_default()) else {
        return Err(BackupError::None(to.to_owned()));
    };
    let full = chain.file(full);
    std::fs::copy(&full, to).map_err(io("copy", &full))?;
    schema::upgrade(&mut scratch(to, key)?, MIGRATIONS)?;
    if !increments.is_empty() || cut.is_some() {
        let next = cut.map(|(next, at)| (chain.file(next), at));
        let increments = increments.iter().map(|it| chain.file(it));
        // Increments continue backups of their schema only.
        bring_up(to, increments, next, key, backup.schema)?;
    }
    let conn = reading(to, key)?;
    schema::known(&conn, MIGRATIONS)?;
    let found = check::check(&conn)?;
    if !found.is_empty() {
        return Err(BackupError::Unsound(
            found.iter().map(ToString::to_string).collect(),
        ));
    }
    let counts = counts(&conn)?;
    if cut.is_none() && counts != backup.counts {
        let what = format!("it has {counts:?}, and the backup {:?}", backup.counts);
        return Err(BackupError::Unsound(vec![what]));
    }
    Ok(counts)
}

/// Applies increments, and what the next backup has up to an instant.
fn bring_up(
    to: &Path,
    increments: impl Iterator<Item = PathBuf>,
    next: Option<(PathBuf, Timestamp)>,
    key: Option<&StoreKey>,
    schema: u64,
) -> Result<(), StoreError> {
    let conn = scratch(to, key)?;
    // What they count is copied, or counted at the end.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)
        .map_err(statement)?;
    conn.execute_batch("BEGIN").map_err(statement)?;
    let mut changed = BTreeSet::new();
    for increment in increments {
        apply(&conn, &opened(&increment, key)?, &mut changed)?;
    }
    // Their rows have the sums of their schema.
    schema::renew_sums(&conn, schema)?;
    derive(&conn, &changed)?;
    if let Some((next, at)) = next {
        changed.clear();
        extend(&conn, &opened(&next, key)?, at, &mut changed)?;
        derive(&conn, &changed)?;
        // Deriving corrects the sizes of threads.
        count_usage(&conn)?;
    }
    conn.execute_batch("COMMIT").map_err(statement)?;
    Ok(())
}
