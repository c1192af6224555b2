//! The tables of threads, derived from their logs.

use super::batch::Batch;
use super::blocks::Blocks;
use super::columns::InheritedCalls;
use super::connection::Conn;
use super::error::statement;
use super::projection::{New, Placed, project};
use super::restore;
use super::value::{Param, get, stored, text};
use crate::block::{BlockReader, ByteRanges, Decoded};
use crate::sum::Sum;
use crate::value::{int, nanos};
use jiff::Timestamp;
use std::collections::BTreeMap;
use store::waits::{CallsChange, waits_for_people};
use store::{StoreError, TenantId};
use timeline::{Event, Fork, Machine as _, Seq, Thread, ThreadStatus};
use tokio_postgres::types::Type;

/// The tables that are derived, children first.
pub(super) const TABLES: [&str; 8] = [
    "thread_words",
    "thread_waits",
    "thread_removals",
    "thread_parts",
    "thread_steps",
    "thread_executions",
    "thread_items",
    "thread_contexts",
];

/// Blocks are folded together until they have this many bytes or events.
const BYTES: usize = 256 << 10;
const EVENTS: usize = 4096;

/// Threads whose numbers are read together.
const PAGE: i64 = 1000;

/// Begins a long transaction on a connection of its own. Its statements find rows by their keys. If its client dies, it
/// ends after 5 minutes.
pub(super) async fn begin(conn: &Conn, isolation: &str) -> Result<(), StoreError> {
    let sql = format!(
        "BEGIN ISOLATION LEVEL {isolation};
         SET LOCAL idle_in_transaction_session_timeout = '5min'; SET LOCAL jit = off;
         SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
    );
    conn.batch(&sql).await.map_err(statement)
}

/// A thread by its number.
pub(super) struct Numbered {
    pub(super) no: i64,
    pub(super) id: String,
    pub(super) tenant: TenantId,
}

/// A page of the threads after a number.
pub(super) async fn threads_after(conn: &Conn, after: i64) -> Result<Vec<Numbered>, StoreError> {
    let sql = "SELECT no, id, tenant FROM thread_threads WHERE no > $1 ORDER BY no LIMIT $2";
    let values: [Param<'_>; 2] = [(&after, Type::INT8), (&PAGE, Type::INT8)];
    let rows = conn.query(sql, &values).await?;
    let thread = |row| {
        Ok(Numbered {
            no: get(row, 0)?,
            id: text(row, 1)?,
            tenant: text(row, 2)?.as_str().into(),
        })
    };
    rows.iter().map(thread).collect()
}

/// A thread as its log describes it.
#[derive(Debug, Default)]
pub(super) struct Derived {
    /// The last event.
    pub(super) tail: Seq,
    /// The size of the events' texts, in bytes.
    pub(super) bytes: i64,
    /// When the last event was written.
    pub(super) at: Option<i64>,
    /// The sum of the last block.
    pub(super) sum: Sum,
    /// The epoch of the last block.
    pub(super) epoch: i64,
    /// The thread as it was made.
    pub(super) made: Option<Thread>,
    pub(super) status: Option<ThreadStatus>,
    pub(super) title: Option<String>,
    pub(super) metadata: Option<String>,
    /// The calls that may be open.
    pub(super) calls: Option<MaybeCalls>,
}

/// Calls that a thread may have open: of its last execution, or of its parent.
#[derive(Clone, Debug)]
pub(super) struct MaybeCalls {
    no: i64,
    tenant: TenantId,
    made_at: i64,
    /// The place where it is forked, if it has no execution.
    fork: Option<Fork>,
}

/// The log of a thread, and where its rows are written.
pub(super) struct Derive<'a> {
    /// Reads the log and the tables of other threads.
    pub(super) read: &'a Conn,
    /// Has nothing of the thread.
    pub(super) to: &'a Conn,
    pub(super) no: i64,
    pub(super) tenant: &'a TenantId,
}

/// Some blocks with their events. Changes of one row by several of them are one change.
#[derive(Default)]
struct Chunk {
    /// The first event of each block, and the ranges of its values.
    blocks: Vec<(i64, ByteRanges)>,
    events: Vec<(Seq, Timestamp, Event)>,
}

