//! The full-text index: the words of texts and titles, without the texts.
//!
//! To take words out of the index, FTS5 needs the text that brought them in. It is read from the tables and
//! converted again, so [`text_of_content`], [`text_of_part`] and [`spaced`] must not change without a
//! migration that builds the index anew.

pub(super) mod bulk;

use super::blocks::{Blocks, block_of, event_number, event_with_number};
use super::error::statement;
use super::projection::{PartKey, Tables};
use super::search::text_of;
use super::sums::Summing;
use super::value::{count, int};
use crate::durable::{Remedy, StoreFault};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use store::objects::sha256;
use store::search::{spaced, text_of_content, text_of_part};
use store::{StoreError, TenantId};
use timeline::{Item, ItemType, Removed, Seq};

/// The number of a title is that of its thread and this; that of a text is the one of its event.
pub(super) const TITLES: i64 = 1 << 62;

/// The word of a tenant.
pub(super) fn tenant_word(tenant: &TenantId) -> String {
    let hash = sha256(tenant.as_str().as_bytes());
    let mut word = String::from("t");
    for byte in hash.iter().take(8) {
        // Writing to a string can't fail.
        let _ = write!(word, "{byte:02x}");
    }
    word
}

/// The word of a thread.
pub(super) fn thread_word(no: i64) -> String {
    format!("h{no}")
}

/// Texts whose words one commit removes, at most.
pub(super) struct Portion {
    texts: usize,
    /// The text that reaches this number of bytes is the last one.
    bytes: usize,
}

impl Portion {
    /// If each word is looked up.
    pub(super) const LOOKED_UP: Self = Self {
        texts: 16,
        bytes: 64 << 10,
    };
    /// If deletions are only noted.
    pub(super) const NOTED: Self = Self {
        texts: 4096,
        bytes: 1 << 20,
    };
    pub(super) const ALL: Self = Self {
        texts: usize::MAX,
        bytes: usize::MAX,
    };
}

