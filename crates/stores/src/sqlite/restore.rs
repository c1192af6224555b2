//! The head of a log, from the tables and the end of the log: its cost is that of the running
//! step and the waiting triggers, however long the thread is.

use super::blocks;
use super::error::statement;
use super::rows;
use super::value::{count, int};
use crate::block::Coded;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use std::ops::ControlFlow;
use store::{Epoch, Filter, Head, StoreError, inherited};
use timeline::{
    Context, Event, ExecutionStatus, Item, Open, Payload, Seq, State, Thread, ThreadId, chunk_type,
};

/// The end of the thread's log, with its state.
pub(super) fn head(conn: &Connection, thread: &ThreadId) -> Result<Head, StoreError> {
    let tx = conn.unchecked_transaction().map_err(statement)?;
    let (no, row) = rows::numbered_row(&tx, thread)?;
    let log = Log { conn: &tx, no };
    let (mut thread, context) = log.made()?;
    thread.status = row.thread.status;
    thread.title = row.thread.title;
    thread.metadata = row.thread.metadata;
    let epoch = Epoch(count(rows::end_of(&tx, &thread.id)?.epoch));
    Ok(Head {
        tenant: row.tenant,
        epoch,
        owner: None,
        tail: row.tail,
        last_at: row.thread.updated_at.unwrap_or(row.thread.created_at),
        state: log.state(thread, context)?,
    })
}

/// The calls of a thread that are open, from the tables. It reads nothing of the log but the beginning of the
/// last execution.
pub(super) fn open_calls(conn: &Connection, no: i64) -> Result<Option<Open>, StoreError> {
    Log { conn, no }.open(i64::MAX)
}

struct Log<'a> {
    conn: &'a Connection,
    no: i64,
}

/// The pending calls of the last execution before a position.
enum Left {
    /// There was no execution.
    NeverRan,
    /// No call waits.
    Nothing,
    /// These calls wait.
    Open(Box<Open>),
}

struct Running {
    seq: i64,
    trigger: i64,
}

