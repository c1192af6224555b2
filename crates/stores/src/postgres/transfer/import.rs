//! Lines into a store.

use crate::durable::TransferError;
use crate::durable::lines::{
    CheckpointLine, ContentLine, EventsLine, Line, LineReader, MAX_LINE, ObjectLine, TenantLine,
    ThreadLine, TokenLine, next,
};
use crate::postgres::connection::Conn;
use crate::postgres::derive::{MaybeCalls, rebuild_thread};
use crate::postgres::objects::Change;
use crate::postgres::rows::HAS_WORK;
use crate::postgres::value::{Param, get, stored};
use crate::sum::{Sum, Summed, erased, seed};
use crate::value::{int, nanos, unhex};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::io::{BufReader, Read};
use store::{Epoch, StoreError, TenantId};
use tokio_postgres::types::Type;

/// The highest place in the list of threads that an import may take. As many stay for later changes.
const MAX_CHANGE: i64 = 1 << 62;

/// Places behind those of an import that stay free.
const SPARE: i64 = 1 << 20;

/// Blocks with this many bytes are stored together.
const BYTES: usize = 256 << 10;

/// The tenant of an export, and the last place in its list of threads.
#[derive(Default)]
pub(super) struct LastChange {
    tenant: String,
    change: i64,
}

/// The members of lines that [`LastChange`] depends on.
#[derive(Deserialize)]
struct Places {
    tenant: Option<TenantLine>,
    thread: Option<ThreadLine>,
}

/// Reads the lines for the last place in the list of threads.
pub(super) fn last_change(from: &mut impl Read) -> Result<LastChange, TransferError> {
    let (mut lines, mut number, mut text) = (BufReader::new(from), 0, Vec::new());
    let mut last = LastChange::default();
    while next(&mut lines, &mut text, MAX_LINE)? {
        number += 1;
        let wrong = |what: String| TransferError::Line { number, what };
        let places: Places =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if let Some(line) = places.tenant {
            last.tenant = line.name;
        }
        if let Some(line) = places.thread {
            if !(0..MAX_CHANGE).contains(&line.change) {
                return Err(wrong(
                    "its place in the list of threads is out of range".into(),
                ));
            }
            last.change = last.change.max(line.change);
        }
    }
    Ok(last)
}

/// Reserves the places of an import in the tenant's list, so that later changes come after them. Returns the place before
/// them: the last one of all changes, or 0 for a tenant without threads.
pub(super) async fn reserve_changes(conn: &Conn, last: &LastChange) -> Result<i64, TransferError> {
    let sql = "SELECT last_value, EXISTS (SELECT 1 FROM thread_threads WHERE tenant = $1) FROM thread_changes";
    let tenant = stored(&last.tenant);
    let row = conn.first(sql, &[(&tenant, Type::TEXT)]).await?;
    let row = row.ok_or(StoreError::NotFound)?;
    let (found, has_threads): (i64, bool) = (get(&row, 0)?, get(&row, 1)?);
    let before = if has_threads { found } else { 0 };
    let end = before.saturating_add(last.change);
    if end >= MAX_CHANGE {
        return Err(TransferError::Line {
            number: 1,
            what: "the list of threads has no place for it".to_owned(),
        });
    }
    // Other nodes may take places between the comparison and the change. `SPARE` is more than they can take.
    let sql = "SELECT setval('thread_changes', $1 + $2) FROM thread_changes WHERE last_value < $1";
    let values: [Param<'_>; 2] = [(&end, Type::INT8), (&SPARE, Type::INT8)];
    conn.execute(sql, &values).await?;
    Ok(before)
}

/// The state of an import.
pub(super) struct Import<'a> {
    conn: &'a Conn,
    /// The place in the tenant's list before the import.
    change: i64,
    /// Whether threads with work are refused.
    at_rest: bool,
    thread: Option<Open>,
    /// Blocks of the thread that are not stored yet.
    blocks: Vec<Stored>,
    /// The numbers and keys of threads. They get their keys at the end: who asks for one waits until the commit.
    keys: (Vec<i64>, Vec<String>),
    calls: Vec<MaybeCalls>,
    used: Change,
}

/// The thread whose events are being read.
struct Open {
    line: ThreadLine,
    no: i64,
    tail: u64,
    epoch: u64,
    sum: Sum,
}

/// A block as a row.
struct Stored {
    summed: Summed,
    sum: Vec<u8>,
    body: Vec<u8>,
    erased: Option<Vec<u8>>,
}

