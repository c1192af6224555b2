//! Lines into a store.

use super::TransferError;
use super::line::{
    CheckpointLine, ContentLine, EndLine, EventsLine, FORMAT, Line, ObjectLine, ThreadLine,
    TokenLine, Transferred,
};
use crate::block::{ToStore, one_block, split};
use crate::private;
use crate::sqlite::append;
use crate::sqlite::backup::{hex, unhex};
use crate::sqlite::blocks::{self, Blocks, End};
use crate::sqlite::connection::{SqliteOptions, exists, lock, writing};
use crate::sqlite::error::{making, statement};
use crate::sqlite::migrations::MIGRATIONS;
use crate::sqlite::projection::Tables;
use crate::sqlite::value::{count, instant, int, nanos};
use crate::sqlite::words::bulk;
use crate::sqlite::{checkpoints, objects, rebuild, rekey, schema, sums};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use sha2::{Digest as _, Sha256};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use store::objects::sha256;
use store::{CheckpointRow, Epoch, StoreError, TenantId};
use timeline::{Event, Seq, ThreadId};

/// Reads an export into a store, in one transaction; the store is made if there is none. Ids, numbers, instants,
/// tokens and texts stay as they are. Blocks. One line is in memory.
///
/// # Errors
///
/// [`TransferError::NotWhole`] if the file is cut or changed, [`TransferError::Line`] if a line is wrong,
/// [`StoreError::Duplicate`] if an id is in use, [`StoreError::InUse`] if another process serves the store. Nothing
/// is written then.
pub fn import_tenant(
    store: &Path,
    options: &SqliteOptions,
    from: &mut (impl Read + Seek),
) -> Result<Transferred, TransferError> {
    let expected = whole(from)?;
    from.seek(SeekFrom::Start(0))?;
    if let Some(directory) = store.parent() {
        private::make_directory(directory)?;
    }
    let _lock = lock(store)?;
    exists(store)?;
    rekey::clear(store)?;
    let mut conn = writing(store, options)?;
    schema::migrate(&mut conn, store, MIGRATIONS)?;
    let tx = conn
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(statement)?;
    let mut import = Import::new(&tx);
    let mut lines = BufReader::new(from);
    let mut text = Vec::new();
    while next(&mut lines, &mut text, MAX_LINE)? {
        import.number += 1;
        let line =
            serde_json::from_slice(&text).map_err(|error| import.wrong(error.to_string()))?;
        import.counts.count(&line);
        import.take(line)?;
    }
    import.finish()?;
    let counts = import.counts;
    if counts != expected {
        return Err(TransferError::NotWhole("its last line counts other lines"));
    }
    tx.commit().map_err(statement)?;
    Ok(counts)
}

/// The largest line, in bytes. SQLite stores no larger content.
const MAX_LINE: u64 = 1 << 30;

/// Reads a line of at most `max` bytes without its end. Whether there was one.
fn next(lines: &mut impl BufRead, text: &mut Vec<u8>, max: u64) -> Result<bool, TransferError> {
    text.clear();
    if lines.take(max + 1).read_until(b'\n', text)? == 0 {
        return Ok(false);
    }
    match text.pop() {
        Some(b'\n') => Ok(true),
        _ if text.len() as u64 >= max => Err(TransferError::NotWhole("a line is too long")),
        _ => Err(TransferError::NotWhole("its last line is cut")),
    }
}

/// Compares the lines with what the last one says of them, and returns what that counts.
fn whole(from: &mut impl Read) -> Result<Transferred, TransferError> {
    let mut lines = BufReader::new(from);
    let mut hash = Sha256::new();
    let (mut before, mut text) = (Vec::new(), Vec::new());
    let mut n: u64 = 0;
    while next(&mut lines, &mut text, MAX_LINE)? {
        if n > 0 {
            hash.update(&before);
            hash.update(b"\n");
        }
        n += 1;
        std::mem::swap(&mut before, &mut text);
    }
    let Ok(Line::End(EndLine { counts, sha256 })) = serde_json::from_slice(&before) else {
        return Err(TransferError::NotWhole("its last line is missing"));
    };
    if hex(&hash.finalize()) != sha256 {
        return Err(TransferError::NotWhole(
            "the sum of its lines is not that of its last line",
        ));
    }
    Ok(counts)
}

