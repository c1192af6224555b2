//! The head of a log, from the tables and the end of the log: its cost is that of the running
//! step and the waiting triggers, however long the thread is.

use super::error::statement;
use super::kind::{SHOWN, THREAD_UPDATED};
use super::rows::{decoded, status};
use super::value::{count, instant};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use store::{Head, StoreError, inherited};
use timeline::{
    Context, ContextStatus, Event, EventType, ExecutionStatus, Item, Open, Payload, Seq, State,
    Thread, ThreadId, ThreadStatus,
};

/// The end of the thread's log, with its state.
pub(super) fn head(conn: &Connection, thread: &ThreadId) -> Result<Head, StoreError> {
    let tx = conn.unchecked_transaction().map_err(statement)?;
    let sql = "SELECT no, tenant, head_seq, status, updated_at, title, metadata
               FROM thread_threads WHERE id = ?1";
    let found = one(&tx, sql, [thread.as_str()], |row| {
        Ok((
            row.get(0)?,
            row.get::<_, String>(1)?,
            row.get(2)?,
            row.get::<_, String>(3)?,
            row.get::<_, i64>(4)?,
            row.get::<_, Option<String>>(5)?,
            row.get::<_, Option<String>>(6)?,
        ))
    })?;
    let (no, tenant, tail, stands, last_at, title, metadata) = found.ok_or(StoreError::NotFound)?;
    let log = Log { conn: &tx, no };
    let (mut thread, context) = log.made()?;
    thread.status = status(ThreadStatus::ALL, &stands)?;
    thread.title = title;
    let metadata = metadata.map(Payload::from_text).transpose();
    thread.metadata = metadata.map_err(|error| StoreError::Damaged(error.to_string()))?;
    Ok(Head {
        tenant: tenant.as_str().into(),
        tail: Seq(count(tail)),
        last_at: instant(last_at)?,
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
    id: String,
    seq: i64,
    trigger: String,
}

impl Log<'_> {
    fn state(&self, thread: Thread, context: Context) -> Result<State, StoreError> {
        let sql = "SELECT id, seq, trigger_item_id FROM thread_executions
                   WHERE thread_no = ?1 AND status = 'executing'";
        let running = one(self.conn, sql, [self.no], |row| {
            Ok(Running {
                id: row.get(0)?,
                seq: row.get(1)?,
                trigger: row.get(2)?,
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
        let mut thread = None;
        let mut context = None;
        let sql = format!(
            "SELECT payload FROM thread_events
             WHERE thread_no = ?1 AND kind <> {SHOWN} AND kind IN ({}, {}) ORDER BY seq LIMIT 2",
            EventType::ThreadCreated.code(),
            EventType::ContextCreated.code(),
        );
        for event in self.events(&sql, [self.no])? {
            if let Event::ThreadCreated { thread: made } = event {
                thread = Some(made);
            } else if let Event::ContextCreated { context: made } = event {
                context = Some(made);
            }
        }
        let made = thread.zip(context);
        let (thread, mut context) =
            made.ok_or_else(|| StoreError::Damaged("a log without a beginning".into()))?;
        let sql = "SELECT status FROM thread_contexts WHERE thread_no = ?1";
        if let Some(stands) = one(self.conn, sql, [self.no], |row| row.get::<_, String>(0))? {
            context.status = status(ContextStatus::ALL, &stands)?;
        }
        Ok((thread, context))
    }

    // What waited before the running execution began, its own trigger included.
    fn waiting(&self, before: i64, running: Option<&Running>) -> Result<Vec<Item>, StoreError> {
        let sql = "SELECT e.payload FROM thread_events e
                   WHERE e.thread_no = ?1 AND e.seq IN (
                       SELECT seq FROM thread_items WHERE thread_no = ?1 AND waiting = 1 AND seq < ?2
                       UNION ALL
                       SELECT seq FROM thread_items
                       WHERE thread_no = ?1 AND id = ?3 AND run IS NOT NULL AND execution_id IS NULL)
                   ORDER BY e.seq";
        let trigger = running.map(|running| running.trigger.as_str());
        let events = self.events(sql, params![self.no, before, trigger])?;
        Ok(events.into_iter().filter_map(item).collect())
    }

    // The last item that nothing has answered when the running execution began.
    fn kept(&self, before: i64) -> Result<Option<Item>, StoreError> {
        let sql = "SELECT e.payload FROM thread_events e
                   WHERE e.thread_no = ?1 AND e.seq = (
                       SELECT i.seq FROM thread_items i
                       WHERE i.thread_no = ?1 AND i.run IS NULL AND i.execution_id IS NULL AND i.seq < ?2
                       ORDER BY i.seq DESC LIMIT 1)
                   AND NOT EXISTS (
                       SELECT 1 FROM thread_executions x JOIN thread_items i
                       ON i.thread_no = x.thread_no AND i.id = x.trigger_item_id
                       WHERE x.thread_no = ?1 AND i.seq = e.seq AND x.seq < ?2)";
        Ok(self
            .events(sql, [self.no, before])?
            .into_iter()
            .find_map(item))
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
                                   WHERE i.thread_no = ?1 AND i.run IS NULL AND i.execution_id IS NULL
                                   AND i.type = 'message' AND i.seq < ?2)";
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
        let sql = "SELECT x.status, e.payload, (
                       SELECT s.open_calls FROM thread_steps s
                       WHERE s.thread_no = x.thread_no AND s.execution_id = x.id
                       ORDER BY s.iteration DESC LIMIT 1), EXISTS (
                       SELECT 1 FROM thread_items i
                       WHERE i.thread_no = ?1 AND i.run IS NULL AND i.execution_id IS NULL
                       AND i.type = 'message' AND i.seq > x.seq AND i.seq < ?2)
                   FROM thread_executions x JOIN thread_events e
                   ON e.thread_no = x.thread_no AND e.seq = x.seq
                   WHERE x.thread_no = ?1 AND x.seq = (
                       SELECT max(seq) FROM thread_executions WHERE thread_no = ?1 AND seq < ?2)";
        let found = one(self.conn, sql, [no, before], |row| {
            Ok((
                row.get::<_, String>(0)?,
                decoded(row.get_ref(1)?.as_str()?),
                row.get::<_, Option<String>>(2)?,
                row.get::<_, bool>(3)?,
            ))
        })?;
        let Some((stands, event, open_calls, is_overtaken)) = found else {
            return Ok(Left::NeverRan);
        };
        let Some(open_calls) = open_calls.filter(|_| !is_overtaken) else {
            return Ok(Left::Nothing);
        };
        let Event::ExecutionCreated { mut execution } = event? else {
            return Ok(Left::Nothing);
        };
        execution.status = status(ExecutionStatus::ALL, &stands)?;
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
        let sql = "SELECT min(seq), max(seq) FROM (
                       SELECT * FROM (SELECT seq FROM thread_steps WHERE thread_no = ?1 AND execution_id = ?2
                                      ORDER BY iteration LIMIT 1)
                       UNION ALL
                       SELECT * FROM (SELECT seq FROM thread_steps WHERE thread_no = ?1 AND execution_id = ?2
                                      ORDER BY iteration DESC LIMIT 1))";
        let steps = one(self.conn, sql, params![self.no, running.id], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        let (first, last) = match steps {
            Some((Some(first), Some(last))) => (first, last),
            _ => (running.seq, running.seq),
        };
        let facts = format!(
            "SELECT payload FROM thread_events
             WHERE thread_no = ?1 AND kind <> {SHOWN} AND kind <> {THREAD_UPDATED}
             AND seq >= ?2 AND seq < ?3 ORDER BY seq"
        );
        let items = "SELECT e.payload FROM thread_items i JOIN thread_events e
                     ON e.thread_no = i.thread_no AND e.seq = i.seq
                     WHERE i.thread_no = ?1 AND i.seq >= ?2 AND i.seq < ?3 ORDER BY i.seq";
        let ranges = [
            (facts.as_str(), running.seq, first),
            (items, first, last),
            (&facts, last, i64::MAX),
        ];
        for (sql, from, to) in ranges {
            for event in self.events(sql, [self.no, from, to])? {
                state.apply(&event);
            }
        }
        Ok(())
    }

    fn events(&self, sql: &str, values: impl Params) -> Result<Vec<Event>, StoreError> {
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let payload = |row: &Row<'_>| Ok(decoded(row.get_ref(0)?.as_str()?));
        let rows = select.query_map(values, payload).map_err(statement)?;
        rows.map(|row| row.map_err(statement)?).collect()
    }
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