impl<'a> Import<'a> {
    /// An import in a transaction.
    pub(super) fn new(conn: &'a Conn, change: i64, at_rest: bool) -> Self {
        Self {
            conn,
            change,
            at_rest,
            thread: None,
            blocks: Vec::new(),
            keys: (Vec::new(), Vec::new()),
            calls: Vec::new(),
            used: Change::default(),
        }
    }

    pub(super) async fn take(
        &mut self,
        reader: &LineReader,
        line: Line,
    ) -> Result<(), TransferError> {
        if !matches!(line, Line::Events(_) | Line::Token(_)) {
            self.close_thread(reader).await?;
        }
        match line {
            Line::Thread(line) => self.open_thread(reader, line).await,
            Line::Events(line) => self.events(reader, &line).await,
            Line::Token(line) => self.token(reader, &line).await,
            Line::Content(line) => self.content(reader, &line).await,
            Line::Object(line) => self.object(reader, &line).await,
            Line::Checkpoint(line) => self.checkpoint(reader, &line).await,
            Line::Tenant(_) | Line::End(_) => Ok(()),
        }
    }

    /// The number of the tenant's thread with this id. It stays until the transaction ends.
    async fn number(&self, tenant: &TenantId, id: &str) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT no FROM thread_threads WHERE id = $1 AND tenant = $2 FOR KEY SHARE";
        let (id, tenant) = (stored(id), stored(tenant.as_str()));
        let values: [Param<'_>; 2] = [(&id, Type::TEXT), (&tenant, Type::TEXT)];
        let row = self.conn.first(sql, &values).await?;
        row.map(|row| get(&row, 0)).transpose()
    }

    async fn open_thread(
        &mut self,
        reader: &LineReader,
        line: ThreadLine,
    ) -> Result<(), TransferError> {
        let tenant = reader.tenant()?;
        if let Some(parent) = &line.parent
            && self.number(tenant, parent).await?.is_none()
        {
            return Err(reader.wrong(format!("the parent {parent} is not there")));
        }
        let sum = seed(tenant.as_str(), &line.id);
        let (id, name) = (stored(&line.id), stored(tenant.as_str()));
        let (created_at, epoch) = (nanos(line.created_at), int(Epoch::FIRST.0));
        let change = self.change.saturating_add(line.change);
        let sql = "INSERT INTO thread_threads
                       (no, id, tenant, status, created_at, updated_at, head_seq, bytes, epoch, change, sum)
                   VALUES (nextval('thread_numbers'), $1, $2, 'open', $3, $3, 0, 0, $4, $5, $6) RETURNING no";
        let first_sum = sum.as_slice();
        let values: [Param<'_>; 6] = [
            (&id, Type::TEXT),
            (&name, Type::TEXT),
            (&created_at, Type::INT8),
            (&epoch, Type::INT8),
            (&change, Type::INT8),
            (&first_sum, Type::BYTEA),
        ];
        let row = self.conn.first(sql, &values).await?;
        self.thread = Some(Open {
            no: get(&row.ok_or(StoreError::NotFound)?, 0)?,
            line,
            tail: 0,
            epoch: Epoch::FIRST.0,
            sum,
        });
        Ok(())
    }

    /// Adds events as one block, as they were.
    async fn events(
        &mut self,
        reader: &LineReader,
        line: &EventsLine,
    ) -> Result<(), TransferError> {
        let Some(thread) = &mut self.thread else {
            return Err(reader.wrong("events without a thread"));
        };
        if line.first != thread.tail.saturating_add(1) {
            return Err(reader.wrong("the events before these are missing"));
        }
        let (blocks, written) = line.blocks().map_err(|what| reader.wrong(what))?;
        for block in blocks {
            let summed = Summed {
                first: int(thread.tail.saturating_add(1)),
                n: int(block.n as u64),
                facts: int(block.facts as u64),
                epoch: int(line.epoch),
                digest: written.unwrap_or_else(|| Sha256::digest(&block.body).into()),
            };
            thread.sum = summed.after(thread.sum);
            self.blocks.push(Stored {
                erased: written.map(|written| erased(written, &block.body).to_vec()),
                sum: thread.sum.to_vec(),
                body: block.body,
                summed,
            });
            thread.tail = thread.tail.saturating_add(block.n as u64);
        }
        thread.epoch = line.epoch;
        let n_bytes: usize = self.blocks.iter().map(|it| it.body.len()).sum();
        if n_bytes >= BYTES {
            self.store_blocks().await?;
        }
        Ok(())
    }

