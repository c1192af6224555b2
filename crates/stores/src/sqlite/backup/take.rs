//! Takes a backup, also while a server writes.

use super::BackupError;
use super::LOCK;
use super::chain::Chain;
use super::file::{create, io, partial, publish, remove, sum};
use super::manifest::{BackupKind, FORMAT, Manifest, Previous, StoreCounts};
use crate::private;
use crate::sqlite::blocks::Erased;
use crate::sqlite::connection::{exists, lock, reading};
use crate::sqlite::error::statement;
use crate::sqlite::key::{self, StoreKey};
use crate::sqlite::migrations::MIGRATIONS;
use crate::sqlite::schema;
use crate::sqlite::value::count;
use crate::value::hex;
use jiff::Timestamp;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, params};
use sha2::{Digest as _, Sha256};
use std::path::Path;
use store::StoreError;

/// The tables of which an increment has all rows.
pub(super) const WHOLE: [&str; 5] = [
    "thread_threads",
    "thread_tokens",
    "agent_checkpoints",
    "tenant_objects",
    "tenant_usage",
];

/// The tables of which an increment has the new rows.
const GROWING: [&str; 2] = ["thread_blocks", "tenant_contents"];

/// Pages that are copied at once.
const PAGES: i32 = 4096;

/// Adds a backup of a store to a directory: a full one first, increments after it. With `is_full` it is full in
/// any case. Blocks. The store may be served meanwhile; nothing of it is changed.
///
/// # Errors
///
/// [`BackupError::Store`] if the store can't be read or the directory is in use, [`BackupError::Io`] if the
/// directory can't be written.
pub fn back_up(
    store: &Path,
    key: Option<&StoreKey>,
    directory: &Path,
    is_full: bool,
) -> Result<Manifest, BackupError> {
    exists(store)?;
    let from = reading(store, key)?;
    schema::known(&from, MIGRATIONS)?;
    private::make_directory(directory).map_err(io("make", directory))?;
    let _lock = lock(&directory.join(LOCK))?;
    let chain = Chain::read(directory)?;
    chain.clear()?;
    let number = chain.backups().last().map_or(1, |last| last.number + 1);
    let path = Manifest::file(directory, number);
    let new = partial(&path);
    drop(create(&new)?);

    let taken_at = Timestamp::now();
    // One snapshot, which lasts until the rows are copied.
    let snapshot = from.unchecked_transaction().map_err(statement)?;
    let counts = counts(&snapshot)?;
    let schema = version(&snapshot)?;
    let erasures = erasures(&snapshot)?;
    let before =
        continued(&chain, key, schema).filter(|(last, _)| !is_full && last.erasures == erasures);
    let filled = match &before {
        Some((_, before)) => increment(&snapshot, before, &new, key),
        None => full(&snapshot, &new, key),
    };
    drop(snapshot);
    drop(from);
    if let Err(error) = filled {
        remove(&new)?;
        return Err(error.into());
    }
    let (bytes, sha256) = sum(&new)?;
    publish(&new, &path)?;
    let previous = before.map(|(previous, _)| Previous {
        number: previous.number,
        sha256: previous.sha256.clone(),
    });
    let manifest = Manifest {
        format: FORMAT,
        number,
        kind: previous
            .as_ref()
            .map_or(BackupKind::Full, |_| BackupKind::Increment),
        previous,
        taken_at,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        schema,
        encrypted: key.is_some(),
        bytes,
        sha256,
        erasures,
        counts,
    };
    manifest.write(directory)?;
    Ok(manifest)
}

/// The last backup, if an increment can continue it: it has this schema and this key.
fn continued<'a>(
    chain: &'a Chain,
    key: Option<&StoreKey>,
    schema: u64,
) -> Option<(&'a Manifest, Connection)> {
    let last = chain.backups().last()?;
    // What can't be restored is not continued.
    chain.up_to(last).ok()?;
    let path = chain.file(last);
    let is_whole = std::fs::metadata(&path).is_ok_and(|file| file.len() == last.bytes);
    if last.schema != schema || last.encrypted != key.is_some() || !is_whole {
        return None;
    }
    let opened = opened(&path, key).ok()?;
    Some((last, opened))
}

/// A backup's database, for reading.
pub(super) fn opened(path: &Path, key: Option<&StoreKey>) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    key::opened(path, flags, key)
}