impl Derive<'_> {
    /// Reads the log to its end. Decodes every event and checks every sum.
    pub(super) async fn measure(&self) -> Result<(Derived, BTreeMap<String, i64>), StoreError> {
        let mut found = Derived::default();
        let (mut executions, mut calls, mut made_at) = (BTreeMap::new(), None, None);
        let mut blocks = Blocks::of(self.read, self.no);
        while let Some(block) = blocks.next().await? {
            let fault = blocks.fault(block.first());
            let reader = BlockReader::new(block.body()?).map_err(&fault)?;
            for (seq, decoded) in (block.first()..).zip(reader) {
                let decoded = decoded.map_err(&fault)?;
                let length = decoded.text().map_err(&fault)?.len();
                found.bytes = found.bytes.saturating_add(int(length as u64));
                found.at = Some(nanos(decoded.at));
                found.tail = Seq(seq);
                made_at = made_at.or(found.at);
                calls = CallsChange::of(&decoded.event).or(calls);
                if let Event::ExecutionCreated { execution } = &decoded.event {
                    executions.insert(execution.id.to_string(), int(seq));
                } else if let Event::ThreadCreated { thread } = decoded.event {
                    found.made = Some(thread);
                }
            }
            (found.sum, found.epoch) = (block.numbers.sum, block.numbers.epoch);
        }
        if calls == Some(CallsChange::Perhaps) {
            let fork = found.made.as_ref().and_then(|made| made.fork.clone());
            found.calls = Some(MaybeCalls {
                no: self.no,
                tenant: self.tenant.clone(),
                made_at: made_at.unwrap_or_default(),
                fork: fork.filter(|_| executions.is_empty()),
            });
        }
        Ok((found, executions))
    }

    /// Writes the rows. Calls that wait for a person are [found](MaybeCalls::find) later: they may depend on other threads.
    pub(super) async fn fold(
        &self,
        found: &mut Derived,
        executions: &BTreeMap<String, i64>,
    ) -> Result<(), StoreError> {
        let is_first = |event: &Event| {
            matches!(
                event,
                Event::ContextCreated { .. } | Event::ItemCreated { .. }
            )
        };
        // Executions name items that the log creates after them, and items name executions.
        for wants_first in [true, false] {
            let mut blocks = Blocks::of(self.read, self.no);
            while let Some(chunk) = next(&mut blocks).await? {
                let placed = Placed::stored(self.no, self.tenant, &chunk.blocks, executions);
                let events = chunk
                    .events
                    .iter()
                    .map(|(seq, at, event)| (*seq, *at, event));
                let events: Vec<_> = events
                    .filter(|(_, _, event)| is_first(event) == wants_first)
                    .collect();
                let mut batch = Batch::default();
                let change = project(&mut batch, &placed, &events);
                found.status = change.status.or(found.status);
                if let Some(New(title)) = change.title {
                    found.title = title;
                }
                if let Some(New(metadata)) = change.metadata {
                    found.metadata = metadata;
                }
                batch.write(self.to).await.map_err(statement)?;
            }
        }
        Ok(())
    }
}

async fn next(blocks: &mut Blocks<'_>) -> Result<Option<Chunk>, StoreError> {
    let (mut chunk, mut n_bytes) = (Chunk::default(), 0);
    while n_bytes < BYTES && chunk.events.len() < EVENTS {
        let Some(block) = blocks.next().await? else {
            break;
        };
        let fault = blocks.fault(block.first());
        let mut reader = BlockReader::new(block.body()?).map_err(&fault)?;
        for (seq, decoded) in (block.first()..).zip(&mut reader) {
            let Decoded { at, event, .. } = decoded.map_err(&fault)?;
            chunk.events.push((Seq(seq), at, event));
        }
        n_bytes += block.body()?.len();
        let first = block.numbers.first;
        chunk.blocks.push((first, reader.into_ranges()));
    }
    Ok(Some(chunk).filter(|chunk| !chunk.blocks.is_empty()))
}

