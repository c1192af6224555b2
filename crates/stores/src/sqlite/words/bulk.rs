//! Deletes the words of much text at once.
//!
//! FTS5's `secure-delete` looks up each word to take it out of the index. A deletion in bulk only notes which words are
//! deleted, as FTS5 does without that setting. The index is merged once afterwards, which takes these words out.
//!
//! While noted words wait for the merge, the value of the setting is more than 1, which FTS5 takes as "on" too. Its
//! lower half is the number of deletions in bulk since the last merge. Its upper half is the highest number of a block or
//! a thread that they may have deleted. No new block or thread gets a number up to that one: FTS5 would have its words
//! twice, as deleted and as new, and a look-up would find the new ones only.

use super::super::error::statement;
use super::super::value::count;
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::StoreError;
use timeline::ThreadId;

/// The most pages of the index that one commit writes.
const PAGES: i64 = 256;
/// How long a commit that merges should take.
const STEP: Duration = Duration::from_millis(50);
/// Up to this number of bytes, each word is looked up. It takes about a second.
const FEW: u64 = 256 << 10;
/// Bytes that a merge writes while FTS5 looks up the words of one byte.
const BYTES_MERGED: u64 = 256;
/// Up to this number of texts, the index is made anew from them in place of a merge.
const FEW_TEXTS: i64 = 256;
/// The size of FTS5's pages, in bytes.
const USUAL_PAGE: i64 = 4050;
const SMALLEST_PAGE: i64 = 32;

/// Counts the text that was deleted since the last merge. It decides how the next words are deleted.
#[derive(Debug, Default)]
pub(in super::super) struct DeletedText {
    bytes: AtomicU64,
    /// The bytes of all threads; 0 while it is unknown.
    all: AtomicU64,
}

impl DeletedText {
    /// Whether a deletion of this number of bytes is faster in bulk. `all` counts the bytes of all threads.
    pub(in super::super) async fn exceeds_a_merge(
        &self,
        more: u64,
        all: impl Future<Output = Result<u64, StoreError>>,
    ) -> Result<bool, StoreError> {
        let bytes = self.bytes.load(Ordering::Relaxed).saturating_add(more);
        if bytes <= FEW {
            return Ok(false);
        }
        if self.all.load(Ordering::Relaxed) == 0 {
            self.all.store(all.await?.max(1), Ordering::Relaxed);
        }
        let all = self.all.load(Ordering::Relaxed);
        Ok(bytes.saturating_mul(BYTES_MERGED) > all)
    }

    /// Counts a deletion.
    pub(in super::super) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Starts to count anew.
    pub(in super::super) fn clear(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.all.store(0, Ordering::Relaxed);
    }
}

/// The next number of pages, after a commit that took so long.
pub(in super::super) fn next_pages(pages: i64, took: Duration) -> i64 {
    let next = if took < STEP { pages * 2 } else { pages / 2 };
    next.clamp(1, PAGES)
}

/// The setting of the index: which noted words wait for a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct NotedWords {
    /// The highest number of a block or a thread that may have had them.
    highest: i64,
    /// The deletions in bulk since the last merge, and 1.
    n: i64,
}

impl NotedWords {
    const NONE: Self = Self { highest: 0, n: 1 };
    const HALF: u32 = 32;

    fn of(conn: &Connection) -> Result<Self, StoreError> {
        let sql = "SELECT v FROM thread_words_config WHERE k = 'secure-delete'";
        let mut select = conn.prepare_cached(sql).map_err(statement)?;
        let value: i64 = select.query_row([], |row| row.get(0)).map_err(statement)?;
        Ok(Self {
            highest: value >> Self::HALF,
            n: value & i64::from(i32::MAX),
        })
    }

    fn value(self) -> i64 {
        self.highest << Self::HALF | self.n
    }

    /// The setting after one more deletion in bulk. `None` if the numbers are too high for it.
    fn next(self, conn: &Connection) -> Result<Option<Self>, StoreError> {
        let sql = "SELECT max(coalesce((SELECT max(id) FROM thread_blocks), 0),
                              coalesce((SELECT max(no) FROM thread_threads), 0))";
        let mut select = conn.prepare_cached(sql).map_err(statement)?;
        let highest: i64 = select.query_row([], |row| row.get(0)).map_err(statement)?;
        let next = Self {
            highest: self.highest.max(highest),
            n: self.n + 1,
        };
        let limit = i64::from(i32::MAX);
        Ok((next.highest < limit && next.n < limit).then_some(next))
    }
}

