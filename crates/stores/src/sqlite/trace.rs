//! Traces (EK-14): a run for each execution, a span for it, each step and each tool call, and the
//! moments between. They are derived, so odd data leaves a hole in them and never fails an append.

use super::projection::Tables;
use super::spelling::{PartTag, ResponseTag};
use rusqlite::{Params, params};
use store::StoreError;
use timeline::{
    Execution, ExecutionStatus, Interruption, Machine, Payload, Step, StepOutcome, StepStatus,
    chunk_type,
};

/// The traces of one event.
pub(super) struct Trace<'a> {
    pub(super) tables: &'a Tables<'a>,
    pub(super) seq: i64,
    pub(super) at: i64,
}

const RUNNING: &str = "running";
const OK: &str = "ok";
const ERROR: &str = "error";
// Keeps sums of what a provider claims within a column.
const TOKENS: u64 = 1 << 40;

impl Trace<'_> {
    pub(super) fn execution_began(&self, execution: &Execution) -> Result<(), StoreError> {
        let id = execution.id.as_str();
        let name = execution
            .run
            .as_ref()
            .and_then(|run| run.str_field("agent"));
        let sql =
            "INSERT OR IGNORE INTO thread_trace_runs (thread_no, id, name, status, started_at)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(sql, params![self.tables.thread, id, name, RUNNING, self.at])?;
        self.begin("execution", id, id, None, name.as_deref())?;
        self.event("execution.created", Some(id), id)
    }

    pub(super) fn execution_moved(
        &self,
        id: &str,
        to: ExecutionStatus,
        why: Option<&Interruption>,
    ) -> Result<(), StoreError> {
        let status = match to {
            ExecutionStatus::Executing => return Ok(()),
            ExecutionStatus::Completed => OK,
            ExecutionStatus::Failed => ERROR,
        };
        let sql = "UPDATE thread_trace_runs SET status = ?3, ended_at = ?4 WHERE thread_no = ?1 AND id = ?2";
        self.run(sql, params![self.tables.thread, id, status, self.at])?;
        self.end("execution", id, status, why.map(|why| why.reason.as_str()))?;
        self.event(&format!("execution.{}", to.name()), Some(id), id)
    }

    pub(super) fn step_began(&self, step: &Step) -> Result<(), StoreError> {
        let (id, run) = (step.id.as_str(), step.execution_id.as_str());
        let name = format!("step {}", step.iteration);
        self.begin("step", id, run, Some(run), Some(&name))?;
        let sql =
            "UPDATE thread_trace_runs SET n_steps = n_steps + 1 WHERE thread_no = ?1 AND id = ?2";
        self.run(sql, params![self.tables.thread, run])?;
        self.event("step.created", Some(run), id)
    }

    pub(super) fn step_moved(
        &self,
        id: &str,
        to: StepStatus,
        outcome: &StepOutcome,
    ) -> Result<(), StoreError> {
        let status = match to {
            StepStatus::Running => return Ok(()),
            StepStatus::Completed => OK,
            StepStatus::Failed => ERROR,
        };
        self.end_tools(id)?;
        self.end("step", id, status, outcome.error_text.as_deref())?;
        self.event(&format!("step.{}", to.name()), None, id)
    }

    /// A tool call begins when it is written and ends when its result is.
    pub(super) fn part(&self, step: &str, tag: &PartTag<'_>) -> Result<(), StoreError> {
        let tool = tag
            .name
            .as_ref()
            .and_then(|name| name.strip_prefix("tool-"));
        let (Some(tool), Some(call), Some(state)) = (tool, &tag.tool_call_id, &tag.state) else {
            return Ok(());
        };
        let id = format!("{step}:{call}");
        let sql = "INSERT OR IGNORE INTO thread_trace_spans
                       (thread_no, kind, id, run_id, parent_id, name, status, started_at)
                   SELECT ?1, 'tool', ?2, execution_id, ?3, ?4, ?5, ?6
                   FROM thread_steps WHERE thread_no = ?1 AND id = ?3";
        self.run(
            sql,
            params![self.tables.thread, id, step, tool, RUNNING, self.at],
        )?;
        match &**state {
            "output-available" => self.end("tool", &id, OK, None),
            other if other.starts_with("output-") => self.end("tool", &id, ERROR, Some(other)),
            _ => Ok(()),
        }
    }

    pub(super) fn marker(
        &self,
        kind: &str,
        run: Option<&str>,
        step: &str,
        data: Option<&Payload>,
    ) -> Result<(), StoreError> {
        match kind {
            chunk_type::STEP_RESPONSE => self.response(run, step, data),
            chunk_type::STEP_RESET => {
                let sql = "DELETE FROM thread_trace_spans WHERE thread_no = ?1 AND kind = 'tool' AND parent_id = ?2";
                self.run(sql, params![self.tables.thread, step])?;
                self.event("step.reset", run, step)
            }
            chunk_type::TOOL_STARTED => {
                let Some(call) = data.and_then(|data| data.str_field("toolCallId")) else {
                    return Ok(());
                };
                let id = format!("{step}:{call}");
                let sql = "UPDATE thread_trace_spans SET started_at = ?3 WHERE thread_no = ?1 AND kind = 'tool' AND id = ?2";
                self.run(sql, params![self.tables.thread, id, self.at])?;
                self.event("tool.started", run, &id)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn finished(&self, execution: &str) -> Result<(), StoreError> {
        self.event("thread.finished", Some(execution), execution)
    }

    fn response(
        &self,
        run: Option<&str>,
        step: &str,
        data: Option<&Payload>,
    ) -> Result<(), StoreError> {
        let said = data.map(ResponseTag::of).unwrap_or_default();
        let n = |tokens: Option<u64>| i64::try_from(tokens?.min(TOKENS)).ok();
        let (input, output) = (n(said.input_tokens), n(said.output_tokens));
        let sql = "INSERT OR IGNORE INTO thread_trace_events
                       (thread_no, seq, run_id, span_id, name, at, model, provider, input_tokens, output_tokens, data)
                   VALUES (?1, ?2, ?3, ?4, 'llm', ?5, ?6, ?7, ?8, ?9, ?10)";
        let values = params![
            self.tables.thread,
            self.seq,
            run,
            step,
            self.at,
            said.model,
            said.provider,
            input,
            output,
            data.map(Payload::text),
        ];
        self.run(sql, values)?;
        let sql = "UPDATE thread_trace_runs
                   SET input_tokens = min(input_tokens + ?3, 1 << 60),
                       output_tokens = min(output_tokens + ?4, 1 << 60)
                   WHERE thread_no = ?1 AND id = ?2";
        self.run(
            sql,
            params![
                self.tables.thread,
                run,
                input.unwrap_or(0),
                output.unwrap_or(0)
            ],
        )
    }

    fn begin(
        &self,
        kind: &str,
        id: &str,
        run: &str,
        parent: Option<&str>,
        name: Option<&str>,
    ) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO thread_trace_spans
                       (thread_no, kind, id, run_id, parent_id, name, status, started_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        self.run(
            sql,
            params![
                self.tables.thread,
                kind,
                id,
                run,
                parent,
                name,
                RUNNING,
                self.at
            ],
        )
    }

    fn end(
        &self,
        kind: &str,
        id: &str,
        status: &str,
        error: Option<&str>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE thread_trace_spans SET status = ?4, error_text = ?5, ended_at = ?6
                   WHERE thread_no = ?1 AND kind = ?2 AND id = ?3 AND ended_at IS NULL";
        self.run(
            sql,
            params![self.tables.thread, kind, id, status, error, self.at],
        )
    }

    // A step that is over has no running tools.
    fn end_tools(&self, step: &str) -> Result<(), StoreError> {
        let sql =
            "UPDATE thread_trace_spans SET status = ?3, error_text = 'no result', ended_at = ?4
                   WHERE thread_no = ?1 AND kind = 'tool' AND parent_id = ?2 AND ended_at IS NULL";
        self.run(sql, params![self.tables.thread, step, ERROR, self.at])
    }

    fn event(&self, name: &str, run: Option<&str>, span: &str) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO thread_trace_events (thread_no, seq, run_id, span_id, name, at)
                   VALUES (?1, ?2, coalesce(?3, (SELECT execution_id FROM thread_steps WHERE thread_no = ?1 AND id = ?4)), ?4, ?5, ?6)";
        self.run(
            sql,
            params![self.tables.thread, self.seq, run, span, name, self.at],
        )
    }

    // What a constraint of the trace tables refuses is left out.
    fn run(&self, sql: &str, values: impl Params) -> Result<(), StoreError> {
        match self.tables.run(sql, values) {
            Err(refused @ (StoreError::Duplicate(_) | StoreError::Damaged(_))) => {
                tracing::warn!(%refused, seq = self.seq, "a trace was left out");
                Ok(())
            }
            done => done,
        }
    }
}