/// The state of an import.
struct Import<'a> {
    conn: &'a Connection,
    /// The number of the line.
    number: u64,
    counts: Transferred,
    tenant: Option<TenantId>,
    thread: Option<Open>,
    threads: Vec<i64>,
    /// The number of the last change in the tenant's list before the import.
    change: i64,
    is_over: bool,
}

/// The thread whose events are being read.
struct Open {
    line: ThreadLine,
    end: End,
}

impl<'a> Import<'a> {
    fn new(conn: &'a Connection) -> Self {
        Self {
            conn,
            number: 0,
            counts: Transferred::default(),
            tenant: None,
            thread: None,
            threads: Vec::new(),
            change: 0,
            is_over: false,
        }
    }

    fn wrong(&self, what: impl Into<String>) -> TransferError {
        TransferError::Line {
            number: self.number,
            what: what.into(),
        }
    }

    fn take(&mut self, line: Line) -> Result<(), TransferError> {
        if self.is_over {
            return Err(self.wrong("nothing comes after the last line"));
        }
        if self.tenant.is_none() != matches!(line, Line::Tenant(_)) {
            return Err(self.wrong("the first line, and no other, names the tenant"));
        }
        match line {
            Line::Tenant(line) if line.format == FORMAT => {
                let sql = "SELECT coalesce(max(change), 0) FROM thread_threads WHERE tenant = ?1";
                self.change = self
                    .conn
                    .query_row(sql, [&line.name], |row| row.get(0))
                    .map_err(statement)?;
                self.tenant = Some(TenantId::from(line.name.as_str()));
                Ok(())
            }
            Line::Tenant(line) => Err(self.wrong(format!(
                "its form has version {}, and this program knows {FORMAT}",
                line.format
            ))),
            Line::Thread(line) => {
                self.close_thread()?;
                self.open_thread(line)
            }
            Line::Events(line) => self.events(&line),
            Line::Token(line) => self.token(&line),
            Line::Content(line) => {
                self.close_thread()?;
                self.content(&line)
            }
            Line::Object(line) => {
                self.close_thread()?;
                self.object(&line)
            }
            Line::Checkpoint(line) => {
                self.close_thread()?;
                self.checkpoint(line)
            }
            Line::End(_) => {
                self.close_thread()?;
                self.is_over = true;
                Ok(())
            }
        }
    }

    fn tenant(&self) -> Result<&TenantId, TransferError> {
        let missing = || self.wrong("the first line names the tenant");
        self.tenant.as_ref().ok_or_else(missing)
    }

    fn open_thread(&mut self, line: ThreadLine) -> Result<(), TransferError> {
        let tenant = self.tenant()?;
        if let Some(parent) = &line.parent {
            append::owner_of(self.conn, tenant, &ThreadId::from(parent.as_str()))
                .map_err(|_| self.wrong(format!("the parent {parent} is not there")))?;
        }
        if let Some(key) = &line.key {
            let sql = "SELECT 1 FROM thread_threads WHERE tenant = ?1 AND key = ?2";
            let found: Option<i64> = self
                .conn
                .query_row(sql, [tenant.as_str(), key], |row| row.get(0))
                .optional()
                .map_err(statement)?;
            if found.is_some() {
                return Err(StoreError::KeyTaken(key.clone()).into());
            }
        }
        let sum = blocks::seed(tenant.as_str(), &line.id);
        let sql = "INSERT INTO thread_threads
                       (id, tenant, key, status, created_at, updated_at, head_seq, bytes, epoch, sum, change, no)
                   VALUES (?1, ?2, ?3, 'open', ?4, ?4, 0, 0, ?5, ?6, ?7, ?8)";
        let mut insert = self.conn.prepare_cached(sql).map_err(statement)?;
        let no = insert
            .insert(params![
                line.id,
                tenant.as_str(),
                line.key,
                nanos(line.created_at),
                int(Epoch::FIRST.0),
                sum,
                self.change.saturating_add(line.change),
                bulk::thread_number(self.conn)?
            ])
            .map_err(making(&line.id))?;
        self.threads.push(no);
        let end = End {
            thread: no,
            epoch: Epoch::FIRST,
            tail: Seq::ZERO,
            sum,
        };
        self.thread = Some(Open { line, end });
        Ok(())
    }