impl Tables<'_> {
    /// Adds the words of a new item.
    pub(super) fn add_item(&self, seq: Seq, item: &Item) -> Result<(), StoreError> {
        let content = item.content.as_ref().filter(|_| self.is_indexed);
        let content = content.filter(|_| item.item_type == ItemType::Message);
        match content.and_then(|content| text_of_content(content.text())) {
            Some(text) => self.add(self.number(seq)?, &text),
            None => Ok(()),
        }
    }

    /// Adds the words of a part's new content.
    pub(super) fn add_part(&self, seq: Seq, part: &str) -> Result<(), StoreError> {
        match text_of_part(part).filter(|_| self.is_indexed) {
            Some(text) => self.add(self.number(seq)?, &text),
            None => Ok(()),
        }
    }

    /// Adds the words of the thread's title.
    pub(super) fn add_title(&self, title: Option<&str>) -> Result<(), StoreError> {
        match title.filter(|_| self.is_indexed) {
            Some(title) => self.add(TITLES.saturating_add(self.thread), title),
            None => Ok(()),
        }
    }

    /// Removes the words of the thread's title, which is still in its row.
    pub(super) fn remove_title(&self) -> Result<(), StoreError> {
        if !self.is_indexed {
            return Ok(());
        }
        let sql = "SELECT title FROM thread_threads WHERE no = ?1";
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let title: Option<String> = select
            .query_row([self.thread], |row| row.get(0))
            .map_err(statement)?;
        match title {
            Some(title) => self.remove(TITLES.saturating_add(self.thread), &title),
            None => Ok(()),
        }
    }

    /// Removes the words of an item or a step.
    pub(super) fn remove_texts(&self, of: &Removed) -> Result<(), StoreError> {
        match of {
            Removed::Item(id) => {
                let sql = format!("{ITEMS} AND i.id = ?2");
                self.remove_all(&sql, params![self.thread, id.as_str()], text_of_content)
            }
            Removed::Step(id) => match self.step_key(id.as_str())? {
                Some(step) => self.remove_parts(step),
                None => Ok(()),
            },
            // Its summary is not searched.
            Removed::Compaction(_) => Ok(()),
        }
    }

    /// Removes the words of a step's parts.
    pub(super) fn remove_parts(
        &self,
        (execution, iteration): (i64, i64),
    ) -> Result<(), StoreError> {
        let sql = format!("{PARTS} AND p.execution_seq = ?2 AND p.iteration = ?3");
        self.remove_all(&sql, [self.thread, execution, iteration], text_of_part)
    }

    /// Removes the words of a part, whose former content is still in its row.
    pub(super) fn remove_part(
        &self,
        (execution, iteration, idx): PartKey,
    ) -> Result<(), StoreError> {
        let sql = format!("{PARTS} AND p.execution_seq = ?2 AND p.iteration = ?3 AND p.idx = ?4");
        let values = params![self.thread, execution, iteration, idx];
        self.remove_all(&sql, values, text_of_part)
    }

    /// Removes the words of some texts of the thread, those after the text with this number. The number of the last one
    /// if there may be more.
    pub(super) fn remove_some(
        &self,
        after: i64,
        portion: &Portion,
    ) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT rowid FROM thread_words WHERE thread_words MATCH ?1 AND rowid > ?2
                   ORDER BY rowid LIMIT ?3";
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let scope = format!("scope : {}", thread_word(self.thread));
        let values = params![scope, after, int(portion.texts as u64)];
        let rows = select
            .query_map(values, |row| row.get(0))
            .map_err(statement)?;
        let ids: Vec<i64> = rows.collect::<Result<_, _>>().map_err(statement)?;
        let mut bytes: usize = 0;
        for id in &ids {
            if *id >= TITLES {
                self.remove_title()?;
                continue;
            }
            let event = event_with_number(self.conn, *id)?;
            let text = event.and_then(|(.., event)| text_of(event).1);
            let text = text.unwrap_or_default();
            self.remove(*id, &text)?;
            bytes = bytes.saturating_add(text.len());
            if bytes >= portion.bytes {
                return Ok(Some(*id));
            }
        }
        Ok(ids.last().copied().filter(|_| ids.len() == portion.texts))
    }

    /// Adds the words of the thread that the index lacks.
    pub(super) fn add_missing(&self) -> Result<(), StoreError> {
        self.each_text(|id, text| {
            if has(self.conn, id)? {
                return Ok(());
            }
            self.add(id, text)
        })
    }

    /// The number and the text of everything in the thread that can be found.
    fn each_text(
        &self,
        mut with: impl FnMut(i64, &str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = "SELECT title FROM thread_threads WHERE no = ?1 AND title IS NOT NULL";
        let title = self.one(sql, [self.thread], |row| row.get::<_, String>(0))?;
        if let Some(title) = title {
            with(TITLES.saturating_add(self.thread), &title)?;
        }
        let there = "AND NOT EXISTS (SELECT 1 FROM thread_removals r
            WHERE r.thread_no = ?1 AND r.target";
        let items = format!("{ITEMS} {there} = 'item ' || i.id)");
        self.each(&items, [self.thread], text_of_content, &mut with)?;
        let parts = format!("{PARTS} {there} = 'step ' || s.id)");
        self.each(&parts, [self.thread], text_of_part, &mut with)
    }

    fn remove_all(
        &self,
        sql: &str,
        values: impl Params,
        read: fn(&str) -> Option<String>,
    ) -> Result<(), StoreError> {
        if !self.is_indexed {
            return Ok(());
        }
        self.each(sql, values, read, &mut |id, text| self.remove(id, text))
    }

    fn each(
        &self,
        sql: &str,
        values: impl Params,
        read: fn(&str) -> Option<String>,
        with: &mut dyn FnMut(i64, &str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let text = |row: &Row<'_>| {
            let index = row.get::<_, i64>(1)?;
            let id = event_number(row.get(0)?, count(index));
            Ok((id, read(row.get_ref(2)?.as_str()?)))
        };
        let rows = select.query_map(values, text).map_err(statement)?;
        for row in rows {
            if let (id, Some(text)) = row.map_err(statement)? {
                with(id, &text)?;
            }
        }
        Ok(())
    }

    /// The number of an event of the append.
    pub(super) fn number(&self, seq: Seq) -> Result<i64, StoreError> {
        let lost = || StoreError::Damaged(format!("event {seq} is in none of the blocks"));
        self.blocks.number(seq).ok_or_else(lost)
    }

    fn scope(&self) -> Result<String, StoreError> {
        let sql = "SELECT tenant FROM thread_threads WHERE no = ?1";
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let tenant: String = select
            .query_row([self.thread], |row| row.get(0))
            .map_err(statement)?;
        let tenant = tenant_word(&tenant.as_str().into());
        Ok(format!("{tenant} {}", thread_word(self.thread)))
    }

    // With values and not with a selection: a statement that may change several rows makes FTS5 write what
    // it has gathered.
    fn add(&self, id: i64, text: &str) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_words (rowid, scope, text) VALUES (?1, ?2, ?3)";
        self.run(sql, params![id, self.scope()?, spaced(text)])
    }

    // FTS5 damages its index if it is to remove what it does not have.
    fn remove(&self, id: i64, text: &str) -> Result<(), StoreError> {
        if !has(self.conn, id)? {
            return Ok(());
        }
        let sql = "INSERT INTO thread_words (thread_words, rowid, scope, text)
                   VALUES ('delete', ?1, ?2, ?3)";
        self.run(sql, params![id, self.scope()?, spaced(text)])
    }
}

