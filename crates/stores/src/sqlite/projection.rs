//! The tables of EK §9, written from the events.

use super::error::{making, statement};
use super::spelling::{PartTag, item_type, role, text};
use super::trace::Trace;
use super::value::{int, nanos};
use rusqlite::{Connection, Params, params};
use store::StoreError;
use timeline::{
    Context, Event, Execution, ExecutionId, Interruption, Item, Machine, Payload, Step,
    StepOutcome, Thread, ThreadUpdate, chunk_type,
};

/// The tables of one thread.
pub(super) struct Tables<'a> {
    pub(super) conn: &'a Connection,
    pub(super) thread: i64,
}

/// An event in the middle of being written: its number, its instant, itself.
type Placed<'e> = (i64, i64, &'e Event);

impl<'a> Tables<'a> {
    /// What hangs on `thread_threads` and comes from the log, children first.
    pub(super) const DERIVED: [&'static str; 8] = [
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

    /// Writes what the events come to. Contexts and items go first: an execution names its
    /// reaction item before the log does, and the links hold at every moment.
    pub(super) fn write<'e, I: Iterator<Item = Placed<'e>>>(
        &self,
        events: impl Fn() -> I,
    ) -> Result<(), StoreError> {
        events().try_for_each(|(seq, _, event)| self.write_first(seq, event))?;
        events().try_for_each(|(seq, at, event)| self.write_then(seq, at, event))
    }

    /// What others refer to.
    pub(super) fn write_first(&self, seq: i64, event: &Event) -> Result<(), StoreError> {
        if let Event::ContextCreated { context } = event {
            self.context(context)
        } else if let Event::ItemCreated { item } = event {
            self.item(seq, item)
        } else {
            Ok(())
        }
    }

    /// Everything else.
    pub(super) fn write_then(&self, seq: i64, at: i64, event: &Event) -> Result<(), StoreError> {
        let trace = Trace {
            tables: self,
            seq,
            at,
        };
        match event {
            Event::ThreadCreated { thread } => self.thread(thread),
            Event::ThreadStatusChanged { to, .. } => {
                let sql = "UPDATE thread_threads SET status = ?2 WHERE no = ?1";
                self.run(sql, params![self.thread, to.name()])
            }
            Event::ContextStatusChanged { context_id, to, .. } => {
                let sql = "UPDATE thread_contexts SET status = ?3, updated_at = ?4 WHERE thread_no = ?1 AND id = ?2";
                self.run(
                    sql,
                    params![self.thread, context_id.as_str(), to.name(), at],
                )
            }
            Event::ItemStatusChanged { item_id, to, .. } => {
                let sql = "UPDATE thread_items SET status = ?3, updated_at = ?4 WHERE thread_no = ?1 AND id = ?2";
                self.run(sql, params![self.thread, item_id.as_str(), to.name(), at])
            }
            Event::ExecutionCreated { execution } => {
                self.execution(seq, execution)?;
                trace.execution_began(execution)
            }
            Event::ExecutionStatusChanged {
                execution_id,
                to,
                interruption,
                ..
            } => {
                self.execution_moved(at, execution_id.as_str(), to.name(), interruption.as_ref())?;
                trace.execution_moved(execution_id.as_str(), *to, interruption.as_ref())
            }
            Event::StepCreated { step } => {
                self.step(seq, step)?;
                trace.step_began(step)
            }
            Event::StepStatusChanged {
                step_id,
                to,
                outcome,
                ..
            } => {
                self.step_moved(at, step_id.as_str(), to.name(), outcome)?;
                trace.step_moved(step_id.as_str(), *to, outcome)
            }
            Event::PartCreated {
                part_key,
                step_id,
                idx,
                part,
            } => {
                let tag = PartTag::of(part);
                self.part(at, part_key, (step_id.as_str(), *idx), part, &tag)?;
                trace.part(step_id.as_str(), &tag)
            }
            Event::PartUpdated {
                step_id, idx, part, ..
            } => {
                let tag = PartTag::of(part);
                self.part_again(at, (step_id.as_str(), *idx), part, &tag)?;
                trace.part(step_id.as_str(), &tag)
            }
            Event::ChunkEmitted {
                chunk_type,
                execution_id,
                step_id: Some(step_id),
                data,
                ..
            } => {
                if chunk_type == chunk_type::STEP_RESET {
                    self.void_parts(step_id.as_str())?;
                }
                let run = execution_id.as_ref().map(ExecutionId::as_str);
                trace.marker(chunk_type, run, step_id.as_str(), data.as_ref())
            }
            Event::ThreadFinished { execution_id, .. } => {
                self.execution_over(seq, execution_id.as_str())?;
                trace.finished(execution_id.as_str())
            }
            Event::ChunkEmitted {
                chunk_type,
                step_id: None,
                data,
                ..
            } => match data {
                Some(data) if chunk_type == chunk_type::THREAD_UPDATED => self.thread_updated(data),
                Some(_) | None => Ok(()),
            },
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ItemCreated { .. }
            | Event::ThreadResolved { .. } => Ok(()),
        }
    }

    fn thread(&self, thread: &Thread) -> Result<(), StoreError> {
        let sql = "UPDATE thread_threads
                   SET key = ?2, status = ?3, title = ?4, metadata = ?5, created_at = ?6,
                       fork_no = (SELECT no FROM thread_threads WHERE id = ?7), fork_seq = ?8
                   WHERE no = ?1";
        let fork = thread.fork.as_ref();
        let values = params![
            self.thread,
            thread.key,
            thread.status.name(),
            thread.title,
            text(thread.metadata.as_ref()),
            nanos(thread.created_at),
            fork.map(|fork| fork.thread_id.as_str()),
            fork.map(|fork| int(fork.seq.0)),
        ];
        self.run(sql, values)
    }

    // What says nothing that could be read changes nothing, here as in the state.
    fn thread_updated(&self, data: &Payload) -> Result<(), StoreError> {
        let Ok(ThreadUpdate { title, metadata }) = data.read() else {
            return Ok(());
        };
        if let Some(title) = title {
            let sql = "UPDATE thread_threads SET title = ?2 WHERE no = ?1";
            self.run(sql, params![self.thread, title])?;
        }
        if let Some(metadata) = metadata {
            let sql = "UPDATE thread_threads SET metadata = ?2 WHERE no = ?1";
            self.run(sql, params![self.thread, text(metadata.as_ref())])?;
        }
        Ok(())
    }

    fn context(&self, context: &Context) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_contexts (id, thread_no, key, status, content, created_at, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![
            context.id.as_str(),
            self.thread,
            context.key,
            context.status.name(),
            text(context.content.as_ref()),
            nanos(context.created_at),
            context.updated_at.map(nanos),
        ];
        self.make(context.id.as_str(), sql, values)
    }

    fn item(&self, seq: i64, item: &Item) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_items
                       (thread_no, id, context_id, seq, type, role, status, channel, content,
                        execution_id, run, waiting, metadata, created_at, place)
                   SELECT ?1, ?2, (SELECT id FROM thread_contexts WHERE thread_no = ?1), ?3, ?4, ?5,
                          ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14";
        let stands = item.run.is_none() && item.execution_id.is_none();
        let values = params![
            self.thread,
            item.id.as_str(),
            seq,
            item_type(item.item_type),
            item.role.map(role),
            item.status.name(),
            item.channel,
            text(item.content.as_ref()),
            item.execution_id.as_ref().map(ExecutionId::as_str),
            text(item.run.as_ref()),
            item.run.is_some() && item.execution_id.is_none(),
            text(item.metadata.as_ref()),
            nanos(item.created_at),
            stands.then_some(seq),
        ];
        self.make(item.id.as_str(), sql, values)
    }

