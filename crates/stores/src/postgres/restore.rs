//! The head of a log, from the tables and the end of the log: its cost is that of the running step and the waiting
//! triggers, however long the thread is.

use super::blocks::Log;
use super::connection::Conn;
use super::rows;
use super::value::{Param, get};
use crate::block::{Coded, Decoded};
use crate::value::{count, int};
use futures_util::try_join;
use std::ops::ControlFlow;
use store::{Filter, Head, StoreError, inherited};
use timeline::{
    Context, Event, ExecutionStatus, Item, Open, Payload, Seq, State, Thread, ThreadId, chunk_type,
};
use tokio_postgres::types::Type;

/// The end of the thread's log, with its state. The connection reads one snapshot.
pub(super) async fn head(conn: &Conn, thread: &ThreadId) -> Result<Head, StoreError> {
    let found = rows::row(conn, thread).await?;
    let log = Restored { conn, no: found.no };
    let row = found.row;
    // Queries that do not depend on each other are sent together.
    let ((mut thread, context), parts) = try_join!(log.made(), log.parts())?;
    thread.status = row.thread.status;
    thread.title = row.thread.title;
    thread.metadata = row.thread.metadata;
    Ok(Head {
        tenant: row.tenant,
        epoch: found.epoch,
        owner: found.owner,
        tail: row.tail,
        last_at: row.thread.updated_at.unwrap_or(row.thread.created_at),
        state: log.state(thread, context, parts).await?,
    })
}

/// The calls that a fork of a thread with this number has at this event of it.
pub(super) async fn inherited_calls(
    conn: &Conn,
    parent: i64,
    seq: Seq,
) -> Result<Option<Open>, StoreError> {
    let log = Restored { conn, no: parent };
    log.open(int(seq.0).saturating_add(1), false).await
}

struct Restored<'a> {
    conn: &'a Conn,
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

/// The parts of a state that the tables lead to.
struct Parts {
    /// The running execution, and the positions of its first and its last step.
    running: Option<(Running, (i64, i64))>,
    waiting: Vec<Item>,
    kept: Option<Item>,
    open: Option<Open>,
}