/// The number of a new block. `None` if the next free one will do.
pub(in super::super) fn block_number(conn: &Connection) -> Result<Option<i64>, StoreError> {
    number(conn, "SELECT coalesce(max(id), 0) FROM thread_blocks")
}

/// The number of a new thread. `None` if the next free one will do.
pub(in super::super) fn thread_number(conn: &Connection) -> Result<Option<i64>, StoreError> {
    number(conn, "SELECT coalesce(max(no), 0) FROM thread_threads")
}

fn number(conn: &Connection, last: &str) -> Result<Option<i64>, StoreError> {
    let noted = NotedWords::of(conn)?;
    if noted == NotedWords::NONE {
        return Ok(None);
    }
    let mut select = conn.prepare_cached(last).map_err(statement)?;
    let last: i64 = select.query_row([], |row| row.get(0)).map_err(statement)?;
    Ok(Some(noted.highest.max(last) + 1))
}

/// Does `work`, which only notes the words that it removes from the index. The caller undoes the transaction if it fails.
pub(in super::super) fn noting<T>(
    conn: &Connection,
    work: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let Some(noted) = NotedWords::of(conn)?.next(conn)? else {
        return work();
    };
    // FTS5 writes what it has gathered before each change of the setting.
    set("secure-delete", 0, conn)?;
    let done = work()?;
    set("secure-delete", noted.value(), conn)?;
    Ok(done)
}

/// The noted words, if some wait for a merge.
pub(in super::super) fn waiting(conn: &Connection) -> Result<Option<NotedWords>, StoreError> {
    let noted = NotedWords::of(conn)?;
    Ok((noted != NotedWords::NONE).then_some(noted))
}

/// Whether few texts stay, so that the index is best made anew.
pub(in super::super) fn has_few_texts(conn: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM thread_words_docsize LIMIT ?1)";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let n: i64 = select
        .query_row([FEW_TEXTS + 1], |row| row.get(0))
        .map_err(statement)?;
    Ok(n <= FEW_TEXTS)
}

/// Starts to merge the whole index. A merge at work starts anew.
pub(in super::super) fn start_merge(conn: &Connection) -> Result<(), StoreError> {
    let noted = NotedWords::of(conn)?.value();
    let meanwhile = [
        ("secure-delete", 0),
        ("automerge", 0),
        ("crisismerge", 1000),
    ];
    // No other merge is asked for by a statement, and this one leaves new parts alone.
    let afterwards = [
        ("crisismerge", 16),
        ("automerge", 4),
        ("usermerge", 16),
        ("secure-delete", noted),
    ];
    for (name, value) in meanwhile {
        set(name, value, conn)?;
    }
    spread_over_two_levels(conn)?;
    for (name, value) in afterwards {
        set(name, value, conn)?;
    }
    merge(conn, -1).map(drop)
}

/// Makes the next merge of the whole index write to a level above all others. Only there FTS5 drops the notes of
/// deletions, because below, an older part of the index could have the deleted words.
///
/// FTS5 merges to the next level, which need not be the highest one, if all parts are in the same level. Therefore some
/// of the index is merged to the next level, and a smaller part is added to the lowest one. FTS5 takes parts down to the
/// level of a larger one, but a part with small pages has more of them than the added one.
fn spread_over_two_levels(conn: &Connection) -> Result<(), StoreError> {
    // FTS5 does not merge a part that is alone.
    add_part(conn)?;
    set("pgsz", SMALLEST_PAGE, conn)?;
    merge(conn, -2)?;
    set("pgsz", USUAL_PAGE, conn)?;
    add_part(conn)
}

/// Adds a part with one word to the index, and one with the note that it is deleted.
fn add_part(conn: &Connection) -> Result<(), StoreError> {
    for sql in [
        "INSERT INTO thread_words (rowid, scope, text) VALUES (0, 'h0', '')",
        "INSERT INTO thread_words (thread_words, rowid, scope, text) VALUES ('delete', 0, 'h0', '')",
    ] {
        let mut change = conn.prepare_cached(sql).map_err(statement)?;
        change.execute([]).map_err(statement)?;
    }
    Ok(())
}

/// Continues the merge of the index, and writes about this number of pages. A negative number starts a merge of the
/// whole index. Whether there was something to do.
pub(in super::super) fn merge(conn: &Connection, pages: i64) -> Result<bool, StoreError> {
    let before = conn.total_changes();
    let sql = "INSERT INTO thread_words (thread_words, rank) VALUES ('merge', ?1)";
    let mut merge = conn.prepare_cached(sql).map_err(statement)?;
    merge.execute([pages]).map_err(statement)?;
    // The statement itself counts as one change.
    Ok(conn.total_changes().saturating_sub(before) > 1)
}