    fn execution(&self, seq: i64, execution: &Execution) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_executions
                       (thread_no, id, context_id, seq, trigger_item_id, reaction_item_id,
                        workflow_run_id, status, run, created_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let values = params![
            self.thread,
            execution.id.as_str(),
            execution.context_id.as_str(),
            seq,
            execution.trigger_item_id.as_str(),
            execution.reaction_item_id.as_str(),
            execution.workflow_run_id,
            execution.status.name(),
            text(execution.run.as_ref()),
            nanos(execution.created_at),
        ];
        self.make(execution.id.as_str(), sql, values)?;
        let sql = "UPDATE thread_items SET waiting = 0, place = ?3
                   WHERE thread_no = ?1 AND id = ?2 AND waiting = 1";
        self.run(
            sql,
            params![self.thread, execution.trigger_item_id.as_str(), seq],
        )
    }

    fn execution_over(&self, seq: i64, id: &str) -> Result<(), StoreError> {
        let sql = "UPDATE thread_executions SET end_seq = ?3 WHERE thread_no = ?1 AND id = ?2";
        self.run(sql, params![self.thread, id, seq])
    }

    fn execution_moved(
        &self,
        at: i64,
        id: &str,
        to: &str,
        why: Option<&Interruption>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE thread_executions
                   SET status = ?3, updated_at = ?4, interruption_reason = ?5, interruption_detail = ?6
                   WHERE thread_no = ?1 AND id = ?2";
        let reason = why.map(|why| why.reason.as_str());
        let detail = why.and_then(|why| why.detail.as_deref());
        self.run(sql, params![self.thread, id, to, at, reason, detail])
    }

