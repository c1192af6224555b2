//! Executes the row changes of an append ([`store::rows`]).

use super::blocks::{Blocks, StoredRange};
use super::error::{making, statement};
use super::sums;
use super::value::{compacted, int, interruption, nanos};
use crate::block::Coded;
use rusqlite::{Connection, OptionalExtension, Params, params};
use std::cell::RefCell;
use std::collections::BTreeMap;
use store::StoreError;
use store::rows::{
    ContextRow, ExecutionChange, ExecutionRow, ItemChange, ItemRow, PartRow, RowChange, StepAnswer,
    StepChange, StepEnd, StepRow,
};
use timeline::{Item, Machine as _, Payload, Seq, Thread, ThreadStatus};

/// The tables of one thread.
pub(super) struct Tables<'a> {
    pub(super) conn: &'a Connection,
    /// The number of the thread.
    pub(super) thread: i64,
    /// The blocks of the events whose changes are executed.
    pub(super) blocks: &'a Blocks,
    /// Whether the full-text index and the list of what waits are updated too.
    pub(super) is_indexed: bool,
    /// Whether sums of the thread's row are checked and written.
    pub(super) is_sealed: bool,
    /// The positions of executions of which not every row is written yet.
    executions: RefCell<BTreeMap<String, i64>>,
}

/// Identifies a step in the tables: its execution's event and its number in the execution.
type StepKey = (i64, i64);

/// A step that a part's text is read from, and the part's number in it.
pub(super) type PartKey = (i64, i64, u32);

impl<'a> Tables<'a> {
    /// The tables that reference `thread_threads` and are derived from the log, children first.
    pub(super) const DERIVED: [&'static str; 7] = [
        "thread_waits",
        "thread_removals",
        "thread_parts",
        "thread_steps",
        "thread_executions",
        "thread_items",
        "thread_contexts",
    ];

    pub(super) fn of(conn: &'a Connection, thread: i64, blocks: &'a Blocks) -> Self {
        Self {
            conn,
            thread,
            blocks,
            is_indexed: true,
            is_sealed: true,
            executions: RefCell::default(),
        }
    }

    /// Executes changes.
    pub(super) fn execute_all(&self, changes: &[RowChange<'_>]) -> Result<(), StoreError> {
        // An item names its execution, which is written after it.
        for change in changes {
            if let RowChange::Execution(row) = change {
                self.note_execution(row.execution.id.as_str(), row.seq);
            }
        }
        let changes_row = |change: &RowChange<'_>| {
            matches!(
                change,
                RowChange::Thread(..) | RowChange::ThreadTitle(_) | RowChange::ThreadMetadata(_)
            )
        };
        let is_sealed = self.is_sealed && changes.iter().any(changes_row);
        let is_made = |change: &RowChange<'_>| matches!(change, RowChange::Thread(..));
        if is_sealed && !changes.iter().any(is_made) {
            sums::check_made(self.conn, self.thread)?;
        }
        changes.iter().try_for_each(|change| self.execute(change))?;
        if is_sealed {
            sums::seal_made(self.conn, self.thread)?;
        }
        Ok(())
    }

    /// Notes the position of an execution whose row is not written yet.
    pub(super) fn note_execution(&self, id: &str, seq: Seq) {
        let mut executions = self.executions.borrow_mut();
        executions.insert(id.to_owned(), int(seq.0));
    }

