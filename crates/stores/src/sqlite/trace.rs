//! Executes changes of the traces.

use super::projection::Tables;
use super::value::{int, nanos};
use rusqlite::params;
use store::StoreError;
use store::rows::{RunRow, SpanRow, TraceChange, TraceEventRow, TraceStatus};

/// Executes one change. A change that breaks a constraint of the trace tables is logged and left out.
pub(super) fn execute(tables: &Tables<'_>, change: &TraceChange<'_>) -> Result<(), StoreError> {
    match executed(tables, change) {
        Err(refused @ (StoreError::Duplicate(_) | StoreError::Damaged(_))) => {
            tracing::warn!(%refused, thread_no = tables.thread, "a trace was left out");
            Ok(())
        }
        done => done,
    }
}

fn executed(tables: &Tables<'_>, change: &TraceChange<'_>) -> Result<(), StoreError> {
    let thread = tables.thread;
    match change {
        TraceChange::Run(row) => run(tables, row),
        TraceChange::RunStep(id) => {
            let sql = "UPDATE thread_trace_runs SET n_steps = n_steps + 1 WHERE thread_no = ?1 AND id = ?2";
            tables.run(sql, params![thread, id])
        }
        TraceChange::RunTokens(id, input, output) => {
            let sql = "UPDATE thread_trace_runs
                       SET input_tokens = min(input_tokens + ?3, 1 << 60),
                           output_tokens = min(output_tokens + ?4, 1 << 60)
                       WHERE thread_no = ?1 AND id = ?2";
            tables.run(sql, params![thread, id, int(*input), int(*output)])
        }
        TraceChange::RunEnd(id, status, at) => {
            let sql = "UPDATE thread_trace_runs SET status = ?3, ended_at = ?4 WHERE thread_no = ?1 AND id = ?2";
            tables.run(sql, params![thread, id, status.name(), nanos(*at)])
        }
        TraceChange::Span(row) => span(tables, row),
        TraceChange::SpanEnd(kind, id, status, error, at) => {
            let sql = "UPDATE thread_trace_spans SET status = ?4, error_text = ?5, ended_at = ?6
                       WHERE thread_no = ?1 AND kind = ?2 AND id = ?3 AND ended_at IS NULL";
            let values = params![thread, kind.name(), id, status.name(), error, nanos(*at)];
            tables.run(sql, values)
        }
        TraceChange::ToolStart(id, at) => {
            let sql = "UPDATE thread_trace_spans SET started_at = ?3 WHERE thread_no = ?1 AND kind = 'tool' AND id = ?2";
            tables.run(sql, params![thread, id, nanos(*at)])
        }
        TraceChange::ToolsEnd(step, at) => {
            let sql = "UPDATE thread_trace_spans SET status = ?3, error_text = 'no result', ended_at = ?4
                       WHERE thread_no = ?1 AND kind = 'tool' AND parent_id = ?2 AND ended_at IS NULL";
            tables.run(
                sql,
                params![thread, step, TraceStatus::Error.name(), nanos(*at)],
            )
        }
        TraceChange::ToolsDeleted(step) => {
            let sql = "DELETE FROM thread_trace_spans WHERE thread_no = ?1 AND kind = 'tool' AND parent_id = ?2";
            tables.run(sql, params![thread, step])
        }
        TraceChange::Event(row) => event(tables, row),
    }
}

fn run(tables: &Tables<'_>, row: &RunRow<'_>) -> Result<(), StoreError> {
    let sql = "INSERT OR IGNORE INTO thread_trace_runs
                   (thread_no, id, name, status, n_steps, started_at, ended_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let values = params![
        tables.thread,
        row.id,
        row.name,
        row.status.name(),
        int(row.n_steps),
        nanos(row.started_at),
        row.ended_at.map(nanos),
    ];
    tables.run(sql, values)
}

fn span(tables: &Tables<'_>, row: &SpanRow<'_>) -> Result<(), StoreError> {
    let sql = match row.run_id {
        Some(_) => {
            "INSERT OR IGNORE INTO thread_trace_spans
                 (thread_no, kind, id, run_id, parent_id, name, status, error_text, started_at, ended_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        }
        None => {
            "INSERT OR IGNORE INTO thread_trace_spans
                 (thread_no, kind, id, run_id, parent_id, name, status, error_text, started_at, ended_at)
             SELECT ?1, ?2, ?3, coalesce(?4, execution_id), ?5, ?6, ?7, ?8, ?9, ?10
             FROM thread_steps WHERE thread_no = ?1 AND id = ?5"
        }
    };
    let values = params![
        tables.thread,
        row.kind.name(),
        row.id,
        row.run_id,
        row.parent_id,
        row.name,
        row.status.name(),
        row.error,
        nanos(row.started_at),
        row.ended_at.map(nanos),
    ];
    tables.run(sql, values)
}

fn event(tables: &Tables<'_>, row: &TraceEventRow<'_>) -> Result<(), StoreError> {
    let (thread, seq, at) = (tables.thread, int(row.seq.0), nanos(row.at));
    let Some((response, text)) = &row.response else {
        let sql = "INSERT OR IGNORE INTO thread_trace_events (thread_no, seq, run_id, span_id, name, at)
                   VALUES (?1, ?2, coalesce(?3, (SELECT execution_id FROM thread_steps WHERE thread_no = ?1 AND id = ?4)), ?4, ?5, ?6)";
        return tables.run(
            sql,
            params![thread, seq, row.run_id, row.span_id, row.name, at],
        );
    };
    let sql = "INSERT OR IGNORE INTO thread_trace_events
                   (thread_no, seq, run_id, span_id, name, at, model, provider, input_tokens, output_tokens, data)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let values = params![
        thread,
        seq,
        row.run_id,
        row.span_id,
        row.name,
        at,
        response.model,
        response.provider,
        response.input_tokens.map(int),
        response.output_tokens.map(int),
        text,
    ];
    tables.run(sql, values)
}