// The block, the place of the event in it, and the JSON.
const ITEMS: &str = "SELECT b.id, i.seq - b.first,
        CAST(substr(b.body, i.content_offset + 1, i.content_length) AS TEXT)
    FROM thread_items i JOIN thread_blocks b ON b.id = i.block
    WHERE i.thread_no = ?1 AND i.type = 0 AND i.content_offset IS NOT NULL";

const PARTS: &str = "SELECT b.id, p.seq - b.first,
        CAST(substr(b.body, p.part_offset + 1, p.part_length) AS TEXT)
    FROM thread_parts p JOIN thread_blocks b ON b.id = p.block
    JOIN thread_steps s ON s.thread_no = p.thread_no AND s.execution_seq = p.execution_seq
        AND s.iteration = p.iteration
    WHERE p.thread_no = ?1 AND p.type IN ('input_text', 'output_text')";

/// Whether the index has a text with this number.
fn has(conn: &Connection, id: i64) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM thread_words_docsize WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    select.exists([id]).map_err(statement)
}

/// Makes FTS5 drop what this connection has cached of the index. Each search does it, but the database's
/// own check does not, and takes an outdated cache for damage.
pub(super) fn refresh(conn: &Connection) -> Result<(), StoreError> {
    let sql = "SELECT 1 FROM thread_words WHERE thread_words MATCH 'scope : h0'";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    select.exists([]).map_err(statement)?;
    Ok(())
}

/// Empties the index.
pub(super) fn clear(conn: &Connection) -> Result<(), StoreError> {
    let sql = "INSERT INTO thread_words (thread_words) VALUES ('delete-all')";
    conn.execute(sql, []).map_err(statement)?;
    Ok(())
}

/// Makes the table with every word of the index and where it is, for this connection alone.
pub(super) fn prepare(conn: &Connection) -> Result<(), StoreError> {
    let query_only: bool = conn
        .pragma_query_value(None, "query_only", |row| row.get(0))
        .map_err(statement)?;
    let set = |on: bool| {
        conn.pragma_update(None, "query_only", on)
            .map_err(statement)
    };
    set(false)?;
    let made = conn.execute_batch(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.word_places USING fts5vocab('main', 'thread_words', 'instance')",
    );
    set(query_only)?;
    made.map_err(statement)
}

/// A sum of words and their places that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WordSum(u128);

/// Maximum number of texts that are indexed at a time to compare them.
const COMPARED: usize = 1000;

