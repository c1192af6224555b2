//! Executes the row changes of an append ([`store::rows`]).

use super::error::{making, statement};
use super::spelling::{item_type, role, text};
use super::trace;
use super::value::{int, nanos};
use rusqlite::{Connection, Params, params};
use store::StoreError;
use store::rows::{ContextRow, ExecutionRow, ItemRow, PartRow, RowChange, StepRow};
use timeline::{ExecutionId, Interruption, Machine, StepOutcome, Thread, ThreadStatus};

/// The tables of one thread.
pub(super) struct Tables<'a> {
    pub(super) conn: &'a Connection,
    pub(super) thread: i64,
}

impl<'a> Tables<'a> {
    /// The tables that reference `thread_threads` and are derived from the log, children first.
    pub(super) const DERIVED: [&'static str; 9] = [
        "thread_waits",
        "thread_trace_events",
        "thread_trace_spans",
        "thread_trace_runs",
        "thread_parts",
        "thread_steps",
        "thread_executions",
        "thread_items",
        "thread_contexts",
    ];

    pub(super) fn of(conn: &'a Connection, thread: i64) -> Self {
        Self { conn, thread }
    }

    /// Executes one change.
    pub(super) fn execute(&self, change: &RowChange<'_>) -> Result<(), StoreError> {
        let thread = self.thread;
        match change {
            RowChange::Thread(made, status) => self.thread(made, *status),
            RowChange::ThreadStatus(to) => {
                let sql = "UPDATE thread_threads SET status = ?2 WHERE no = ?1";
                self.run(sql, params![thread, to.name()])
            }
            RowChange::ThreadTitle(title) => {
                self.remove_title()?;
                let sql = "UPDATE thread_threads SET title = ?2 WHERE no = ?1";
                self.run(sql, params![thread, title])?;
                self.add_title(title.as_deref())
            }
            RowChange::ThreadMetadata(metadata) => {
                let sql = "UPDATE thread_threads SET metadata = ?2 WHERE no = ?1";
                self.run(sql, params![thread, text(metadata.as_ref())])
            }
            RowChange::Context(row) => self.context(row),
            RowChange::ContextStatus(id, to, at) => {
                let sql = "UPDATE thread_contexts SET status = ?3, updated_at = ?4 WHERE thread_no = ?1 AND id = ?2";
                self.run(sql, params![thread, id, to.name(), nanos(*at)])
            }
            RowChange::Item(row) => self.item(row),
            RowChange::ItemStatus(id, to, at) => {
                let sql = "UPDATE thread_items SET status = ?3, updated_at = ?4 WHERE thread_no = ?1 AND id = ?2";
                self.run(sql, params![thread, id, to.name(), nanos(*at)])
            }
            RowChange::ItemStarted(id, place) => {
                let sql = "UPDATE thread_items SET waiting = 0, place = ?3
                           WHERE thread_no = ?1 AND id = ?2 AND waiting = 1";
                self.run(sql, params![thread, id, int(place.0)])
            }
            RowChange::Execution(row) => self.execution(row),
            RowChange::ExecutionStatus(id, to, why, at) => {
                self.execution_status(id, to.name(), *why, nanos(*at))
            }
            RowChange::ExecutionEnd(id, seq) => {
                let sql =
                    "UPDATE thread_executions SET end_seq = ?3 WHERE thread_no = ?1 AND id = ?2";
                self.run(sql, params![thread, id, int(seq.0)])
            }
            RowChange::Step(row) => self.step(row),
            RowChange::StepStatus(id, to, outcome, at) => {
                self.step_status(id, to.name(), outcome, nanos(*at))
            }
            RowChange::Part(row) => self.part(row),
            RowChange::PartContent(row) => {
                self.remove_part((row.step_id, row.idx))?;
                let sql = "UPDATE thread_parts SET type = ?4, part = ?5, updated_at = ?6, seq = ?7
                           WHERE thread_no = ?1 AND step_id = ?2 AND idx = ?3";
                let (part, at, seq) = (row.part.text(), nanos(row.updated_at), int(row.seq.0));
                self.run(
                    sql,
                    params![thread, row.step_id, row.idx, row.part_type, part, at, seq],
                )?;
                self.add_part(seq, part)
            }
            RowChange::Removed(what) => self.remove_texts(what),
            RowChange::MayAsk(seq) => self.note_ask(*seq),
            RowChange::PartsDeleted(step) => {
                self.remove_parts(step)?;
                let sql = "DELETE FROM thread_parts WHERE thread_no = ?1 AND step_id = ?2";
                self.run(sql, params![thread, step])
            }
            RowChange::Trace(change) => trace::execute(self, change),
        }
    }

    fn thread(&self, thread: &Thread, status: ThreadStatus) -> Result<(), StoreError> {
        self.remove_title()?;
        let sql = "UPDATE thread_threads
                   SET key = ?2, status = ?3, title = ?4, metadata = ?5, created_at = ?6,
                       fork_no = (SELECT no FROM thread_threads WHERE id = ?7), fork_seq = ?8
                   WHERE no = ?1";
        let fork = thread.fork.as_ref();
        let values = params![
            self.thread,
            thread.key,
            status.name(),
            thread.title,
            text(thread.metadata.as_ref()),
            nanos(thread.created_at),
            fork.map(|fork| fork.thread_id.as_str()),
            fork.map(|fork| int(fork.seq.0)),
        ];
        self.run(sql, values)?;
        self.add_title(thread.title.as_deref())
    }