impl Log<'_> {
    fn state(&self, thread: Thread, context: Context) -> Result<State, StoreError> {
        let sql =
            "SELECT seq, trigger_seq FROM thread_executions WHERE thread_no = ?1 AND status = 0";
        let running = one(self.conn, sql, [self.no], |row| {
            Ok(Running {
                seq: row.get(0)?,
                trigger: row.get(1)?,
            })
        })?;
        let before = running.as_ref().map_or(i64::MAX, |running| running.seq);
        let waiting = self.waiting(before, running.as_ref())?;
        let kept = self.kept(before)?;
        let open = self.open(before)?;
        let mut state = State::restored(thread, context, waiting, kept).with_open(open);
        if let Some(running) = running {
            self.apply_running(&mut state, &running)?;
        }
        Ok(state)
    }

    // The thread and its context as they were made, and the context's status.
    fn made(&self) -> Result<(Thread, Context), StoreError> {
        let (mut thread, mut context) = (None, None);
        self.log().read(Seq(1), Filter::Facts, |_, decoded| {
            if let Event::ThreadCreated { thread: made } = decoded.event {
                thread = Some(made);
            } else if let Event::ContextCreated { context: made } = decoded.event {
                context = Some(made);
            }
            Ok(if thread.is_some() && context.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        let made = thread.zip(context);
        let (thread, mut context) =
            made.ok_or_else(|| StoreError::Damaged("a log without a beginning".into()))?;
        let sql = "SELECT status FROM thread_contexts WHERE thread_no = ?1";
        if let Some(stands) = one(self.conn, sql, [self.no], |row| row.get::<_, u8>(0))? {
            context.status = known(stands)?;
        }
        Ok((thread, context))
    }

    // What waited before the running execution began, its own trigger included.
    fn waiting(&self, before: i64, running: Option<&Running>) -> Result<Vec<Item>, StoreError> {
        let sql = "SELECT seq FROM thread_items WHERE thread_no = ?1 AND waiting = 1 AND seq < ?2
                   UNION ALL
                   SELECT seq FROM thread_items
                   WHERE thread_no = ?1 AND seq = ?3 AND has_run = 1 AND execution_seq IS NULL
                   ORDER BY seq";
        let trigger = running.map(|running| running.trigger);
        let mut items = Vec::new();
        for seq in self.seqs(sql, params![self.no, before, trigger])? {
            items.extend(self.log().event(seq)?.and_then(item));
        }
        Ok(items)
    }

    // The last item that nothing has answered when the running execution began.
    fn kept(&self, before: i64) -> Result<Option<Item>, StoreError> {
        let sql = "SELECT seq, answered_seq FROM thread_items
                   WHERE thread_no = ?1 AND has_run = 0 AND execution_seq IS NULL AND seq < ?2
                   ORDER BY seq DESC LIMIT 1";
        let found = one(self.conn, sql, [self.no, before], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        match found {
            Some((seq, answered)) if answered.is_none_or(|answered| answered >= before) => {
                Ok(self.log().event(Seq(count(seq)))?.and_then(item))
            }
            _ => Ok(None),
        }
    }

    // The calls that wait: those that the last execution left which was over then. Where a fork has
    // none of its own and nothing was said in it, what was open where it was made.
    fn open(&self, before: i64) -> Result<Option<Open>, StoreError> {
        let (mut no, mut before, mut is_own) = (self.no, before, true);
        loop {
            let found = match self.left(no, before)? {
                Left::Nothing => return Ok(None),
                Left::Open(open) if is_own => return Ok(Some(*open)),
                Left::Open(open) => return Ok(inherited(*open)),
                Left::NeverRan => {
                    let sql = "SELECT fork_no, fork_seq FROM thread_threads
                               WHERE no = ?1 AND fork_no IS NOT NULL AND NOT EXISTS (
                                   SELECT 1 FROM thread_items i
                                   WHERE i.thread_no = ?1 AND i.has_run = 0 AND i.execution_seq IS NULL
                                   AND i.type = 0 AND i.seq < ?2)";
                    one(self.conn, sql, [no, before], |row| {
                        Ok((row.get(0)?, row.get::<_, i64>(1)?))
                    })?
                }
            };
            let Some((parent, seq)) = found else {
                return Ok(None);
            };
            (no, before, is_own) = (parent, seq.saturating_add(1), false);
        }
    }

    // What the last execution has left that was over then, unless it ended otherwise or a message was
    // kept since it began.
    fn left(&self, no: i64, before: i64) -> Result<Left, StoreError> {
        let sql = "SELECT x.status, x.seq, (
                       SELECT (SELECT CAST(substr(b.body, s.open_offset + 1, s.open_length) AS TEXT)
                               FROM thread_blocks b WHERE b.id = s.end_block)
                       FROM thread_steps s
                       WHERE s.thread_no = x.thread_no AND s.execution_seq = x.seq
                       ORDER BY s.iteration DESC LIMIT 1), EXISTS (
                       SELECT 1 FROM thread_items i
                       WHERE i.thread_no = ?1 AND i.has_run = 0 AND i.execution_seq IS NULL
                       AND i.type = 0 AND i.seq > x.seq AND i.seq < ?2)
                   FROM thread_executions x
                   WHERE x.thread_no = ?1 AND x.seq < ?2 ORDER BY x.seq DESC LIMIT 1";
        let found = one(self.conn, sql, [no, before], |row| {
            Ok((
                row.get::<_, u8>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, Option<String>>(2)?,
                row.get::<_, bool>(3)?,
            ))
        })?;
        let Some((stands, seq, open_calls, is_overtaken)) = found else {
            return Ok(Left::NeverRan);
        };
        let Some(open_calls) = open_calls.filter(|_| !is_overtaken) else {
            return Ok(Left::Nothing);
        };
        let conn = self.conn;
        let event = blocks::Log { conn, no }.event(Seq(count(seq)))?;
        let Some(Event::ExecutionCreated { mut execution }) = event else {
            return Ok(Left::Nothing);
        };
        execution.status = known(stands)?;
        if execution.status != ExecutionStatus::Completed {
            return Ok(Left::Nothing);
        }
        let open_calls = Payload::from_text(open_calls)
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        Ok(Open::of(execution, Some(&open_calls))
            .map_or(Left::Nothing, |open| Left::Open(Box::new(open))))
    }

    // The execution's beginning, what was kept since, and its last step; not the steps between. What
    // the thread is called is known already.
    fn apply_running(&self, state: &mut State, running: &Running) -> Result<(), StoreError> {
        let sql = "SELECT
                       (SELECT seq FROM thread_steps WHERE thread_no = ?1 AND execution_seq = ?2
                        ORDER BY iteration LIMIT 1),
                       (SELECT seq FROM thread_steps WHERE thread_no = ?1 AND execution_seq = ?2
                        ORDER BY iteration DESC LIMIT 1)";
        let steps = one(self.conn, sql, [self.no, running.seq], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        let (first, last) = match steps {
            Some((Some(first), Some(last))) => (first, last),
            _ => (running.seq, running.seq),
        };
        self.apply_facts(state, running.seq, first)?;
        let sql = "SELECT seq FROM thread_items WHERE thread_no = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq";
        for seq in self.seqs(sql, [self.no, first, last])? {
            if let Some(event) = self.log().event(seq)? {
                state.apply(&event);
            }
        }
        self.apply_facts(state, last, i64::MAX)
    }

    /// Applies the facts between two positions, the last excluded.
    fn apply_facts(&self, state: &mut State, from: i64, to: i64) -> Result<(), StoreError> {
        if from >= to {
            return Ok(());
        }
        let from = Seq(count(from));
        self.log().read(from, Filter::Facts, |seq, decoded| {
            if int(seq.0) >= to {
                return Ok(ControlFlow::Break(()));
            }
            let is_update = matches!(&decoded.event, Event::ChunkEmitted { chunk_type, .. }
                if chunk_type == chunk_type::THREAD_UPDATED);
            if !is_update {
                state.apply(&decoded.event);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    fn seqs(&self, sql: &str, values: impl Params) -> Result<Vec<Seq>, StoreError> {
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let rows = select
            .query_map(values, |row| row.get(0))
            .map_err(statement)?;
        rows.map(|seq| seq.map(|seq| Seq(count(seq))).map_err(statement))
            .collect()
    }

    fn log(&self) -> blocks::Log<'_> {
        blocks::Log {
            conn: self.conn,
            no: self.no,
        }
    }
}

/// The status with this code.
fn known<S: Coded>(code: u8) -> Result<S, StoreError> {
    S::of_code(code)
        .ok_or_else(|| StoreError::Damaged(format!("{code} is not the code of a status")))
}

fn one<T>(
    conn: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    select.query_row(values, read).optional().map_err(statement)
}

fn item(event: Event) -> Option<Item> {
    let Event::ItemCreated { item } = event else {
        return None;
    };
    Some(item)
}
