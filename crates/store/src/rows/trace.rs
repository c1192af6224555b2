//! Traces (EK-14): a run for each execution, a span for it, each step and each tool call, and the
//! moments between. They are derived; malformed data is missing in them.

use super::tags::{PartTag, ResponseTag};
use super::{RowChange, Rows, Stamp, Table};
use jiff::Timestamp;
use std::borrow::Cow;
use timeline::{
    Execution, ExecutionStatus, Interruption, Machine, Payload, Seq, Step, StepOutcome, StepStatus,
    chunk_type,
};

/// A change of one row of the traces, or of the spans of one step's tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceChange<'e> {
    /// A new run.
    Run(RunRow<'e>),
    /// Another step of an existing run.
    RunStep(&'e str),
    /// Tokens that a run used: input and output.
    RunTokens(&'e str, u64, u64),
    /// The end of an existing run.
    RunEnd(&'e str, TraceStatus, Timestamp),
    /// A new span. A span without a run belongs to the run of its parent step, and is left out if that
    /// step does not exist.
    Span(SpanRow<'e>),
    /// The end of an existing span that has not ended: its status and error.
    SpanEnd(
        SpanKind,
        Cow<'e, str>,
        TraceStatus,
        Option<Cow<'e, str>>,
        Timestamp,
    ),
    /// A tool's span starts at this instant.
    ToolStart(String, Timestamp),
    /// The spans of a step's tools end that have not: they have no result.
    ToolsEnd(&'e str, Timestamp),
    /// The spans of a step's tools are deleted.
    ToolsDeleted(&'e str),
    /// A new moment. Without a run it is of its span's, a step.
    Event(TraceEventRow<'e>),
}

/// The status of a run or a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStatus {
    /// It has not ended.
    Running,
    /// It has succeeded.
    Ok,
    /// It has failed.
    Error,
}

impl TraceStatus {
    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Error => "error",
        }
    }
}

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpanKind {
    /// An execution.
    Execution,
    /// A step.
    Step,
    /// A tool call.
    Tool,
}

impl SpanKind {
    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Step => "step",
            Self::Tool => "tool",
        }
    }
}

/// A run: the trace of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow<'e> {
    /// The execution's id.
    pub id: &'e str,
    /// The agent's name.
    pub name: Option<String>,
    /// Its status.
    pub status: TraceStatus,
    /// The number of its steps.
    pub n_steps: u64,
    /// The start time.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// A span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanRow<'e> {
    /// Its kind.
    pub kind: SpanKind,
    /// Its id, unique among the thread's spans of its kind.
    pub id: Cow<'e, str>,
    /// Its run.
    pub run_id: Option<&'e str>,
    /// The span that it is part of.
    pub parent_id: Option<&'e str>,
    /// Its name.
    pub name: Option<Cow<'e, str>>,
    /// Its status.
    pub status: TraceStatus,
    /// Why it failed.
    pub error: Option<Cow<'e, str>>,
    /// The start time.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// A moment of a run: an event, or a response of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEventRow<'e> {
    /// The event.
    pub seq: Seq,
    /// Its run.
    pub run_id: Option<&'e str>,
    /// Its span.
    pub span_id: Cow<'e, str>,
    /// Its name.
    pub name: Cow<'static, str>,
    /// When it was.
    pub at: Timestamp,
    /// The response of a model, with its text.
    pub response: Option<(ResponseTag<'e>, Option<&'e str>)>,
}

// Keeps sums of what a provider claims within a column.
const MAX_TOKENS: u64 = 1 << 40;

impl<'e> Rows<'e> {
    fn trace(&mut self, change: TraceChange<'e>) {
        self.changes.push(RowChange::Trace(change));
    }

    pub(super) fn trace_execution(&mut self, stamp: Stamp, execution: &'e Execution) {
        let id = execution.id.as_str();
        let run = execution.run.as_ref();
        let name = run.and_then(|run| run.str_field("agent"));
        let row = TraceChange::Run(RunRow {
            id,
            name: name.clone(),
            status: TraceStatus::Running,
            n_steps: 0,
            started_at: stamp.at,
            ended_at: None,
        });
        self.insert(Table::Runs, id, RowChange::Trace(row));
        let name = name.map(Cow::Owned);
        self.span(stamp.at, SpanKind::Execution, id, (id, None), name);
        self.trace_event(stamp, "execution.created".into(), (Some(id), id.into()));
    }

    pub(super) fn trace_execution_status(
        &mut self,
        stamp: Stamp,
        id: &'e str,
        to: ExecutionStatus,
        why: Option<&'e Interruption>,
    ) {
        let status = match to {
            ExecutionStatus::Executing => return,
            ExecutionStatus::Completed => TraceStatus::Ok,
            ExecutionStatus::Failed => TraceStatus::Error,
        };
        if let Some(RowChange::Trace(TraceChange::Run(run))) = self.new_row(Table::Runs, id) {
            (run.status, run.ended_at) = (status, Some(stamp.at));
        } else {
            self.trace(TraceChange::RunEnd(id, status, stamp.at));
        }
        let error = why.map(|why| why.reason.as_str().into());
        self.span_end(stamp.at, SpanKind::Execution, id, (status, error));
        let name = format!("execution.{}", to.name());
        self.trace_event(stamp, name.into(), (Some(id), id.into()));
    }

    pub(super) fn trace_step(&mut self, stamp: Stamp, step: &'e Step) {
        let (id, run) = (step.id.as_str(), step.execution_id.as_str());
        let name = format!("step {}", step.iteration);
        let parent = (run, Some(run));
        self.span(stamp.at, SpanKind::Step, id, parent, Some(name.into()));
        if let Some(RowChange::Trace(TraceChange::Run(row))) = self.new_row(Table::Runs, run) {
            row.n_steps += 1;
        } else {
            self.trace(TraceChange::RunStep(run));
        }
        self.trace_event(stamp, "step.created".into(), (Some(run), id.into()));
    }

    pub(super) fn trace_step_status(
        &mut self,
        stamp: Stamp,
        id: &'e str,
        to: StepStatus,
        outcome: &'e StepOutcome,
    ) {
        let status = match to {
            StepStatus::Running => return,
            StepStatus::Completed => TraceStatus::Ok,
            StepStatus::Failed => TraceStatus::Error,
        };
        self.trace(TraceChange::ToolsEnd(id, stamp.at));
        let error = outcome.error_text.as_deref().map(Into::into);
        self.span_end(stamp.at, SpanKind::Step, id, (status, error));
        let name = format!("step.{}", to.name());
        self.trace_event(stamp, name.into(), (None, id.into()));
    }

    /// A tool call starts when it is written and ends when its result is.
    pub(super) fn trace_part(&mut self, at: Timestamp, step: &'e str, tag: &PartTag<'e>) {
        let name = tag.name.as_ref();
        let tool = name.and_then(|name| name.strip_prefix("tool-"));
        let (Some(tool), Some(call), Some(state)) = (tool, &tag.tool_call_id, &tag.state) else {
            return;
        };
        let id = format!("{step}:{call}");
        self.trace(TraceChange::Span(SpanRow {
            kind: SpanKind::Tool,
            id: id.clone().into(),
            run_id: None,
            parent_id: Some(step),
            name: Some(tool.to_owned().into()),
            status: TraceStatus::Running,
            error: None,
            started_at: at,
            ended_at: None,
        }));
        let end = match &**state {
            "output-available" => (TraceStatus::Ok, None),
            other if other.starts_with("output-") => (TraceStatus::Error, Some(state.clone())),
            _ => return,
        };
        self.trace(TraceChange::SpanEnd(
            SpanKind::Tool,
            id.into(),
            end.0,
            end.1,
            at,
        ));
    }

    pub(super) fn marker(
        &mut self,
        stamp: Stamp,
        chunk_type: &str,
        (run, step): (Option<&'e str>, &'e str),
        data: Option<&'e Payload>,
    ) {
        match chunk_type {
            chunk_type::STEP_RESPONSE => self.response(stamp, (run, step), data),
            chunk_type::STEP_RESET => {
                self.changes.push(RowChange::PartsDeleted(step));
                self.trace(TraceChange::ToolsDeleted(step));
                self.trace_event(stamp, "step.reset".into(), (run, step.into()));
            }
            chunk_type::TOOL_STARTED => {
                let Some(call) = data.and_then(|data| data.str_field("toolCallId")) else {
                    return;
                };
                let id = format!("{step}:{call}");
                self.trace(TraceChange::ToolStart(id.clone(), stamp.at));
                self.trace_event(stamp, "tool.started".into(), (run, id.into()));
            }
            _ => {}
        }
    }

    fn response(
        &mut self,
        stamp: Stamp,
        (run, step): (Option<&'e str>, &'e str),
        data: Option<&'e Payload>,
    ) {
        let mut tag = data.map(ResponseTag::of).unwrap_or_default();
        for tokens in [&mut tag.input_tokens, &mut tag.output_tokens] {
            *tokens = tokens.map(|n| n.min(MAX_TOKENS));
        }
        let used = (
            tag.input_tokens.unwrap_or(0),
            tag.output_tokens.unwrap_or(0),
        );
        self.trace(TraceChange::Event(TraceEventRow {
            seq: stamp.seq,
            run_id: run,
            span_id: step.into(),
            name: "llm".into(),
            at: stamp.at,
            response: Some((tag, data.map(Payload::text))),
        }));
        if let Some(run) = run {
            self.trace(TraceChange::RunTokens(run, used.0, used.1));
        }
    }

    fn span(
        &mut self,
        at: Timestamp,
        kind: SpanKind,
        id: &'e str,
        (run, parent_id): (&'e str, Option<&'e str>),
        name: Option<Cow<'e, str>>,
    ) {
        let row = TraceChange::Span(SpanRow {
            kind,
            id: id.into(),
            run_id: Some(run),
            parent_id,
            name,
            status: TraceStatus::Running,
            error: None,
            started_at: at,
            ended_at: None,
        });
        self.insert(Table::Spans(kind), id, RowChange::Trace(row));
    }

    fn span_end(
        &mut self,
        at: Timestamp,
        kind: SpanKind,
        id: &'e str,
        (status, error): (TraceStatus, Option<Cow<'e, str>>),
    ) {
        if let Some(RowChange::Trace(TraceChange::Span(span))) =
            self.new_row(Table::Spans(kind), id)
        {
            if span.ended_at.is_none() {
                (span.status, span.error, span.ended_at) = (status, error, Some(at));
            }
        } else {
            let end = TraceChange::SpanEnd(kind, id.into(), status, error, at);
            self.trace(end);
        }
    }

    pub(super) fn trace_event(
        &mut self,
        stamp: Stamp,
        name: Cow<'static, str>,
        (run_id, span_id): (Option<&'e str>, Cow<'e, str>),
    ) {
        self.trace(TraceChange::Event(TraceEventRow {
            seq: stamp.seq,
            run_id,
            span_id,
            name,
            at: stamp.at,
            response: None,
        }));
    }
}