/// Adds the words of an index to the sums of their threads.
fn sum_words(
    conn: &Connection,
    mut thread_of: impl FnMut(i64) -> Result<i64, StoreError>,
    sums: &mut BTreeMap<i64, WordSum>,
) -> Result<(), StoreError> {
    let sql = "SELECT term, doc, col, offset FROM temp.word_places";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let doc = row.get(1).map_err(statement)?;
        let term = row.get_ref(0).map_err(statement)?;
        let col = row.get_ref(2).map_err(statement)?;
        let sum = Summing::of("thread_words")
            .bytes(term.as_bytes().unwrap_or_default())
            .int(doc)
            .bytes(col.as_bytes().unwrap_or_default())
            .int(row.get(3).map_err(statement)?)
            .end();
        let of_thread = sums.entry(thread_of(doc)?).or_default();
        of_thread.0 = of_thread.0.wrapping_add(u128::from_le_bytes(sum));
    }
    Ok(())
}

/// Adds what is missing in the index, and what should not be there: builds the index of each thread's texts again.
pub(super) fn check(
    conn: &Connection,
    scratch: &Connection,
    found: &mut Vec<StoreFault>,
) -> Result<(), StoreError> {
    let sql = "SELECT thread_no FROM thread_blocks WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let mut sums = BTreeMap::new();
    let thread_of = |doc: i64| {
        if doc >= TITLES {
            return Ok(doc.saturating_sub(TITLES));
        }
        let no = select.query_row([block_of(doc)], |row| row.get(0));
        Ok(no.optional().map_err(statement)?.unwrap_or(-1))
    };
    sum_words(conn, thread_of, &mut sums)?;
    clear(scratch)?;
    let mut n_indexed: i64 = 0;
    for no in numbers(conn)? {
        let (mut n_missing, mut n_texts): (u64, usize) = (0, 0);
        let mut expected = BTreeMap::new();
        let none = Blocks::default();
        let tables = Tables::of(conn, no, &none);
        let scope = tables.scope()?;
        tables.each_text(|id, text| {
            if has(conn, id)? {
                n_indexed += 1;
            } else {
                n_missing += 1;
            }
            let sql = "INSERT INTO thread_words (rowid, scope, text) VALUES (?1, ?2, ?3)";
            let mut insert = scratch.prepare_cached(sql).map_err(statement)?;
            insert
                .execute(params![id, scope, spaced(text)])
                .map_err(statement)?;
            n_texts += 1;
            if n_texts.is_multiple_of(COMPARED) {
                sum_words(scratch, |_| Ok(no), &mut expected)?;
                clear(scratch)?;
            }
            Ok(())
        })?;
        sum_words(scratch, |_| Ok(no), &mut expected)?;
        clear(scratch)?;
        let is_same =
            sums.remove(&no).unwrap_or_default() == expected.remove(&no).unwrap_or_default();
        if n_missing == 0 && is_same {
            continue;
        }
        let sql = "SELECT id FROM thread_threads WHERE no = ?1";
        let thread = conn.query_row(sql, [no], |row| row.get::<_, String>(0));
        let thread = thread.optional().map_err(statement)?.unwrap_or_default();
        let what = if n_missing > 0 {
            format!("{n_missing} of its texts are not in the full-text index")
        } else {
            "the full-text index has other words than its texts".to_owned()
        };
        found.push(StoreFault::of_thread(&thread, what, Remedy::Rebuild));
    }
    let sql = "SELECT count(*) FROM thread_words_docsize";
    let n_rows: i64 = conn
        .query_row(sql, [], |row| row.get(0))
        .map_err(statement)?;
    let n_others = n_rows.saturating_sub(n_indexed);
    if n_others > 0 {
        let what = format!("the full-text index has {n_others} texts that no thread has");
        found.push(StoreFault::of_store(what, Remedy::Rebuild));
    } else if !sums.is_empty() {
        let what = "the full-text index has words of texts that no thread has";
        found.push(StoreFault::of_store(what, Remedy::Rebuild));
    }
    Ok(())
}

/// The numbers of all threads.
pub(super) fn numbers(conn: &Connection) -> Result<Vec<i64>, StoreError> {
    let sql = "SELECT no FROM thread_threads ORDER BY no";
    let mut select = conn.prepare(sql).map_err(statement)?;
    let rows = select.query_map([], |row| row.get(0)).map_err(statement)?;
    rows.collect::<Result<_, _>>().map_err(statement)
}
