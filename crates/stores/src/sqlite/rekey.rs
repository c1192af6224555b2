//! Encrypting a store, changing its key, and ending its encryption.

use super::connection::{beside, lock, reading};
use super::error::{failed, statement};
use super::key::{self, StoreKey, supported};
use super::{check, schema};
use runtime::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Writes a store anew with another key, or with none, in the old one's place. Blocks for as long
/// as it takes to read the store twice and to write it once.
///
/// The new file is looked over before it takes the old one's name; whatever goes wrong, or is
/// killed, before that leaves the store as it was. The disk needs room for both.
///
/// Answers with the copies that migrations left beside the store: they are as they were.
///
/// # Errors
///
/// [`StoreError::InUse`] if another process serves or reads it, [`StoreError::Key`] if `from` does
/// not fit or there is no encryption in this program, [`StoreError::Damaged`] if the store is not
/// sound or is of another version, [`StoreError::Failed`] if the disk fails.
pub fn rekey(
    path: &Path,
    from: Option<&StoreKey>,
    to: Option<&StoreKey>,
) -> Result<Vec<PathBuf>, StoreError> {
    supported()?;
    let _lock = lock(path)?;
    let copy = Copy::new(path)?;
    copy.fill(&alone(path, from)?, to)?;
    copy.look_over(to)?;
    std::fs::rename(&copy.0, path).map_err(failed)?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    sync(directory)?;
    backups(path, directory).map_err(failed)
}

/// Takes away what a [`rekey`] that was killed left; whoever calls has the store's [lock](lock).
pub(super) fn clear(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(beside(path, COPY)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

const COPY: &str = "rekey";

/// The old file, with nothing beside it and nobody else in it: its name is about to be another's,
/// to which no write-ahead log of this one may be applied.
fn alone(path: &Path, key: Option<&StoreKey>) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = key::opened(path, flags, key)?;
    schema::known(&conn, schema::MIGRATIONS)?;
    conn.busy_timeout(Duration::from_secs(5))
        .map_err(statement)?;
    // The order in which tables are copied knows nothing of the links between them.
    conn.pragma_update(None, "foreign_keys", false)
        .map_err(statement)?;
    let mode: Result<String, _> =
        conn.query_row("PRAGMA journal_mode=DELETE", [], |row| row.get(0));
    match mode {
        Ok(mode) if mode == "delete" => Ok(conn),
        _ => Err(StoreError::InUse(path.display().to_string())),
    }
}

/// The new file, taken away when it comes to nothing.
struct Copy(PathBuf);

impl Copy {
    /// An empty file that those may read who may read the old one.
    fn new(path: &Path) -> Result<Self, StoreError> {
        clear(path)?;
        let old = std::fs::metadata(path).map_err(failed)?;
        let copy = Self(beside(path, COPY));
        let file = File::create_new(&copy.0).map_err(failed)?;
        file.set_permissions(old.permissions()).map_err(failed)?;
        Ok(copy)
    }

    /// All of the store, and on the disk.
    fn fill(&self, store: &Connection, key: Option<&StoreKey>) -> Result<(), StoreError> {
        let name = self.0.to_str().ok_or_else(|| {
            failed(Error::other(format!(
                "{} is not a UTF-8 path",
                self.0.display()
            )))
        })?;
        let literal = key.map_or("", StoreKey::literal);
        store
            .execute("ATTACH ?1 AS copy KEY ?2", (name, literal))
            .map_err(statement)?;
        // What is not finished is thrown away, so nothing needs to be undone.
        store
            .execute_batch("PRAGMA copy.journal_mode=OFF; PRAGMA copy.synchronous=OFF;")
            .map_err(statement)?;
        store
            .query_row("SELECT sqlcipher_export('copy')", [], |_| Ok(()))
            .map_err(statement)?;
        for pragma in ["user_version", "application_id"] {
            let value: i64 = store
                .pragma_query_value(Some("main"), pragma, |row| row.get(0))
                .map_err(statement)?;
            store
                .pragma_update(Some("copy"), pragma, value)
                .map_err(statement)?;
        }
        store.execute_batch("DETACH copy").map_err(statement)?;
        sync(&self.0)
    }

    fn look_over(&self, key: Option<&StoreKey>) -> Result<(), StoreError> {
        let findings = check::check(&reading(&self.0, key)?)?;
        if findings.is_empty() {
            return Ok(());
        }
        let findings = findings.join("; ");
        Err(StoreError::Damaged(format!(
            "its copy is not sound: {findings}"
        )))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Gone already when it has taken the store's name.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(failed)
}

fn backups(path: &Path, directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let prefix = beside(path, "backup-v");
    let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(prefix) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