/// A database that is thrown away if it is not finished. Nothing in it needs to be undone.
pub(super) fn scratch(path: &Path, key: Option<&StoreKey>) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = key::opened(path, flags, key)?;
    conn.execute_batch(
        "PRAGMA auto_vacuum=INCREMENTAL;
         PRAGMA journal_mode=OFF;
         PRAGMA synchronous=OFF;
         PRAGMA locking_mode=EXCLUSIVE;
         PRAGMA temp_store=MEMORY;
         PRAGMA cache_size=-65536;
         PRAGMA foreign_keys=OFF;",
    )
    .map_err(statement)?;
    conn.set_prepared_statement_cache_capacity(96);
    Ok(conn)
}

/// Copies all pages.
fn full(from: &Connection, to: &Path, key: Option<&StoreKey>) -> Result<(), StoreError> {
    let mut copy = scratch(to, key)?;
    {
        let pages = Backup::new(from, &mut copy).map_err(statement)?;
        // The snapshot is open, so that writers don't make it begin anew.
        while pages.step(PAGES).map_err(statement)? != StepResult::Done {}
    }
    drop(copy);
    // A reader of the backup must not need a write-ahead log.
    let copy = scratch(to, key)?;
    let mode: String = copy
        .query_row("PRAGMA journal_mode=DELETE", [], |row| row.get(0))
        .map_err(statement)?;
    if mode != "delete" {
        return Err(StoreError::InUse(to.display().to_string()));
    }
    Ok(())
}

/// Writes what `before` lacks.
fn increment(
    from: &Connection,
    before: &Connection,
    to: &Path,
    key: Option<&StoreKey>,
) -> Result<(), StoreError> {
    let to = scratch(to, key)?;
    to.execute_batch("BEGIN").map_err(statement)?;
    for table in WHOLE.into_iter().chain(GROWING) {
        let sql = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let sql: String = from
            .query_row(sql, [table], |row| row.get(0))
            .map_err(statement)?;
        to.execute_batch(&sql).map_err(statement)?;
    }
    to.execute_batch(
        "CREATE TABLE kept_contents (no INTEGER PRIMARY KEY, sha256 BLOB NOT NULL) STRICT",
    )
    .map_err(statement)?;
    for table in WHOLE {
        copy(from, &format!("SELECT * FROM {table}"), [], &to, table)?;
    }
    blocks(from, before, &to)?;
    contents(from, before, &to)?;
    to.execute_batch("COMMIT").map_err(statement)
}

/// The blocks that the threads have had since.
fn blocks(from: &Connection, before: &Connection, to: &Connection) -> Result<(), StoreError> {
    let sql = "SELECT no, id, head_seq, sum FROM thread_threads ORDER BY no";
    let mut select = from.prepare(sql).map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let no: i64 = row.get(0).map_err(statement)?;
        let id: String = row.get(1).map_err(statement)?;
        let tail: i64 = row.get(2).map_err(statement)?;
        let sum: Option<[u8; 16]> = row.get(3).map_err(statement)?;
        let after = match ended(before, no, &id)? {
            Some((end, last)) if end == tail && last == sum => continue,
            // A log only grows. Another thread of this number and id has other sums.
            Some((end, last)) if sum_at(from, no, end)? == last => end,
            _ => 0,
        };
        let sql = "SELECT * FROM thread_blocks WHERE thread_no = ?1 AND first > ?2 ORDER BY first";
        copy(from, sql, [no, after], to, "thread_blocks")?;
    }
    Ok(())
}

type Ended = (i64, Option<[u8; 16]>);

/// Where a thread of this number and id ends in a backup.
pub(super) fn ended(conn: &Connection, no: i64, id: &str) -> Result<Option<Ended>, StoreError> {
    let sql = "SELECT head_seq, sum FROM thread_threads WHERE no = ?1 AND id = ?2";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row(params![no, id], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional().map_err(statement)
}

/// The sum of the block that ends with this event.
fn sum_at(conn: &Connection, no: i64, end: i64) -> Result<Option<[u8; 16]>, StoreError> {
    let sql =
        "SELECT sum FROM (SELECT first, n, sum FROM thread_blocks WHERE thread_no = ?1 AND first <= ?2
                            ORDER BY first DESC LIMIT 1)
               WHERE first + n - 1 = ?2";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([no, end], |row| row.get(0));
    found.optional().map_err(statement)
}