/// Ends a merge that these words have waited for. False if others wait since.
pub(in super::super) fn end_merge(
    conn: &Connection,
    merged: NotedWords,
) -> Result<bool, StoreError> {
    let is_last = NotedWords::of(conn)? == merged;
    if is_last {
        set("secure-delete", NotedWords::NONE.value(), conn)?;
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

fn set(name: &str, value: i64, conn: &Connection) -> Result<(), StoreError> {
    let sql = "INSERT INTO thread_words (thread_words, rank) VALUES (?1, ?2)";
    let mut set = conn.prepare_cached(sql).map_err(statement)?;
    let set = set.execute(params![name, value]);
    set.map(drop).map_err(statement)
}

#[cfg(test)]
mod tests {
    use super::super::{clear, prepare};
    use super::*;
    use crate::sqlite::migrations::MIGRATIONS;
    use std::collections::BTreeMap;

    fn index() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        for migration in MIGRATIONS {
            conn.execute_batch(migration).unwrap();
        }
        conn.pragma_update(None, "secure_delete", true).unwrap();
        prepare(&conn).unwrap();
        conn
    }

    fn add(conn: &Connection, id: i64, text: &str) {
        let sql = "INSERT INTO thread_words (rowid, scope, text) VALUES (?1, 'h1', ?2)";
        conn.execute(sql, params![id, text]).unwrap();
    }

    fn remove(conn: &Connection, id: i64, text: &str) {
        let sql = "INSERT INTO thread_words (thread_words, rowid, scope, text) VALUES ('delete', ?1, 'h1', ?2)";
        conn.execute(sql, params![id, text]).unwrap();
    }

    /// Every word and where it is.
    fn words(conn: &Connection) -> Vec<(String, i64, i64)> {
        let sql = "SELECT term, doc, offset FROM temp.word_places ORDER BY 1, 2, 3";
        let mut select = conn.prepare(sql).unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// The bytes of the pages of the index.
    fn pages(conn: &Connection) -> Vec<u8> {
        let mut select = conn.prepare("SELECT block FROM thread_words_data").unwrap();
        let pages = select.query_map([], |row| row.get::<_, Vec<u8>>(0));
        pages.unwrap().flat_map(Result::unwrap).collect()
    }

    fn has(bytes: &[u8], word: &str) -> bool {
        bytes.windows(word.len()).any(|it| it == word.as_bytes())
    }

    /// A word that no other text has, with a beginning that no other word has.
    fn secret(random: &mut fastrand::Rng) -> String {
        std::iter::repeat_with(|| random.lowercase())
            .take(16)
            .collect()
    }

    fn merge_all(conn: &Connection) {
        start_merge(conn).unwrap();
        let mut pages = 1;
        while merge(conn, pages).unwrap() {
            pages = next_pages(pages, Duration::ZERO);
        }
    }

    #[test]
    fn a_merged_index_has_the_words_of_the_texts_that_stay() {
        for seed in 0..30 {
            let mut random = fastrand::Rng::with_seed(seed);
            let conn = index();
            let (mut texts, mut gone) = (BTreeMap::new(), Vec::new());
            let some = |random: &mut fastrand::Rng, texts: &BTreeMap<i64, (String, String)>| {
                let ids: Vec<i64> = texts.keys().copied().collect();
                random.choice(ids)
            };
            for id in 1..400 {
                conn.execute_batch("BEGIN").unwrap();
                match random.u32(0..100) {
                    0..70 => {
                        let secret = secret(&mut random);
                        let common = "some common words ".repeat(random.usize(0..40));
                        let text = format!("{common}{secret} {}", random.u32(0..50));
                        add(&conn, id, &text);
                        texts.insert(id, (text, secret));
                    }
                    70..80 => {
                        if let Some(id) = some(&mut random, &texts) {
                            let (text, secret) = texts.remove(&id).unwrap();
                            remove(&conn, id, &text);
                            gone.push(secret);
                        }
                    }
                    80..95 => noting(&conn, || {
                        for _ in 0..random.u32(1..6) {
                            if let Some(id) = some(&mut random, &texts) {
                                let (text, secret) = texts.remove(&id).unwrap();
                                remove(&conn, id, &text);
                                gone.push(secret);
                            }
                        }
                        Ok(())
                    })
                    .unwrap(),
                    _ => {
                        // Some of it only.
                        merge(&conn, -random.i64(1..4)).unwrap();
                    }
                }
                conn.execute_batch("COMMIT").unwrap();
            }
            let waiting = waiting(&conn).unwrap().unwrap();

            merge_all(&conn);

            assert!(end_merge(&conn, waiting).unwrap());
            conn.execute_batch(
                "INSERT INTO thread_words (thread_words) VALUES ('integrity-check')",
            )
            .unwrap();
            let (found, pages) = (words(&conn), pages(&conn));
            for word in gone {
                assert!(!has(&pages, &word[8..]), "seed {seed}: {word} is left");
            }
            for (_, word) in texts.values() {
                assert!(has(&pages, &word[8..]), "seed {seed}: {word} is lost");
            }
            clear(&conn).unwrap();
            for (id, (text, _)) in &texts {
                add(&conn, *id, text);
            }
            assert_eq!(found, words(&conn), "seed {seed}");
        }
    }

    #[test]
    fn an_index_is_merged_again_and_again() {
        let conn = index();
        for id in 0..200_i64 {
            let secret = secret(&mut fastrand::Rng::with_seed(id.cast_unsigned()));
            add(&conn, 2 * id + 1, &secret);
            add(&conn, 2 * id + 2, "stays");
            noting(&conn, || {
                remove(&conn, 2 * id + 1, &secret);
                Ok(())
            })
            .unwrap();
            merge_all(&conn);
            assert!(!has(&pages(&conn), &secret[8..]), "merge {id}");
        }
    }

    #[test]
    fn words_that_are_only_noted_are_in_the_index_until_it_is_merged() {
        let conn = index();
        add(&conn, 1, "qwertyuiopasdfgh");
        add(&conn, 2, "zxcvbnmlkjhgfdsa");
        noting(&conn, || {
            remove(&conn, 1, "qwertyuiopasdfgh");
            Ok(())
        })
        .unwrap();
        assert_eq!(words(&conn).len(), 2);
        assert!(has(&pages(&conn), "ertyuiopasdfgh"));
        merge_all(&conn);
        assert!(!has(&pages(&conn), "ertyuiopasdfgh"));
        assert!(has(&pages(&conn), "cvbnmlkjhgfdsa"));
    }

    #[test]
    fn a_deletion_during_a_merge_asks_for_another_merge() {
        let conn = index();
        add(&conn, 1, "one");
        add(&conn, 2, "two");
        assert_eq!(waiting(&conn).unwrap(), None);
        let delete = |id, text| {
            noting(&conn, || {
                remove(&conn, id, text);
                Ok(())
            })
        };
        delete(1, "one").unwrap();
        let merged = waiting(&conn).unwrap().unwrap();
        delete(2, "two").unwrap();
        assert!(!end_merge(&conn, merged).unwrap());
        let merged = waiting(&conn).unwrap().unwrap();
        assert!(end_merge(&conn, merged).unwrap());
        assert_eq!(waiting(&conn).unwrap(), None);
    }

    #[tokio::test]
    async fn words_are_looked_up_until_that_takes_as_long_as_a_merge() {
        let deleted = DeletedText::default();
        let is_bulk = async |more| {
            let all = async { Ok(FEW * BYTES_MERGED * 2) };
            deleted.exceeds_a_merge(more, all).await.unwrap()
        };
        assert!(!is_bulk(FEW * 2).await);
        assert!(is_bulk(FEW * 2 + 1).await);
        deleted.add(FEW * 2);
        assert!(is_bulk(1).await);
        deleted.clear();
        assert!(!is_bulk(1).await);
    }

    #[test]
    fn the_setting_has_the_highest_number_and_is_on() {
        let noted = NotedWords {
            highest: 1 << 30,
            n: 7,
        };
        assert_eq!(
            noted.value().to_le_bytes().first_chunk(),
            Some(&7_i32.to_le_bytes())
        );
        let conn = index();
        set("secure-delete", noted.value(), &conn).unwrap();
        assert_eq!(waiting(&conn).unwrap(), Some(noted));
        assert_eq!(block_number(&conn).unwrap(), Some((1 << 30) + 1));
        assert_eq!(thread_number(&conn).unwrap(), Some((1 << 30) + 1));
        assert!(end_merge(&conn, noted).unwrap());
        assert_eq!(waiting(&conn).unwrap(), None);
        assert_eq!(block_number(&conn).unwrap(), None);
    }

    #[test]
    fn a_step_has_fewer_pages_after_a_long_one() {
        assert_eq!(next_pages(1, Duration::ZERO), 2);
        assert_eq!(next_pages(PAGES, Duration::ZERO), PAGES);
        assert_eq!(next_pages(8, STEP), 4);
        assert_eq!(next_pages(1, STEP), 1);
    }
}
