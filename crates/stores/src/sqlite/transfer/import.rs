//! Lines into a store.

use crate::durable::lines::{
    CheckpointLine, ContentLine, EventsLine, Line, LineReader, MAX_LINE, ObjectLine, ThreadLine,
    TokenLine, next, whole,
};
use crate::durable::{TransferError, Transferred};
use crate::private;
use crate::sqlite::append;
use crate::sqlite::blocks::{self, Blocks, End};
use crate::sqlite::connection::{SqliteOptions, exists, lock, writing};
use crate::sqlite::error::{making, statement};
use crate::sqlite::migrations::MIGRATIONS;
use crate::sqlite::projection::Tables;
use crate::sqlite::value::{count, instant, int, nanos};
use crate::sqlite::words::bulk;
use crate::sqlite::{checkpoints, objects, rebuild, rekey, schema, sums};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use store::{CheckpointRow, Epoch, StoreError, TenantId};
use timeline::{Seq, ThreadId};

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
        let line = import.lines.read(&text)?;
        import.take(line)?;
    }
    let counts = import.lines.end(expected)?;
    import.finish()?;
    tx.commit().map_err(statement)?;
    Ok(counts)
}

/// The state of an import.
struct Import<'a> {
    conn: &'a Connection,
    lines: LineReader,
    thread: Option<Open>,
    threads: Vec<i64>,
    /// The number of the last change in the tenant's list before the import.
    change: i64,
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
            lines: LineReader::default(),
            thread: None,
            threads: Vec::new(),
            change: 0,
        }
    }

    fn wrong(&self, what: impl Into<String>) -> TransferError {
        self.lines.wrong(what)
    }

    fn take(&mut self, line: Line) -> Result<(), TransferError> {
        match line {
            Line::Tenant(line) => {
                let sql = "SELECT coalesce(max(change), 0) FROM thread_threads WHERE tenant = ?1";
                self.change = self
                    .conn
                    .query_row(sql, [&line.name], |row| row.get(0))
                    .map_err(statement)?;
                Ok(())
            }
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
            Line::End(_) => self.close_thread(),
        }
    }

    fn tenant(&self) -> Result<&TenantId, TransferError> {
        self.lines.tenant()
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
        let (blocks, written) = line.blocks().map_err(|what| self.wrong(what))?;
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
        let (content, hash) = line.content().map_err(|what| self.wrong(what))?;
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
    fn finish(&self) -> Result<(), TransferError> {
        for no in &self.threads {
            Tables::of(self.conn, *no, &Blocks::default()).find_calls()?;
            sums::seal_made(self.conn, *no)?;
        }
        Ok(())
    }
}