    /// Adds events as one block, as they were.
    fn events(&mut self, line: &EventsLine) -> Result<(), TransferError> {
        let Some(Open { end, .. }) = &self.thread else {
            return Err(self.wrong("events without a thread"));
        };
        if line.first != end.tail.next().0 {
            return Err(self.wrong("the events before these are missing"));
        }
        let mut events: Vec<(Timestamp, Event, Option<&str>, usize)> = Vec::new();
        for it in &line.list {
            let event = Event::decode(&it.text).map_err(|error| self.wrong(error.to_string()))?;
            // The text is kept where this program would write another one.
            let is_ours = event.encode().is_ok_and(|text| text == it.text);
            let raw = (!is_ours).then_some(it.text.as_str());
            events.push((it.at, event, raw, it.text.len()));
        }
        let to_store = events.iter().map(|(at, event, raw, size)| ToStore {
            at: *at,
            event,
            size: *size,
            raw: *raw,
        });
        let (blocks, written) = match &line.erased {
            None => (split(to_store), None),
            Some(digits) => {
                let digest = unhex(digits);
                let digest =
                    digest.ok_or_else(|| self.wrong("a digest has 64 hexadecimal digits"))?;
                let block = one_block(to_store);
                let block = block
                    .ok_or_else(|| self.wrong("the events of an erased block are not one block"))?;
                (vec![block], Some(digest))
            }
        };
        let mut end = *end;
        end.epoch = Epoch(line.epoch);
        end.sum = blocks::insert_blocks(self.conn, end, blocks, written)?.1;
        end.tail = Seq(end.tail.0.saturating_add(line.list.len() as u64));
        if let Some(thread) = &mut self.thread {
            thread.end = end;
        }
        Ok(())
    }

    fn token(&self, line: &TokenLine) -> Result<(), TransferError> {
        let Some(thread) = &self.thread else {
            return Err(self.wrong("a token without a thread"));
        };
        let no = thread.end.thread;
        let sum = sums::of_token(no, &line.token, &line.answer, line.seq);
        let sql = "INSERT INTO thread_tokens (thread_no, token, answer, seq, sum)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut insert = self.conn.prepare_cached(sql).map_err(statement)?;
        insert
            .execute(params![no, line.token, line.answer, line.seq, sum])
            .map_err(making(&line.token))?;
        Ok(())
    }

    /// Derives the tables of the last thread, and compares them with its line.
    fn close_thread(&mut self) -> Result<(), TransferError> {
        let Some(Open { line, end }) = self.thread.take() else {
            return Ok(());
        };
        rebuild::thread(self.conn, end.thread)?;
        let sql = "UPDATE thread_threads SET epoch = max(epoch, ?2) WHERE no = ?1
                   RETURNING id, key, head_seq, bytes, fork_seq,
                             (SELECT p.id FROM thread_threads p WHERE p.no = thread_threads.fork_no)";
        let mut update = self.conn.prepare_cached(sql).map_err(statement)?;
        let found = update
            .query_row(params![end.thread, int(end.epoch.0)], |row| {
                Ok(ThreadLine {
                    id: row.get(0)?,
                    key: row.get(1)?,
                    events: row.get(2)?,
                    bytes: row.get(3)?,
                    fork_seq: row.get(4)?,
                    parent: row.get(5)?,
                    created_at: line.created_at,
                    change: line.change,
                })
            })
            .map_err(statement)?;
        sums::seal_end(self.conn, end.thread)?;
        if found == line {
            return Ok(());
        }
        Err(self.wrong(format!("thread {} is not what its log says", line.id)))
    }

