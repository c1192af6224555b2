//! Encrypting a store, changing its key, and ending its encryption.

use super::connection::{exists, lock, reading, sibling};
use super::error::{failed, statement};
use super::key::{self, StoreKey, supported};
use super::{check, migrations, schema};
use crate::private;
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::StoreError;

/// Replaces a store by a copy with another key, or with none. Blocks while it reads the store twice and
/// writes it once.
///
/// The copy is checked before it gets the store's name. An error or a crash before that leaves the store
/// unchanged. The disk needs room for both.
///
/// Returns the copies that migrations left next to the store; they are not re-encrypted.
///
/// # Errors
///
/// [`StoreError::InUse`] if another process serves or reads it, [`StoreError::Key`] if `from` does not
/// fit or there is no encryption in this program, [`StoreError::Damaged`] if the store is not sound or
/// is of another version, [`StoreError::Failed`] if the disk fails.
pub fn rekey(
    path: &Path,
    from: Option<&StoreKey>,
    to: Option<&StoreKey>,
) -> Result<Vec<PathBuf>, StoreError> {
    supported()?;
    let _lock = lock(path)?;
    exists(path)?;
    // A link stays one: what it leads to is replaced.
    let file = std::fs::canonicalize(path).map_err(failed)?;
    let directory = file.parent().unwrap_or(Path::new("/"));
    let directory = File::open(directory).map_err(failed)?;
    let left = backups(path).map_err(failed)?;
    let copy = Copy::new(&file)?;
    let store = alone(&file, from)?;
    copy.fill(&store, to)?;
    copy.look_over(to)?;
    // That the old file has no write-ahead log is on the disk before the new one has its name.
    directory.sync_all().map_err(failed)?;
    std::fs::rename(&copy.0, &file).map_err(failed)?;
    // Nobody was let in until now.
    drop(store);
    match directory.sync_all() {
        Ok(()) => Ok(left),
        Err(error) => Err(failed(Error::other(format!(
            "the key was changed, but whether that outlives a power failure is not known: {error}"
        )))),
    }
}

/// Deletes the copy that an interrupted [`rekey`] left. The caller must hold the store's [lock](lock).
pub(super) fn clear(path: &Path) -> Result<(), StoreError> {
    let Ok(file) = std::fs::canonicalize(path) else {
        return Ok(());
    };
    match std::fs::remove_file(sibling(&file, COPY)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

const COPY: &str = "rekey";

/// Opens the old file exclusively for the lifetime of the connection, and removes its write-ahead log.
/// Its name will soon belong to the copy, to which SQLite must not apply this log.
fn alone(path: &Path, key: Option<&StoreKey>) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = key::opened(path, flags, key)?;
    schema::known(&conn, migrations::MIGRATIONS)?;
    conn.busy_timeout(Duration::from_secs(5))
        .map_err(statement)?;
    // The order in which tables are copied knows nothing of the links between them.
    conn.pragma_update(None, "foreign_keys", false)
        .map_err(statement)?;
    let mode: Result<String, _> =
        conn.query_row("PRAGMA journal_mode=DELETE", [], |row| row.get(0));
    let alone = conn.execute_batch("PRAGMA main.locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;");
    match (mode, alone) {
        (Ok(mode), Ok(())) if mode == "delete" => Ok(conn),
        _ => Err(StoreError::InUse(path.display().to_string())),
    }
}

/// The new file, deleted if it does not replace the old one.
struct Copy(PathBuf);

impl Copy {
    /// Creates an empty file with the owner and the permissions of the old one.
    fn new(file: &Path) -> Result<Self, StoreError> {
        clear(file)?;
        let old = std::fs::metadata(file).map_err(failed)?;
        let copy = Self(sibling(file, COPY));
        let new = private::options()
            .write(true)
            .create_new(true)
            .open(&copy.0)
            .map_err(failed)?;
        new.set_permissions(old.permissions()).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            if old.nlink() > 1 {
                let what = "the file has another name, under which it would stay as it is: remove the other hard links";
                return Err(failed(Error::other(what)));
            }
            let mine = new.metadata().map_err(failed)?;
            if (mine.uid(), mine.gid()) != (old.uid(), old.gid()) {
                fchown(&new, Some(old.uid()), Some(old.gid())).map_err(failed)?;
            }
        }
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
            .execute_batch("PRAGMA copy.auto_vacuum=INCREMENTAL; PRAGMA copy.journal_mode=OFF; PRAGMA copy.synchronous=OFF;")
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
        File::open(&self.0)
            .and_then(|file| file.sync_all())
            .map_err(failed)
    }

    fn look_over(&self, key: Option<&StoreKey>) -> Result<(), StoreError> {
        let findings = check::check(&reading(&self.0, key)?)?;
        if findings.is_empty() {
            return Ok(());
        }
        let findings: Vec<_> = findings.iter().map(ToString::to_string).collect();
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

pub(super) fn backups(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    let prefix = sibling(path, "backup-v");
    let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory.unwrap_or(Path::new(".")))? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(prefix) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
