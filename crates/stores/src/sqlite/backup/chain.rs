//! The backups of a directory, and which continues which.

use super::BackupError;
use super::file::{io, remove, sum};
use super::manifest::{BackupKind, Manifest, number};
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// The backups of a directory, by number.
#[derive(Debug)]
pub(super) struct Chain {
    directory: PathBuf,
    backups: Vec<Manifest>,
}

impl Chain {
    /// Reads all manifests.
    pub(super) fn read(directory: &Path) -> Result<Self, BackupError> {
        let mut backups = Vec::new();
        for path in entries(directory)? {
            backups.extend(Manifest::read(&path)?);
        }
        backups.sort_by_key(|backup| backup.number);
        Ok(Self {
            directory: directory.to_owned(),
            backups,
        })
    }

    /// Checks that each increment has what it continues.
    pub(super) fn check(&self) -> Result<(), BackupError> {
        for backup in &self.backups {
            self.previous(backup)?;
        }
        Ok(())
    }

    pub(super) fn backups(&self) -> &[Manifest] {
        &self.backups
    }

    pub(super) fn last(&self) -> Result<&Manifest, BackupError> {
        let last = self.backups.last();
        last.ok_or_else(|| BackupError::None(self.directory.clone()))
    }

    /// The file of a backup.
    pub(super) fn file(&self, backup: &Manifest) -> PathBuf {
        Manifest::file(&self.directory, backup.number)
    }

    /// The backup that an increment continues.
    fn previous(&self, backup: &Manifest) -> Result<Option<&Manifest>, BackupError> {
        let damaged = |what: &str| BackupError::Damaged {
            path: self.file(backup),
            what: what.to_owned(),
        };
        let previous = match (&backup.previous, backup.kind) {
            (None, BackupKind::Full) => return Ok(None),
            (Some(previous), BackupKind::Increment) => previous,
            _ => return Err(damaged("its manifest contradicts itself")),
        };
        let found = self.backups.iter().find(|it| it.number == previous.number);
        let found = found.ok_or(BackupError::Missing {
            missing: previous.number,
            number: backup.number,
        })?;
        if found.number >= backup.number || found.sha256 != previous.sha256 {
            return Err(damaged("it continues another backup of this number"));
        }
        Ok(Some(found))
    }

    /// A full backup and its increments, up to this one.
    pub(super) fn up_to<'a>(
        &'a self,
        last: &'a Manifest,
    ) -> Result<Vec<&'a Manifest>, BackupError> {
        let mut all = vec![last];
        let mut at = last;
        while let Some(previous) = self.previous(at)? {
            all.push(previous);
            at = previous;
        }
        all.reverse();
        Ok(all)
    }

    /// The backups that no other one continues.
    pub(super) fn last_of_each(&self) -> impl Iterator<Item = &Manifest> {
        self.backups.iter().filter(|backup| {
            let continues = |it: &Manifest| {
                let previous = it.previous.as_ref();
                previous.is_some_and(|previous| previous.number == backup.number)
            };
            !self.backups.iter().any(continues)
        })
    }

    /// The newest backup not after an instant, and the one after it.
    pub(super) fn around(
        &self,
        at: Timestamp,
    ) -> Result<(&Manifest, Option<&Manifest>), BackupError> {
        self.last()?;
        let index = self.backups.iter().rposition(|it| it.taken_at <= at);
        let around = index.and_then(|index| {
            let base = self.backups.get(index)?;
            Some((base, self.backups.get(index + 1)))
        });
        let first = self.backups.first().map(|first| first.taken_at);
        around.ok_or(BackupError::NoneBefore {
            at,
            first: first.unwrap_or_default(),
        })
    }

    /// Checks the sum of a backup's file.
    pub(super) fn check_file(&self, backup: &Manifest) -> Result<(), BackupError> {
        let path = self.file(backup);
        let (bytes, found) = sum(&path)?;
        if (bytes, &found) == (backup.bytes, &backup.sha256) {
            return Ok(());
        }
        Err(BackupError::Damaged {
            path,
            what: format!(
                "it has {bytes} bytes with the sum {found}, and its manifest says {} and {}",
                backup.bytes, backup.sha256
            ),
        })
    }

    /// Deletes what interrupted backups have left. The caller holds the lock.
    pub(super) fn clear(&self) -> Result<(), BackupError> {
        for path in entries(&self.directory)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_partial = name.contains(".partial") && path.is_file();
            let is_left = number(&path, "db")
                .is_some_and(|left| !self.backups.iter().any(|it| it.number == left));
            if is_partial || is_left {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let failed = || io("read", directory);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed())? {
        found.push(entry.map_err(failed())?.path());
    }
    Ok(found)
}