impl MaybeCalls {
    /// Writes the calls that wait for a person. `read` has the tables of all threads.
    pub(super) async fn find(&self, read: &Conn, to: &Conn) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        if let Some(fork) = &self.fork {
            let sql = "SELECT fork_no FROM thread_threads WHERE no = $1 AND fork_no IS NOT NULL";
            let parent = read.first(sql, &[(&self.no, Type::INT8)]).await?;
            let Some(parent) = parent else { return Ok(()) };
            let open = restore::inherited_calls(read, get(&parent, 0)?, fork.seq).await?;
            if waits_for_people(open.as_ref()) {
                batch.inherited.push(InheritedCalls {
                    thread_no: self.no,
                    tenant: stored(self.tenant.as_str()).into_owned(),
                    at: self.made_at,
                });
            }
        } else {
            batch.ended.push(self.no);
        }
        batch.write(to).await.map_err(statement)
    }
}

/// Drops what the tables hold, and folds every log into them. Tenants, epochs, owners, the order of lists, tokens,
/// checkpoints and objects stay: they are not in the log. The connection has a transaction.
pub(super) async fn rebuild(conn: &Conn) -> Result<(), StoreError> {
    // Writers wait, and readers see the tables of before.
    let sql = "LOCK TABLE thread_threads IN EXCLUSIVE MODE";
    conn.batch(sql).await.map_err(statement)?;
    for table in TABLES {
        let sql = format!("DELETE FROM {table}");
        conn.batch(&sql).await.map_err(statement)?;
    }
    let (mut after, mut calls) = (i64::MIN, Vec::new());
    loop {
        let threads = threads_after(conn, after).await?;
        let Some(last) = threads.last() else { break };
        after = last.no;
        for thread in &threads {
            let derived = rebuild_thread(conn, thread.no, &thread.tenant, true).await?;
            calls.extend(derived.calls);
        }
    }
    for calls in calls {
        calls.find(conn, conn).await?;
    }
    Ok(())
}

/// Folds the log of one thread into the tables, which have nothing of it, and corrects its row. Its key is set only on
/// demand.
pub(super) async fn rebuild_thread(
    conn: &Conn,
    no: i64,
    tenant: &TenantId,
    sets_key: bool,
) -> Result<Derived, StoreError> {
    let derive = Derive {
        read: conn,
        to: conn,
        no,
        tenant,
    };
    let (mut found, executions) = derive.measure().await?;
    derive.fold(&mut found, &executions).await?;
    let made = found.made.as_ref();
    let made = made.ok_or_else(|| StoreError::Damaged("a log without a beginning".into()))?;
    let key = made.key.as_deref().map(stored);
    let status = found.status.unwrap_or(made.status).name();
    let fork = made.fork.as_ref();
    let parent = fork.map(|fork| stored(fork.thread_id.as_str()));
    let fork_seq = fork.map(|fork| int(fork.seq.0));
    let created_at = nanos(made.created_at);
    let (tail, sum) = (int(found.tail.0), found.sum.as_slice());
    let sql = "UPDATE thread_threads SET key = CASE WHEN $13 THEN $2 ELSE key END, status = $3, title = $4, metadata = $5,
                   fork_no = (SELECT p.no FROM thread_threads p WHERE p.id = $6), fork_seq = $7, created_at = $8,
                   updated_at = coalesce($9, $8), head_seq = $10, bytes = $11, sum = $12
               WHERE no = $1";
    let values: [Param<'_>; 13] = [
        (&no, Type::INT8),
        (&key, Type::TEXT),
        (&status, Type::TEXT),
        (&found.title, Type::TEXT),
        (&found.metadata, Type::TEXT),
        (&parent, Type::TEXT),
        (&fork_seq, Type::INT8),
        (&created_at, Type::INT8),
        (&found.at, Type::INT8),
        (&tail, Type::INT8),
        (&found.bytes, Type::INT8),
        (&sum, Type::BYTEA),
        (&sets_key, Type::BOOL),
    ];
    conn.execute(sql, &values).await?;
    Ok(found)
}