    /// Stores the blocks of the last thread that wait.
    async fn store_blocks(&mut self) -> Result<(), StoreError> {
        let blocks = std::mem::take(&mut self.blocks);
        let Some(Open { no, .. }) = self.thread else {
            return Ok(());
        };
        let numbers = |of: fn(&Summed) -> i64| -> Vec<i64> {
            blocks.iter().map(|block| of(&block.summed)).collect()
        };
        let (first, n) = (numbers(|it| it.first), numbers(|it| it.n));
        let (epoch, facts) = (numbers(|it| it.epoch), numbers(|it| it.facts));
        let sums: Vec<&Vec<u8>> = blocks.iter().map(|it| &it.sum).collect();
        let bodies: Vec<&Vec<u8>> = blocks.iter().map(|it| &it.body).collect();
        let erased: Vec<&Option<Vec<u8>>> = blocks.iter().map(|it| &it.erased).collect();
        let sql = "INSERT INTO thread_blocks (thread_no, first, n, epoch, facts, sum, body, erased)
                   SELECT $1, r.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[],
                                              $7::bytea[], $8::bytea[]) r";
        let values: [Param<'_>; 8] = [
            (&no, Type::INT8),
            (&first, Type::INT8_ARRAY),
            (&n, Type::INT8_ARRAY),
            (&epoch, Type::INT8_ARRAY),
            (&facts, Type::INT8_ARRAY),
            (&sums, Type::BYTEA_ARRAY),
            (&bodies, Type::BYTEA_ARRAY),
            (&erased, Type::BYTEA_ARRAY),
        ];
        self.conn.execute(sql, &values).await
    }

    async fn token(&self, reader: &LineReader, line: &TokenLine) -> Result<(), TransferError> {
        let Some(thread) = &self.thread else {
            return Err(reader.wrong("a token without a thread"));
        };
        let sql =
            "INSERT INTO thread_tokens (thread_no, token, answer, seq) VALUES ($1, $2, $3, $4)";
        let (token, answer) = (stored(&line.token), stored(&line.answer));
        let values: [Param<'_>; 4] = [
            (&thread.no, Type::INT8),
            (&token, Type::TEXT),
            (&answer, Type::TEXT),
            (&line.seq, Type::INT8),
        ];
        Ok(self.conn.execute(sql, &values).await?)
    }

    /// Derives the tables of the last thread, and compares them with its line.
    async fn close_thread(&mut self, reader: &LineReader) -> Result<(), TransferError> {
        self.store_blocks().await?;
        let Some(Open {
            line, no, epoch, ..
        }) = self.thread.take()
        else {
            return Ok(());
        };
        let derived = rebuild_thread(self.conn, no, reader.tenant()?, false).await?;
        let sql = format!(
            "UPDATE thread_threads t SET epoch = greatest(epoch, $2),
                 owner = CASE WHEN {HAS_WORK} THEN 0 END
             WHERE no = $1 RETURNING owner IS NOT NULL"
        );
        let epoch = int(epoch);
        let values: [Param<'_>; 2] = [(&no, Type::INT8), (&epoch, Type::INT8)];
        let updated = self.conn.first(&sql, &values).await?;
        let has_work: Option<bool> = updated.map(|row| get(&row, 0)).transpose()?;
        if self.at_rest && has_work == Some(true) {
            return Err(TransferError::Unfinished(line.id));
        }
        let made = derived.made.as_ref();
        let fork = made.and_then(|made| made.fork.as_ref());
        let found = ThreadLine {
            id: made.map(|it| it.id.to_string()).unwrap_or_default(),
            key: made.and_then(|made| made.key.clone()),
            parent: fork.map(|fork| fork.thread_id.to_string()),
            fork_seq: fork.map(|fork| int(fork.seq.0)),
            events: int(derived.tail.0),
            bytes: derived.bytes,
            created_at: line.created_at,
            change: line.change,
        };
        if found != line {
            return Err(reader.wrong(format!("thread {} is not what its log says", line.id)));
        }
        if let Some(key) = line.key {
            self.keys.0.push(no);
            self.keys.1.push(stored(&key).into_owned());
        }
        self.calls.extend(derived.calls);
        self.used.threads += 1;
        self.used.bytes += derived.bytes;
        Ok(())
    }

    async fn content(
        &mut self,
        reader: &LineReader,
        line: &ContentLine,
    ) -> Result<(), TransferError> {
        let (content, hash) = line.content().map_err(|what| reader.wrong(what))?;
        let tenant = stored(reader.tenant()?.as_str());
        let hash = hash.as_slice();
        let key: [Param<'_>; 2] = [(&tenant, Type::TEXT), (&hash, Type::BYTEA)];
        loop {
            // The tenant may have the same content already. It must not be deleted before the object comes.
            let sql =
                "SELECT no FROM tenant_contents WHERE tenant = $1 AND sha256 = $2 FOR KEY SHARE";
            if self.conn.first(sql, &key).await?.is_some() {
                return Ok(());
            }
            let sql = "INSERT INTO tenant_contents (tenant, sha256, content) VALUES ($1, $2, $3)
                       ON CONFLICT (tenant, sha256) DO NOTHING RETURNING no";
            let [tenant, hash] = key.clone();
            let values: [Param<'_>; 3] = [tenant, hash, (&content, Type::BYTEA)];
            if self.conn.first(sql, &values).await?.is_some() {
                self.used.bytes += int(content.len() as u64);
                return Ok(());
            }
        }
    }

    async fn object(
        &mut self,
        reader: &LineReader,
        line: &ObjectLine,
    ) -> Result<(), TransferError> {
        let tenant = reader.tenant()?;
        let thread = match &line.thread {
            Some(id) => {
                let no = self.number(tenant, id).await?;
                Some(no.ok_or_else(|| reader.wrong(format!("the thread {id} is not there")))?)
            }
            None => None,
        };
        let name = stored(tenant.as_str());
        let content = match &line.content {
            Some(digits) => {
                let hash = unhex(digits).unwrap_or_default();
                let hash = hash.as_slice();
                let sql = "SELECT no FROM tenant_contents WHERE tenant = $1 AND sha256 = $2";
                let values: [Param<'_>; 2] = [(&name, Type::TEXT), (&hash, Type::BYTEA)];
                let row = self.conn.first(sql, &values).await?;
                let row = row.ok_or_else(|| reader.wrong("the object's content is not there"))?;
                Some(get::<i64>(&row, 0)?)
            }
            None => None,
        };
        let sql =
            "INSERT INTO tenant_objects (tenant, kind, id, created_at, content_no, json, thread_no)
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let (kind, id, json) = (stored(&line.kind), stored(&line.id), stored(&line.text));
        let values: [Param<'_>; 7] = [
            (&name, Type::TEXT),
            (&kind, Type::TEXT),
            (&id, Type::TEXT),
            (&line.created_at, Type::INT8),
            (&content, Type::INT8),
            (&json, Type::TEXT),
            (&thread, Type::INT8),
        ];
        self.conn.execute(sql, &values).await?;
        self.used.bytes += int(line.text.len() as u64);
        self.used.files += i64::from(content.is_some());
        Ok(())
    }

    async fn checkpoint(
        &self,
        reader: &LineReader,
        line: &CheckpointLine,
    ) -> Result<(), TransferError> {
        let sql = "INSERT INTO agent_checkpoints
                       (tenant, session_id, checkpoint_id, saved_at, step, agent_id, state)
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let tenant = stored(reader.tenant()?.as_str());
        let (session, checkpoint) = (stored(&line.session_id), stored(&line.checkpoint_id));
        let agent = line.agent_id.as_deref().map(stored);
        let state = stored(&line.state);
        let values: [Param<'_>; 7] = [
            (&tenant, Type::TEXT),
            (&session, Type::TEXT),
            (&checkpoint, Type::TEXT),
            (&line.saved_at, Type::INT8),
            (&line.step, Type::INT8),
            (&agent, Type::TEXT),
            (&state, Type::TEXT),
        ];
        Ok(self.conn.execute(sql, &values).await?)
    }

    /// Finds the calls that are open, also those that forks have from their parents, names the threads by their keys, and
    /// counts what the tenant stores.
    pub(super) async fn finish(&self, tenant: &TenantId) -> Result<(), TransferError> {
        for calls in &self.calls {
            calls.find(self.conn, self.conn).await?;
        }
        let name = stored(tenant.as_str());
        let sql = "SELECT key FROM thread_threads WHERE tenant = $1 AND key = ANY($2) LIMIT 1";
        let values: [Param<'_>; 2] = [(&name, Type::TEXT), (&self.keys.1, Type::TEXT_ARRAY)];
        if let Some(row) = self.conn.first(sql, &values).await? {
            let key = crate::postgres::value::text(&row, 0)?;
            return Err(StoreError::KeyTaken(key).into());
        }
        let sql = "UPDATE thread_threads t SET key = r.key FROM unnest($1::bigint[], $2::text[]) r (no, key)
                   WHERE t.no = r.no";
        let values: [Param<'_>; 2] = [
            (&self.keys.0, Type::INT8_ARRAY),
            (&self.keys.1, Type::TEXT_ARRAY),
        ];
        self.conn.execute(sql, &values).await?;
        Ok(self.used.note(self.conn, &name).await?)
    }
}
