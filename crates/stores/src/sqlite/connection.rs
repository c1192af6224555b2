//! Opens and locks the file.

use super::error::{failed, statement};
use super::key::{self, StoreKey};
use super::medium;
use super::rekey;
use crate::durable::OpenMode;
use crate::private;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use store::{Quotas, StoreError};

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct SqliteOptions {
    /// Whether it is served or only looked at.
    pub mode: OpenMode,
    /// How many threads read; by default two a core.
    pub n_readers: Option<NonZeroUsize>,
    /// Size of the writer's page cache, in KiB; 64 MiB by default.
    pub cache_kib: Option<u32>,
    /// The file's encryption key; without it the file is not encrypted.
    pub key: Option<StoreKey>,
    /// How much each tenant may store.
    pub quotas: Quotas,
}

const STATEMENTS: usize = 96;

/// Locks the file for this process, until the lock is dropped or the process ends.
pub(super) fn lock(path: &Path) -> Result<File, StoreError> {
    let file = private::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(sibling(path, "lock"))
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(path.display().to_string())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The files of a store: the database, SQLite's own files, the lock and the copies of former versions.
pub(super) fn files(path: &Path) -> Vec<PathBuf> {
    let named = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let mut files: Vec<PathBuf> = ["", "-wal", "-shm", ".lock"].map(named).into();
    files.extend(rekey::backups(path).unwrap_or_default());
    files
}

/// A file in the store's directory, with the store's name and this suffix.
pub(super) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// The write-ahead log of a database.
pub(super) fn wal(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// The write-ahead log of the database that a path leads to.
pub(super) fn log(path: &Path) -> PathBuf {
    wal(&std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

/// Whether there is a database. Fails if it is missing but its write-ahead log has content.
pub(super) fn exists(path: &Path) -> Result<bool, StoreError> {
    let size = |path: &Path| match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    };
    // A link to a database has its log beside what it leads to.
    let (database, log) = (size(path)?, size(&log(path))?);
    match log {
        Some(bytes) if bytes > 0 && database.unwrap_or_default() == 0 => {
            let path = path.display().to_string();
            Err(StoreError::OrphanedLog { path, bytes })
        }
        _ => Ok(database.is_some()),
    }
}

/// The only connection that writes and checkpoints.
pub(super) fn writing(path: &Path, options: &SqliteOptions) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if options.key.is_some() {
        // Nothing is made by a program that can't encrypt it.
        key::supported()?;
    }
    // SQLite would make it for everybody to read. The files that it makes beside it have its mode.
    private::make_file(path).map_err(failed)?;
    let conn = key::opened(path, flags, options.key.as_ref())?;
    let cache_kib = options.cache_kib.unwrap_or(65_536);
    conn.execute_batch(&format!(
        "PRAGMA busy_timeout=5000;
         PRAGMA auto_vacuum=INCREMENTAL;
         PRAGMA journal_mode=WAL;
         PRAGMA synchronous=FULL;
         PRAGMA fullfsync=1;
         PRAGMA wal_autocheckpoint=16000;
         PRAGMA journal_size_limit=67108864;
         PRAGMA cache_size=-{cache_kib};
         PRAGMA temp_store=MEMORY;
         PRAGMA foreign_keys=ON;
         PRAGMA secure_delete=ON;"
    ))
    .map_err(statement)?;
    prepared(&conn)?;
    Ok(conn)
}

/// A connection that only reads.
pub(super) fn reading(path: &Path, key: Option<&StoreKey>) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match key::opened(path, flags, key) {
        Err(error) if medium::is_read_only(&error) => medium::opened(path, key)?,
        opened => opened?,
    };
    conn.execute_batch(
        "PRAGMA busy_timeout=5000;
         PRAGMA query_only=ON;
         PRAGMA wal_autocheckpoint=0;
         PRAGMA cache_size=-16384;
         PRAGMA temp_store=MEMORY;",
    )
    .map_err(statement)?;
    prepared(&conn)?;
    Ok(conn)
}

fn prepared(conn: &Connection) -> Result<(), StoreError> {
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)
        .map_err(statement)?;
    // Plans never depend on values: a statement that is cached is not planned anew for each.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(statement)?;
    Ok(())
}

/// Two readers a core.
pub(super) fn default_readers() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get() * 2)
}