/// New contents, and the numbers of those that the store still has.
fn contents(from: &Connection, before: &Connection, to: &Connection) -> Result<(), StoreError> {
    let mut select = from
        .prepare("SELECT no, sha256 FROM tenant_contents")
        .map_err(statement)?;
    let known_before = if has_table(before, "kept_contents")? {
        "SELECT EXISTS (SELECT 1 FROM tenant_contents WHERE no = ?1 AND sha256 = ?2)
             OR EXISTS (SELECT 1 FROM kept_contents WHERE no = ?1 AND sha256 = ?2)"
    } else {
        "SELECT EXISTS (SELECT 1 FROM tenant_contents WHERE no = ?1 AND sha256 = ?2)"
    };
    let mut known = before.prepare(known_before).map_err(statement)?;
    let mut keep = to
        .prepare("INSERT INTO kept_contents (no, sha256) VALUES (?1, ?2)")
        .map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let no: i64 = row.get(0).map_err(statement)?;
        let sha256: [u8; 32] = row.get(1).map_err(statement)?;
        let is_known: bool = known
            .query_row(params![no, sha256], |row| row.get(0))
            .map_err(statement)?;
        if is_known {
            keep.execute(params![no, sha256]).map_err(statement)?;
        } else {
            let sql = "SELECT * FROM tenant_contents WHERE no = ?1";
            copy(from, sql, [no], to, "tenant_contents")?;
        }
    }
    Ok(())
}

/// Whether the database has a table, and so is an increment or not.
pub(super) fn has_table(conn: &Connection, name: &str) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
    conn.query_row(sql, [name], |row| row.get(0))
        .map_err(statement)
}

/// Copies rows to another database. One row at a time is in memory.
pub(super) fn copy(
    from: &Connection,
    select: &str,
    values: impl Params,
    to: &Connection,
    table: &str,
) -> Result<(), StoreError> {
    let mut select = from.prepare_cached(select).map_err(statement)?;
    let columns: Vec<&str> = select.column_names().collect();
    let n = columns.len();
    let places = vec!["?"; n].join(", ");
    let sql = format!(
        "INSERT INTO {table} ({}) VALUES ({places})",
        columns.join(", ")
    );
    let mut insert = to.prepare_cached(&sql).map_err(statement)?;
    let mut rows = select.query(values).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        for index in 0..n {
            let value = row.get_ref(index).map_err(statement)?;
            insert
                .raw_bind_parameter(index + 1, ToSqlOutput::Borrowed(value))
                .map_err(statement)?;
        }
        insert.raw_execute().map_err(statement)?;
    }
    Ok(())
}

/// The SHA-256 of the threads and the digests of all erased blocks; `None` if there are none.
fn erasures(conn: &Connection) -> Result<Option<String>, StoreError> {
    let sql = "SELECT t.id, b.first, b.erased FROM thread_blocks b JOIN thread_threads t ON t.no = b.thread_no
               WHERE b.erased IS NOT NULL ORDER BY b.thread_no, b.first";
    let mut select = conn.prepare(sql).map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    let mut hash = None;
    while let Some(row) = rows.next().map_err(statement)? {
        let id: String = row.get(0).map_err(statement)?;
        let first: i64 = row.get(1).map_err(statement)?;
        let erased: Erased = row.get(2).map_err(statement)?;
        let hash: &mut Sha256 = hash.get_or_insert_default();
        hash.update((id.len() as u64).to_le_bytes());
        hash.update(id);
        hash.update(first.to_le_bytes());
        hash.update(erased);
    }
    Ok(hash.map(|hash| hex(&hash.finalize())))
}

fn version(conn: &Connection) -> Result<u64, StoreError> {
    let version = conn.query_row("PRAGMA user_version", [], |row| row.get(0));
    version.map(count).map_err(statement)
}

/// How much a store has.
pub(super) fn counts(conn: &Connection) -> Result<StoreCounts, StoreError> {
    let sql = "SELECT (SELECT count(*) FROM thread_threads),
                      (SELECT coalesce(sum(head_seq), 0) FROM thread_threads),
                      (SELECT count(*) FROM thread_blocks),
                      (SELECT coalesce(max(id), 0) FROM thread_blocks),
                      (SELECT count(*) FROM thread_tokens),
                      (SELECT count(*) FROM tenant_objects),
                      (SELECT count(*) FROM tenant_contents),
                      (SELECT count(*) FROM agent_checkpoints),
                      (SELECT count(*) FROM thread_blocks WHERE erased IS NOT NULL)";
    conn.query_row(sql, [], |row| {
        Ok(StoreCounts {
            threads: count(row.get(0)?),
            events: count(row.get(1)?),
            blocks: count(row.get(2)?),
            last_block: count(row.get(3)?),
            tokens: count(row.get(4)?),
            objects: count(row.get(5)?),
            contents: count(row.get(6)?),
            checkpoints: count(row.get(7)?),
            erased: count(row.get(8)?),
        })
    })
    .map_err(statement)
}