    fn step(&self, seq: i64, step: &Step) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_steps
                       (thread_no, id, execution_id, iteration, seq, status, event_id, created_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let values = params![
            self.thread,
            step.id.as_str(),
            step.execution_id.as_str(),
            step.iteration,
            seq,
            step.status.name(),
            step.event_id.as_str(),
            nanos(step.created_at),
        ];
        self.make(step.id.as_str(), sql, values)
    }

    fn step_moved(
        &self,
        at: i64,
        id: &str,
        to: &str,
        outcome: &StepOutcome,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE thread_steps
                   SET status = ?3, updated_at = ?4, tool_calls = ?5, tool_execution_results = ?6,
                       continue_loop = ?7, error_text = ?8, agent_state = ?9, open_calls = ?10
                   WHERE thread_no = ?1 AND id = ?2";
        let values = params![
            self.thread,
            id,
            to,
            at,
            outcome.tool_calls.as_ref().map(ToString::to_string),
            outcome
                .tool_execution_results
                .as_ref()
                .map(ToString::to_string),
            outcome.continue_loop,
            outcome.error_text,
            text(outcome.agent_state.as_ref()),
            text(outcome.open_calls.as_ref()),
        ];
        self.run(sql, values)
    }

    fn part(
        &self,
        at: i64,
        key: &str,
        (step, idx): (&str, u32),
        part: &Payload,
        tag: &PartTag<'_>,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO thread_parts
                       (thread_no, step_id, idx, key, type, part, created_at, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)";
        let values = params![self.thread, step, idx, key, tag.name, part.text(), at];
        self.make(key, sql, values)
    }

    fn part_again(
        &self,
        at: i64,
        (step, idx): (&str, u32),
        part: &Payload,
        tag: &PartTag<'_>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE thread_parts SET type = ?4, part = ?5, updated_at = ?6
                   WHERE thread_no = ?1 AND step_id = ?2 AND idx = ?3";
        let values = params![self.thread, step, idx, tag.name, part.text(), at];
        self.run(sql, values)
    }

    // A dead attempt's parts are in the log alone.
    fn void_parts(&self, step: &str) -> Result<(), StoreError> {
        let sql = "DELETE FROM thread_parts WHERE thread_no = ?1 AND step_id = ?2";
        self.run(sql, params![self.thread, step])
    }

    pub(super) fn run(&self, sql: &str, values: impl Params) -> Result<(), StoreError> {
        self.execute(sql, values).map_err(statement)
    }

    fn make(&self, id: &str, sql: &str, values: impl Params) -> Result<(), StoreError> {
        self.execute(sql, values).map_err(making(id))
    }

    fn execute(&self, sql: &str, values: impl Params) -> Result<(), rusqlite::Error> {
        self.conn.prepare_cached(sql)?.execute(values).map(|_| ())
    }
}