    fn context(&self, row: &ContextRow<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_contexts (id, thread_no, key, status, content, created_at, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let context = row.context;
        let values = params![
            context.id.as_str(),
            self.thread,
            context.key,
            row.status.name(),
            text(context.content.as_ref()),
            nanos(context.created_at),
            row.updated_at.map(nanos),
        ];
        self.make(context.id.as_str(), sql, values)
    }

    fn item(&self, row: &ItemRow<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_items
                       (thread_no, id, context_id, seq, type, role, status, channel, content,
                        execution_id, run, waiting, metadata, created_at, updated_at, place)
                   SELECT ?1, ?2, (SELECT id FROM thread_contexts WHERE thread_no = ?1), ?3, ?4, ?5,
                          ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15";
        let item = row.item;
        let values = params![
            self.thread,
            item.id.as_str(),
            int(row.seq.0),
            item_type(item.item_type),
            item.role.map(role),
            row.status.name(),
            item.channel,
            text(item.content.as_ref()),
            item.execution_id.as_ref().map(ExecutionId::as_str),
            text(item.run.as_ref()),
            row.waiting,
            text(item.metadata.as_ref()),
            nanos(item.created_at),
            row.updated_at.map(nanos),
            row.position.map(|place| int(place.0)),
        ];
        self.make(item.id.as_str(), sql, values)?;
        self.add_item(int(row.seq.0), item)
    }

    fn execution(&self, row: &ExecutionRow<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_executions
                       (thread_no, id, context_id, seq, trigger_item_id, reaction_item_id, workflow_run_id,
                        status, interruption_reason, interruption_detail, run, created_at, updated_at, end_seq)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let execution = row.execution;
        let (reason, detail) = interruption(row.interruption);
        let values = params![
            self.thread,
            execution.id.as_str(),
            execution.context_id.as_str(),
            int(row.seq.0),
            execution.trigger_item_id.as_str(),
            execution.reaction_item_id.as_str(),
            execution.workflow_run_id,
            row.status.name(),
            reason,
            detail,
            text(execution.run.as_ref()),
            nanos(execution.created_at),
            row.updated_at.map(nanos),
            row.end_seq.map(|seq| int(seq.0)),
        ];
        self.make(execution.id.as_str(), sql, values)
    }

    fn execution_status(
        &self,
        id: &str,
        to: &str,
        why: Option<&Interruption>,
        at: i64,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE thread_executions
                   SET status = ?3, updated_at = ?4, interruption_reason = ?5, interruption_detail = ?6
                   WHERE thread_no = ?1 AND id = ?2";
        let (reason, detail) = interruption(why);
        self.run(sql, params![self.thread, id, to, at, reason, detail])
    }

    fn step(&self, row: &StepRow<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_steps
                       (thread_no, id, execution_id, iteration, seq, status, event_id, created_at, updated_at,
                        tool_calls, tool_execution_results, continue_loop, error_text, agent_state, open_calls)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
        let (step, outcome) = (row.step, row.outcome);
        let (calls, results) = calls_of(outcome);
        let values = params![
            self.thread,
            step.id.as_str(),
            step.execution_id.as_str(),
            step.iteration,
            int(row.seq.0),
            row.status.name(),
            step.event_id.as_str(),
            nanos(step.created_at),
            row.updated_at.map(nanos),
            calls,
            results,
            outcome.and_then(|outcome| outcome.continue_loop),
            outcome.and_then(|outcome| outcome.error_text.as_deref()),
            outcome.and_then(|outcome| text(outcome.agent_state.as_ref())),
            outcome.and_then(|outcome| text(outcome.open_calls.as_ref())),
        ];
        self.make(step.id.as_str(), sql, values)
    }

    fn step_status(
        &self,
        id: &str,
        to: &str,
        outcome: &StepOutcome,
        at: i64,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE thread_steps
                   SET status = ?3, updated_at = ?4, tool_calls = ?5, tool_execution_results = ?6,
                       continue_loop = ?7, error_text = ?8, agent_state = ?9, open_calls = ?10
                   WHERE thread_no = ?1 AND id = ?2";
        let (calls, results) = calls_of(Some(outcome));
        let values = params![
            self.thread,
            id,
            to,
            at,
            calls,
            results,
            outcome.continue_loop,
            outcome.error_text,
            text(outcome.agent_state.as_ref()),
            text(outcome.open_calls.as_ref()),
        ];
        self.run(sql, values)
    }

    fn part(&self, row: &PartRow<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_parts
                       (thread_no, step_id, idx, key, type, part, created_at, updated_at, seq)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let values = params![
            self.thread,
            row.step_id,
            row.idx,
            row.key,
            row.part_type,
            row.part.text(),
            nanos(row.created_at),
            nanos(row.updated_at),
            int(row.seq.0),
        ];
        self.make(row.key, sql, values)?;
        self.add_part(int(row.seq.0), row.part.text())
    }

    pub(super) fn run(&self, sql: &str, values: impl Params) -> Result<(), StoreError> {
        self.prepared(sql, values).map_err(statement)
    }

    fn make(&self, id: &str, sql: &str, values: impl Params) -> Result<(), StoreError> {
        self.prepared(sql, values).map_err(making(id))
    }

    fn prepared(&self, sql: &str, values: impl Params) -> Result<(), rusqlite::Error> {
        self.conn.prepare_cached(sql)?.execute(values).map(|_| ())
    }
}

fn interruption(why: Option<&Interruption>) -> (Option<&str>, Option<&str>) {
    let detail = why.and_then(|why| why.detail.as_deref());
    (why.map(|why| why.reason.as_str()), detail)
}

/// The tool calls of a step and their results, as JSON.
fn calls_of(outcome: Option<&StepOutcome>) -> (Option<String>, Option<String>) {
    let json = |value: Option<&serde_json::Value>| value.map(ToString::to_string);
    (
        json(outcome.and_then(|outcome| outcome.tool_calls.as_ref())),
        json(outcome.and_then(|outcome| outcome.tool_execution_results.as_ref())),
    )
}