impl Restored<'_> {
    async fn parts(&self) -> Result<Parts, StoreError> {
        let sql =
            "SELECT seq, trigger_seq FROM thread_executions WHERE thread_no = $1 AND status = 0";
        let found = self.conn.first(sql, &[(&self.no, Type::INT8)]).await?;
        let running = found.map(|row| {
            Ok::<_, StoreError>(Running {
                seq: get(&row, 0)?,
                trigger: get(&row, 1)?,
            })
        });
        let running = running.transpose()?;
        let before = running.as_ref().map_or(i64::MAX, |running| running.seq);
        let (waiting, kept, open, steps) = try_join!(
            self.waiting(before, running.as_ref()),
            self.kept(before),
            self.open(before, true),
            self.steps(running.as_ref()),
        )?;
        Ok(Parts {
            running: running.zip(steps),
            waiting,
            kept,
            open,
        })
    }

    async fn state(
        &self,
        thread: Thread,
        context: Context,
        parts: Parts,
    ) -> Result<State, StoreError> {
        let Parts {
            running,
            waiting,
            kept,
            open,
        } = parts;
        let mut state = State::restored(thread, context, waiting, kept).with_open(open);
        if let Some((running, steps)) = running {
            self.apply_running(&mut state, &running, steps).await?;
        }
        Ok(state)
    }

    // The thread and its context as they were made, and the context's status.
    async fn made(&self) -> Result<(Thread, Context), StoreError> {
        let (mut thread, mut context) = (None, None);
        let with = |_, decoded: Decoded<'_>| {
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
        };
        let log = Log::Numbered(self.no);
        let sql = "SELECT status FROM thread_contexts WHERE thread_no = $1";
        let number: [Param<'_>; 1] = [(&self.no, Type::INT8)];
        let ((), status) = try_join!(
            log.read(self.conn, Seq(1), Filter::Facts, 1, with),
            self.conn.first(sql, &number),
        )?;
        let made = thread.zip(context);
        let (thread, mut context) =
            made.ok_or_else(|| StoreError::Damaged("a log without a beginning".into()))?;
        if let Some(row) = status {
            context.status = known(get(&row, 0)?)?;
        }
        Ok((thread, context))
    }

    // What waited before the running execution began, its own trigger included.
    async fn waiting(
        &self,
        before: i64,
        running: Option<&Running>,
    ) -> Result<Vec<Item>, StoreError> {
        let sql = "SELECT seq FROM thread_items WHERE thread_no = $1 AND waiting AND seq < $2
                   UNION ALL
                   SELECT seq FROM thread_items
                   WHERE thread_no = $1 AND seq = $3 AND has_run AND execution_seq IS NULL
                   ORDER BY seq";
        let trigger = running.map(|running| running.trigger);
        let values: [Param<'_>; 3] = [
            (&self.no, Type::INT8),
            (&before, Type::INT8),
            (&trigger, Type::INT8),
        ];
        self.items(sql, &values).await
    }

    /// The items at the positions that a query finds.
    async fn items(&self, sql: &str, values: &[Param<'_>]) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        for row in self.conn.query(sql, values).await? {
            let seq = Seq(count(get(&row, 0)?));
            let event = Log::Numbered(self.no).event(self.conn, seq).await?;
            items.extend(event.and_then(item));
        }
        Ok(items)
    }

    // The last item that nothing has answered when the running execution began.
    async fn kept(&self, before: i64) -> Result<Option<Item>, StoreError> {
        let sql = "SELECT seq FROM (
                       SELECT seq, answered_seq FROM thread_items
                       WHERE thread_no = $1 AND NOT has_run AND execution_seq IS NULL AND seq < $2
                       ORDER BY seq DESC LIMIT 1) last
                   WHERE answered_seq IS NULL OR answered_seq >= $2";
        let values: [Param<'_>; 2] = [(&self.no, Type::INT8), (&before, Type::INT8)];
        Ok(self.items(sql, &values).await?.pop())
    }

    // The calls that wait: the last finished execution left them open. A fork without executions and messages of its own
    // has the calls that were open at its position.
    async fn open(&self, before: i64, is_own: bool) -> Result<Option<Open>, StoreError> {
        let (mut no, mut before, mut is_own) = (self.no, before, is_own);
        loop {
            let parent = match self.left(no, before).await? {
                Left::Nothing => return Ok(None),
                Left::Open(open) if is_own => return Ok(Some(*open)),
                Left::Open(open) => return Ok(inherited(*open)),
                Left::NeverRan => {
                    let sql = "SELECT fork_no, fork_seq FROM thread_threads
                               WHERE no = $1 AND fork_no IS NOT NULL AND NOT EXISTS (
                                   SELECT 1 FROM thread_items i
                                   WHERE i.thread_no = $1 AND NOT i.has_run AND i.execution_seq IS NULL
                                   AND i.type = 0 AND i.seq < $2)";
                    let values: [Param<'_>; 2] = [(&no, Type::INT8), (&before, Type::INT8)];
                    self.conn.first(sql, &values).await?
                }
            };
            let Some(parent) = parent else {
                return Ok(None);
            };
            let seq: i64 = get(&parent, 1)?;
            (no, before, is_own) = (get(&parent, 0)?, seq.saturating_add(1), false);
        }
    }

    // What the last execution has left that was over then, unless it ended otherwise or a message was kept since it
    // began.
    async fn left(&self, no: i64, before: i64) -> Result<Left, StoreError> {
        let sql = "SELECT x.status, x.seq, (
                       SELECT (SELECT convert_from(
                                   substring(b.body FROM s.open_offset::int + 1 FOR s.open_length::int), 'UTF8')
                               FROM thread_blocks b WHERE b.thread_no = s.thread_no AND b.first = s.end_block)
                       FROM thread_steps s
                       WHERE s.thread_no = x.thread_no AND s.execution_seq = x.seq
                       ORDER BY s.iteration DESC LIMIT 1), EXISTS (
                       SELECT 1 FROM thread_items i
                       WHERE i.thread_no = $1 AND NOT i.has_run AND i.execution_seq IS NULL
                       AND i.type = 0 AND i.seq > x.seq AND i.seq < $2)
                   FROM thread_executions x
                   WHERE x.thread_no = $1 AND x.seq < $2 ORDER BY x.seq DESC LIMIT 1";
        let values: [Param<'_>; 2] = [(&no, Type::INT8), (&before, Type::INT8)];
        let Some(row) = self.conn.first(sql, &values).await? else {
            return Ok(Left::NeverRan);
        };
        let open_calls: Option<String> = get(&row, 2)?;
        let is_overtaken: bool = get(&row, 3)?;
        let Some(open_calls) = open_calls.filter(|_| !is_overtaken) else {
            return Ok(Left::Nothing);
        };
        let seq = Seq(count(get(&row, 1)?));
        let event = Log::Numbered(no).event(self.conn, seq).await?;
        let Some(Event::ExecutionCreated { mut execution }) = event else {
            return Ok(Left::Nothing);
        };
        execution.status = known(get(&row, 0)?)?;
        if execution.status != ExecutionStatus::Completed {
            return Ok(Left::Nothing);
        }
        let open_calls = Payload::from_text(open_calls)
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        Ok(Open::of(execution, Some(&open_calls))
            .map_or(Left::Nothing, |open| Left::Open(Box::new(open))))
    }

    /// The positions of the first and the last step of the running execution; its own, if it has none.
    async fn steps(&self, running: Option<&Running>) -> Result<Option<(i64, i64)>, StoreError> {
        let Some(running) = running else {
            return Ok(None);
        };
        let sql = "SELECT
                       (SELECT seq FROM thread_steps WHERE thread_no = $1 AND execution_seq = $2
                        ORDER BY iteration LIMIT 1),
                       (SELECT seq FROM thread_steps WHERE thread_no = $1 AND execution_seq = $2
                        ORDER BY iteration DESC LIMIT 1)";
        let values: [Param<'_>; 2] = [(&self.no, Type::INT8), (&running.seq, Type::INT8)];
        let row = self.conn.first(sql, &values).await?;
        let steps = row.map(|row| Ok::<_, StoreError>((get(&row, 0)?, get(&row, 1)?)));
        Ok(Some(match steps.transpose()? {
            Some((Some(first), Some(last))) => (first, last),
            _ => (running.seq, running.seq),
        }))
    }

    // Reads the start of the execution, the items recorded since, and the last step, without the steps between. The title
    // is known already.
    async fn apply_running(
        &self,
        state: &mut State,
        running: &Running,
        (first, last): (i64, i64),
    ) -> Result<(), StoreError> {
        self.apply_facts(state, running.seq, first).await?;
        let sql = "SELECT seq FROM thread_items WHERE thread_no = $1 AND seq >= $2 AND seq < $3 ORDER BY seq";
        let values: [Param<'_>; 3] = [
            (&self.no, Type::INT8),
            (&first, Type::INT8),
            (&last, Type::INT8),
        ];
        for row in self.conn.query(sql, &values).await? {
            let seq = Seq(count(get(&row, 0)?));
            if let Some(event) = Log::Numbered(self.no).event(self.conn, seq).await? {
                state.apply(&event);
            }
        }
        self.apply_facts(state, last, i64::MAX).await
    }

    /// Applies the facts between two positions, the last excluded.
    async fn apply_facts(&self, state: &mut State, from: i64, to: i64) -> Result<(), StoreError> {
        if from >= to {
            return Ok(());
        }
        let with = |seq: Seq, decoded: Decoded<'_>| {
            if int(seq.0) >= to {
                return Ok(ControlFlow::Break(()));
            }
            let is_update = matches!(&decoded.event, Event::ChunkEmitted { chunk_type, .. }
                if chunk_type == chunk_type::THREAD_UPDATED);
            if !is_update {
                state.apply(&decoded.event);
            }
            Ok(ControlFlow::Continue(()))
        };
        let from = Seq(count(from));
        let log = Log::Numbered(self.no);
        log.read(self.conn, from, Filter::Facts, 64, with).await
    }
}

/// The status with this code.
fn known<S: Coded>(code: i16) -> Result<S, StoreError> {
    let status = u8::try_from(code).ok().and_then(S::of_code);
    status.ok_or_else(|| StoreError::Damaged(format!("{code} is not the code of a status")))
}

fn item(event: Event) -> Option<Item> {
    let Event::ItemCreated { item } = event else {
        return None;
    };
    Some(item)
}