    fn content(&self, line: &ContentLine) -> Result<(), TransferError> {
        let content = STANDARD.decode(&line.data);
        let content = content.map_err(|error| self.wrong(error.to_string()))?;
        let hash = sha256(&content);
        if hex(&hash) != line.sha256 {
            return Err(self.wrong("the content has another SHA-256"));
        }
        // The tenant may have the same content already.
        let sql = "INSERT INTO tenant_contents (tenant, sha256, content) VALUES (?1, ?2, ?3)
                   ON CONFLICT (tenant, sha256) DO NOTHING";
        let mut insert = self.conn.prepare_cached(sql).map_err(statement)?;
        insert
            .execute(params![self.tenant()?.as_str(), hash, content])
            .map_err(statement)?;
        Ok(())
    }

    fn object(&self, line: &ObjectLine) -> Result<(), TransferError> {
        let tenant = self.tenant()?;
        let thread = match &line.thread {
            Some(id) => Some(
                append::owner_of(self.conn, tenant, &ThreadId::from(id.as_str()))
                    .map_err(|_| self.wrong(format!("the thread {id} is not there")))?,
            ),
            None => None,
        };
        let content: Option<i64> = match &line.content {
            Some(hash) => {
                let sql = "SELECT no FROM tenant_contents WHERE tenant = ?1 AND sha256 = unhex(?2)";
                let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
                let found = select.query_row([tenant.as_str(), hash], |row| row.get(0));
                let found = found.optional().map_err(statement)?;
                Some(found.ok_or_else(|| self.wrong("the object's content is not there"))?)
            }
            None => None,
        };
        let sql =
            "INSERT INTO tenant_objects (tenant, kind, id, created_at, content_no, json, thread_no)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mut insert = self.conn.prepare_cached(sql).map_err(statement)?;
        let values = params![
            tenant.as_str(),
            line.kind,
            line.id,
            line.created_at,
            content,
            line.text,
            thread
        ];
        let no = insert.insert(values).map_err(making(&line.id))?;
        Ok(objects::seal(self.conn, no)?)
    }

    fn checkpoint(&self, line: CheckpointLine) -> Result<(), TransferError> {
        let tenant = self.tenant()?;
        let sql = "SELECT 1 FROM agent_checkpoints WHERE tenant = ?1 AND session_id = ?2";
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let is_used = select.exists([tenant.as_str(), &line.session_id]);
        if is_used.map_err(statement)? {
            return Err(StoreError::Duplicate(line.session_id).into());
        }
        let about = CheckpointRow {
            session_id: line.session_id,
            checkpoint_id: line.checkpoint_id,
            timestamp: instant(line.saved_at)?,
            step: count(line.step),
            agent_id: line.agent_id,
        };
        Ok(checkpoints::save(self.conn, tenant, &about, &line.state)?)
    }

    /// Finds the calls that are open, also those that forks have from their parents.
    fn finish(&mut self) -> Result<(), TransferError> {
        if !self.is_over {
            return Err(TransferError::NotWhole("its last line is missing"));
        }
        for no in &self.threads {
            Tables::of(self.conn, *no, &Blocks::default()).find_calls()?;
            sums::seal_made(self.conn, *no)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_import_are_read_up_to_a_size() {
        let read = |mut lines: &[u8]| {
            let mut text = Vec::new();
            let found = next(&mut lines, &mut text, 5);
            found
                .map(|is_line| is_line.then_some(text))
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(b"12345\n6"), Ok(Some(b"12345".to_vec())));
        assert_eq!(read(b""), Ok(None));
        assert!(read(b"1234").unwrap_err().contains("is cut"));
        assert!(read(b"123456\n").unwrap_err().contains("is too long"));
        assert!(read(b"12345678").unwrap_err().contains("is too long"));
    }
}
