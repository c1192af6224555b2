//! Deletes the words of much text at once.
//!
//! FTS5's `secure-delete` looks up each word to take it out of the index. A deletion in bulk only notes which words are
//! deleted, as FTS5 does without that setting. The index is merged once afterwards, which takes these words out.
//! While words wait for that, the value of the setting is more than 1. FTS5 takes each such value as "on".

use super::super::error::statement;
use super::super::value::count;
use rusqlite::{Connection, OptionalExtension};
use std::sync::atomic::{AtomicU64, Ordering};
use store::StoreError;
use timeline::ThreadId;

/// Pages of the index that one commit writes.
const PAGES: i64 = 256;
/// Up to this number of bytes, each word is looked up. It takes about a second.
const FEW: u64 = 256 << 10;
/// A merge writes this number of bytes in the time that a look-up of all words of one byte of text takes.
const BYTES_MERGED: u64 = 64;

/// What was deleted since the index was merged. Up to now it has taken as long as a merge would, at most.
#[derive(Debug, Default)]
pub(in super::super) struct DeletedText {
    bytes: AtomicU64,
    /// The bytes of all threads; 0 while it is unknown.
    all: AtomicU64,
}

impl DeletedText {
    /// Counts a deletion of this number of bytes. Whether the words of all threads have to be counted before
    /// [`are_many`](Self::are_many) can answer.
    pub(in super::super) fn add(&self, bytes: u64) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) > FEW && self.all.load(Ordering::Relaxed) == 0
    }

    /// Sets the bytes of all threads.
    pub(in super::super) fn set_all(&self, bytes: u64) {
        self.all.store(bytes.max(1), Ordering::Relaxed);
    }

    /// Whether the next deletion is faster in bulk.
    pub(in super::super) fn are_many(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let all = self.all.load(Ordering::Relaxed);
        bytes > FEW && bytes.saturating_mul(BYTES_MERGED) > all
    }

    /// Begins to count anew.
    pub(in super::super) fn clear(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.all.store(0, Ordering::Relaxed);
    }
}

/// Does `work`, which only notes the words that it removes from the index.
pub(in super::super) fn noting<T>(
    conn: &Connection,
    work: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let before = setting(conn)?;
    // FTS5 writes what it has gathered before each change of the setting.
    set(conn, 0)?;
    let done = work()?;
    set(conn, before.saturating_add(1))?;
    Ok(done)
}

/// Words that wait for a merge. Another deletion in bulk changes the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct WaitingWords(i64);

/// Whether words wait for a merge.
pub(in super::super) fn waiting(conn: &Connection) -> Result<Option<WaitingWords>, StoreError> {
    let value = setting(conn)?;
    Ok((value > 1).then_some(WaitingWords(value)))
}

/// Merges some of the index. Whether there was something to do.
pub(in super::super) fn merge(conn: &Connection, is_first: bool) -> Result<bool, StoreError> {
    // A negative number begins a merge of the whole index, others continue it.
    let pages = if is_first { -PAGES } else { PAGES };
    let before = conn.total_changes();
    let sql = "INSERT INTO thread_words (thread_words, rank) VALUES ('merge', ?1)";
    let mut merge = conn.prepare_cached(sql).map_err(statement)?;
    merge.execute([pages]).map_err(statement)?;
    // The statement itself counts as one change.
    Ok(conn.total_changes().saturating_sub(before) > 1)
}

/// Ends a merge that has begun when these words waited. False if others wait since.
pub(in super::super) fn end(conn: &Connection, merged: WaitingWords) -> Result<bool, StoreError> {
    let is_last = waiting(conn)? == Some(merged);
    if is_last {
        set(conn, 1)?;
    }
    Ok(is_last)
}

/// The bytes of the log of a thread; 0 if there is none.
pub(in super::super) fn bytes(conn: &Connection, thread: &ThreadId) -> Result<u64, StoreError> {
    let sql = "SELECT bytes FROM thread_threads WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let bytes = select.query_row([thread.as_str()], |row| row.get(0));
    let bytes = bytes.optional().map_err(statement)?;
    Ok(bytes.map_or(0, count))
}

/// The bytes of the logs of all threads.
pub(in super::super) fn all_bytes(conn: &Connection) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(sum(bytes), 0) FROM thread_threads";
    let all = conn.query_row(sql, [], |row| row.get(0));
    all.map(count).map_err(statement)
}

fn setting(conn: &Connection) -> Result<i64, StoreError> {
    let sql = "SELECT v FROM thread_words_config WHERE k = 'secure-delete'";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    select.query_row([], |row| row.get(0)).map_err(statement)
}

fn set(conn: &Connection, value: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO thread_words (thread_words, rank) VALUES ('secure-delete', ?1)";
    let mut set = conn.prepare_cached(sql).map_err(statement)?;
    set.execute([value]).map(drop).map_err(statement)
}