    fn execute(&self, change: &RowChange<'_>) -> Result<(), StoreError> {
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
                self.run(sql, params![thread, metadata.as_ref().map(Payload::text)])
            }
            RowChange::Context(row) => self.context(row),
            RowChange::ContextStatus(to, at) => {
                let sql =
                    "UPDATE thread_contexts SET status = ?2, updated_at = ?3 WHERE thread_no = ?1";
                self.run(sql, params![thread, to.code(), nanos(*at)])
            }
            RowChange::Item(row) => self.item(row),
            RowChange::ItemChange(id, change) => self.item_change(id, change),
            RowChange::Execution(row) => self.execution(row),
            RowChange::ExecutionChange(id, change) => self.execution_change(id, change),
            RowChange::Step(row) => self.step(row),
            RowChange::StepChange(id, change) => self.step_change(id, change),
            RowChange::Part(row) => self.part(row),
            RowChange::PartContent(row) => self.part_content(row),
            RowChange::ToolStarted {
                step_id,
                call_id,
                at,
            } => {
                let Some((execution, iteration)) = self.step_key(step_id)? else {
                    return Ok(());
                };
                let sql = "UPDATE thread_parts SET started_at = ?5
                           WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3 AND call_id = ?4";
                let at = nanos(*at);
                self.run(sql, params![thread, execution, iteration, call_id, at])
            }
            RowChange::PartsDeleted(step_id) => {
                let Some((execution, iteration)) = self.step_key(step_id)? else {
                    return Ok(());
                };
                self.remove_parts((execution, iteration))?;
                let sql = "DELETE FROM thread_parts
                           WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3";
                self.run(sql, params![thread, execution, iteration])
            }
            RowChange::Removed(what, seq) => {
                self.remove_texts(what)?;
                let sql = "INSERT OR IGNORE INTO thread_removals (thread_no, target, seq)
                           VALUES (?1, ?2, ?3)";
                self.run(sql, params![thread, what.to_string(), int(seq.0)])
            }
            RowChange::Compacted(seq) => {
                let sql = "INSERT OR IGNORE INTO thread_removals (thread_no, target, seq)
                           VALUES (?1, ?2, ?3)";
                self.run(sql, params![thread, compacted(*seq), int(seq.0)])
            }
            RowChange::MayAsk(seq) => self.note_ask(*seq),
        }
    }

    /// The key of a step. The last steps are searched first.
    pub(super) fn step_key(&self, id: &str) -> Result<Option<StepKey>, StoreError> {
        let sql =
            "SELECT execution_seq, iteration FROM thread_steps WHERE thread_no = ?1 AND id = ?2
                   ORDER BY execution_seq DESC, iteration DESC LIMIT 1";
        self.one(sql, params![self.thread, id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    fn execution_seq(&self, id: &str) -> Result<Option<i64>, StoreError> {
        if let Some(seq) = self.executions.borrow().get(id) {
            return Ok(Some(*seq));
        }
        let sql = "SELECT seq FROM thread_executions WHERE thread_no = ?1 AND id = ?2
                   ORDER BY seq DESC LIMIT 1";
        self.one(sql, params![self.thread, id], |row| row.get(0))
    }

    fn item_seq(&self, id: &str) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT seq FROM thread_items WHERE thread_no = ?1 AND id = ?2";
        self.one(sql, params![self.thread, id], |row| row.get(0))
    }

    pub(super) fn one<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let found = select.query_row(values, read);
        found.optional().map_err(statement)
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
            thread.metadata.as_ref().map(Payload::text),
            nanos(thread.created_at),
            fork.map(|fork| fork.thread_id.as_str()),
            fork.map(|fork| int(fork.seq.0)),
        ];
        self.run(sql, values)?;
        self.add_title(thread.title.as_deref())
    }

    fn context(&self, row: &ContextRow<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_contexts
                       (thread_no, id, key, status, block, content_offset, content_length, created_at, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let made = row.context;
        let content = self.range(made.content.as_ref());
        let values = params![
            self.thread,
            made.id.as_str(),
            made.key,
            row.status.code(),
            content.map(|it| it.block),
            content.map(|it| it.offset),
            content.map(|it| it.length),
            nanos(made.created_at),
            row.updated_at.map(nanos),
        ];
        self.make(made.id.as_str(), sql, values)
    }

    fn item(&self, row: &ItemRow<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_items
                       (thread_no, seq, context_no, id, type, role, status, channel, execution_seq, has_run,
                        waiting, place, answered_seq, block, content_offset, content_length, created_at, updated_at)
                   VALUES (?1, ?2, ?1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
        let Item { id, .. } = row.item;
        let content = self.range(row.item.content.as_ref());
        let values = params![
            self.thread,
            int(row.seq.0),
            id.as_str(),
            row.item.item_type.code(),
            row.item.role.map(Coded::code),
            row.status.code(),
            row.item.channel,
            self.written_by(row.item)?,
            row.item.run.is_some(),
            row.waiting,
            row.position.map(|place| int(place.0)),
            row.answered.map(|seq| int(seq.0)),
            content.map(|it| it.block),
            content.map(|it| it.offset),
            content.map(|it| it.length),
            nanos(row.item.created_at),
            row.updated_at.map(nanos),
        ];
        self.make(id.as_str(), sql, values)?;
        self.add_item(row.seq, row.item)
    }

    /// The position of the execution that wrote an item; 0 if the log does not have the execution.
    fn written_by(&self, item: &Item) -> Result<Option<i64>, StoreError> {
        let Some(id) = &item.execution_id else {
            return Ok(None);
        };
        Ok(Some(self.execution_seq(id.as_str())?.unwrap_or(0)))
    }

    fn item_change(&self, id: &str, change: &ItemChange) -> Result<(), StoreError> {
        let thread = self.thread;
        if let Some((status, at)) = change.status {
            let sql = "UPDATE thread_items SET status = ?3, updated_at = ?4
                       WHERE thread_no = ?1 AND id = ?2";
            self.run(sql, params![thread, id, status.code(), nanos(at)])?;
        }
        if let Some(started) = change.started {
            let sql = "UPDATE thread_items SET
                           place = CASE WHEN waiting = 1 THEN ?3 ELSE place END,
                           answered_seq = CASE WHEN waiting = 0 AND has_run = 0 AND execution_seq IS NULL
                                          THEN coalesce(answered_seq, ?3) ELSE answered_seq END,
                           waiting = 0
                       WHERE thread_no = ?1 AND id = ?2";
            self.run(sql, params![thread, id, int(started.0)])?;
        }
        Ok(())
    }

    fn execution(&self, row: &ExecutionRow<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_executions
                       (thread_no, seq, context_no, id, trigger_seq, reaction_seq, workflow_run_id, status, agent,
                        handoffs, interruption_reason, interruption_detail, end_seq, created_at, updated_at)
                   VALUES (?1, ?2, ?1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let execution = row.execution;
        let (reason, detail) = interruption(row.interruption);
        let run = execution.run.as_ref();
        let values = params![
            self.thread,
            int(row.seq.0),
            execution.id.as_str(),
            self.item_seq(execution.trigger_item_id.as_str())?,
            self.item_seq(execution.reaction_item_id.as_str())?,
            execution.workflow_run_id,
            row.status.code(),
            run.and_then(|run| run.str_field("agent")),
            i64::from(execution.follows_handoff()),
            reason,
            detail,
            row.end_seq.map(|seq| int(seq.0)),
            nanos(execution.created_at),
            row.updated_at.map(nanos),
        ];
        self.make(execution.id.as_str(), sql, values)
    }

    fn execution_change(&self, id: &str, change: &ExecutionChange<'_>) -> Result<(), StoreError> {
        let Some(seq) = self.execution_seq(id)? else {
            return Ok(());
        };
        let sql = "UPDATE thread_executions
                   SET status = coalesce(?3, status), updated_at = coalesce(?4, updated_at),
                       interruption_reason = coalesce(?5, interruption_reason),
                       interruption_detail = coalesce(?6, interruption_detail), end_seq = coalesce(?7, end_seq)
                   WHERE thread_no = ?1 AND seq = ?2";
        let (reason, detail) = interruption(change.status.and_then(|(_, why, _)| why));
        let values = params![
            self.thread,
            seq,
            change.status.map(|(to, ..)| to.code()),
            change.status.map(|(.., at)| nanos(at)),
            reason,
            detail,
            change.end_seq.map(|seq| int(seq.0)),
        ];
        self.run(sql, values)
    }

    fn step(&self, row: &StepRow<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_steps
                       (thread_no, execution_seq, iteration, seq, id, event_seq, status, input_tokens,
                        output_tokens, created_at, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, ?8, ?9)";
        let step = row.step;
        let execution = self.execution_seq(step.execution_id.as_str())?;
        let values = params![
            self.thread,
            execution,
            step.iteration,
            int(row.seq.0),
            step.id.as_str(),
            self.item_seq(step.event_id.as_str())?,
            step.status.code(),
            nanos(step.created_at),
            step.updated_at.map(nanos),
        ];
        self.make(step.id.as_str(), sql, values)?;
        match execution {
            Some(execution) => self.change_step((execution, step.iteration.into()), &row.change),
            None => Ok(()),
        }
    }

    fn step_change(&self, id: &str, change: &StepChange<'_>) -> Result<(), StoreError> {
        match self.step_key(id)? {
            Some(key) => self.change_step(key, change),
            None => Ok(()),
        }
    }

    fn change_step(&self, key: StepKey, change: &StepChange<'_>) -> Result<(), StoreError> {
        if let Some(answer) = &change.answer {
            self.step_answer(key, answer, change.tokens)?;
        }
        match &change.end {
            Some(end) => self.step_end(key, end),
            None => Ok(()),
        }
    }

    fn step_answer(
        &self,
        (execution, iteration): StepKey,
        answer: &StepAnswer<'_>,
        (input, output): (u64, u64),
    ) -> Result<(), StoreError> {
        let sql = "UPDATE thread_steps
                   SET answer_seq = ?4, answer_at = ?5, answer_block = ?6, answer_offset = ?7, answer_length = ?8,
                       input_tokens = min(input_tokens + ?9, 1 << 60),
                       output_tokens = min(output_tokens + ?10, 1 << 60)
                   WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3";
        let data = self.range(answer.data);
        let values = params![
            self.thread,
            execution,
            iteration,
            int(answer.seq.0),
            nanos(answer.at),
            data.map(|it| it.block),
            data.map(|it| it.offset),
            data.map(|it| it.length),
            int(input),
            int(output),
        ];
        self.run(sql, values)
    }

    fn step_end(
        &self,
        (execution, iteration): StepKey,
        end: &StepEnd<'_>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE thread_steps
                   SET status = ?4, updated_at = ?5, end_seq = ?6, end_block = ?7, calls_offset = ?8,
                       calls_length = ?9, results_offset = ?10, results_length = ?11, open_offset = ?12,
                       open_length = ?13, continue_loop = ?14, error_text = ?15
                   WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3";
        let outcome = end.outcome;
        let calls = self.range(outcome.tool_calls.as_ref());
        let results = self.range(outcome.tool_execution_results.as_ref());
        let open = self.range(outcome.open_calls.as_ref());
        let block = calls.or(results).or(open).map(|it| it.block);
        let values = params![
            self.thread,
            execution,
            iteration,
            end.status.code(),
            nanos(end.at),
            int(end.seq.0),
            block,
            calls.map(|it| it.offset),
            calls.map(|it| it.length),
            results.map(|it| it.offset),
            results.map(|it| it.length),
            open.map(|it| it.offset),
            open.map(|it| it.length),
            outcome.continue_loop,
            outcome.error_text,
        ];
        self.run(sql, values)
    }

    fn part(&self, row: &PartRow<'_>) -> Result<(), StoreError> {
        let key = format!("{}:{}", row.step_id, row.idx);
        let sql = "INSERT INTO thread_parts
                       (thread_no, execution_seq, iteration, idx, seq, type, call_id, block, part_offset,
                        part_length, created_at, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let step = self.step_key(row.step_id)?;
        let part = self.range(Some(row.part));
        let values = params![
            self.thread,
            step.map(|(execution, _)| execution),
            step.map(|(_, iteration)| iteration),
            row.idx,
            int(row.seq.0),
            row.part_type,
            row.call_id,
            part.map(|it| it.block),
            part.map(|it| it.offset),
            part.map(|it| it.length),
            nanos(row.created_at),
            nanos(row.updated_at),
        ];
        self.make(&key, sql, values)?;
        self.add_part(row.seq, row.part.text())
    }

    fn part_content(&self, row: &PartRow<'_>) -> Result<(), StoreError> {
        let Some((execution, iteration)) = self.step_key(row.step_id)? else {
            return Ok(());
        };
        self.remove_part((execution, iteration, row.idx))?;
        let sql = "UPDATE thread_parts
                   SET seq = ?5, type = ?6, call_id = ?7, block = ?8, part_offset = ?9, part_length = ?10,
                       updated_at = ?11
                   WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3 AND idx = ?4";
        let part = self.range(Some(row.part));
        let values = params![
            self.thread,
            execution,
            iteration,
            row.idx,
            int(row.seq.0),
            row.part_type,
            row.call_id,
            part.map(|it| it.block),
            part.map(|it| it.offset),
            part.map(|it| it.length),
            nanos(row.updated_at),
        ];
        self.run(sql, values)?;
        self.add_part(row.seq, row.part.text())
    }

    fn range(&self, of: Option<&Payload>) -> Option<StoredRange> {
        self.blocks.range(of?)
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
