//! The waterfall of a run: a row for each thing that happened, with a bar for its time.

use super::console_run::ConsoleRun;
use super::time_scale::{TimeScale, WIDTH};
use crate::execution::{UNNAMED, agent_of, execution_state};
use crate::json;
use crate::link::path_segment;
use crate::time;
use crate::words::{counted, outcome_words};
use interop::parts::{StepResponse, ToolPart};
use interop::run::{Attempt, AttemptEnd, CallTimes, Restart, StepCalls, StepTimes};
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use timeline::{OpenCall, OpenKind, StepRecord, StepStatus};

/// The wait of a trigger that has a row of its own.
const QUEUED: SignedDuration = SignedDuration::from_millis(50);
/// Height of a bar, in units.
const HEIGHT: i64 = 16;
/// Minimum width of a bar, in units.
const MIN_WIDTH: i64 = 4;

/// The kind of a row, which the style sheet colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// The trigger waits.
    Queue,
    /// The whole run.
    Run,
    /// The model answers.
    Model,
    /// An attempt that is void.
    Void,
    /// A tool call.
    Call,
    /// A sub-agent.
    Subagent,
    /// No process ran the run.
    Restart,
    /// The run waits for answers.
    Wait,
}

impl RowKind {
    fn class(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Run => "run",
            Self::Model => "model",
            Self::Void => "void",
            Self::Call => "tool",
            Self::Subagent => "child",
            Self::Restart => "restart",
            Self::Wait => "wait",
        }
    }

    /// Whether it is a pause, which may be drawn shorter.
    fn is_pause(self) -> bool {
        match self {
            Self::Queue | Self::Restart | Self::Wait => true,
            Self::Run | Self::Model | Self::Void | Self::Call | Self::Subagent => false,
        }
    }
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct WaterfallRow {
    pub(super) kind: RowKind,
    /// How deep it is nested.
    depth: u8,
    label: Markup,
    from: Timestamp,
    /// Its end; absent if it has not ended.
    to: Option<Timestamp>,
    /// When the first chunk came.
    first: Option<Timestamp>,
    /// The result in words.
    result: Markup,
}

/// The rows of a run.
pub(super) fn rows(run: &ConsoleRun<'_>) -> Vec<WaterfallRow> {
    let mut rows = Vec::new();
    let execution = &run.reaction.execution;
    let queued = run.trigger.created_at;
    if execution.created_at.duration_since(queued) >= QUEUED {
        rows.push(WaterfallRow {
            kind: RowKind::Queue,
            depth: 0,
            label: html! { "waited before the run" },
            from: queued,
            to: Some(execution.created_at),
            first: None,
            result: html! {},
        });
    }
    let agent = agent_of(execution);
    let (_, words) = execution_state(run.reaction, run.is_waiting);
    rows.push(WaterfallRow {
        kind: RowKind::Run,
        depth: 0,
        label: html! { "run of " bdi { (json::visible(agent.as_deref().unwrap_or(UNNAMED))) } },
        from: execution.created_at,
        to: run.reaction.ended_at,
        first: None,
        result: html! { (words) },
    });
    let mut restarts = run.times.restarts.iter().peekable();
    let step_times = run.step_times();
    for record in &run.reaction.steps {
        let Some(times) = step_times.get(&record.step.id).copied() else {
            continue;
        };
        while let Some(restart) = restarts.next_if(|it| it.seq < times.first_seq) {
            rows.push(restart_row(run, restart));
        }
        for (n, attempt) in times.attempts.iter().enumerate() {
            let is_last = n + 1 == times.attempts.len();
            while let Some(restart) = restarts.next_if(|it| n > 0 && it.seq < attempt.first_seq) {
                rows.push(restart_row(run, restart));
            }
            rows.push(if is_last {
                model_row(record, times, attempt)
            } else {
                void_row(record, attempt)
            });
        }
        let calls = StepCalls::of(record);
        for call in &times.calls {
            rows.push(call_row(&calls, call));
            rows.extend(subagent_rows(&calls, call));
        }
    }
    rows.extend(restarts.map(|restart| restart_row(run, restart)));
    rows.extend(wait_rows(run));
    rows
}

/// The label of a step: its number and its model.
fn step_label(record: &StepRecord) -> Markup {
    let response = record.response.as_ref();
    let response: Option<StepResponse> = response.and_then(|(it, _)| it.read().ok());
    html! {
        "step " (record.step.iteration)
        @if let Some(response) = response {
            @if response.answers { " · results of calls" }
            @else if let Some(model) = response.model { " · " bdi { (json::visible(&model)) } }
        }
    }
}

fn model_row(record: &StepRecord, times: &StepTimes, attempt: &Attempt) -> WaterfallRow {
    let is_again = times.attempts.len() > 1;
    let first = attempt.first_chunk;
    WaterfallRow {
        kind: RowKind::Model,
        depth: 1,
        label: html! { (step_label(record)) @if is_again { " (again)" } },
        from: attempt.started,
        to: attempt.ended.map(|(at, _)| at),
        first,
        result: html! {
            @match record.step.status {
                StepStatus::Running => "running",
                StepStatus::Completed => "done",
                StepStatus::Failed => "failed",
            }
            @if let Some(first) = first { " · first token after " (time::between(attempt.started, first)) }
        },
    }
}

fn void_row(record: &StepRecord, attempt: &Attempt) -> WaterfallRow {
    let reason = match attempt.ended.map(|(_, reason)| reason) {
        Some(AttemptEnd::Restarted) => "the process stopped",
        Some(AttemptEnd::Retried | AttemptEnd::Failed | AttemptEnd::Completed) | None => {
            "the model was called again"
        }
    };
    WaterfallRow {
        kind: RowKind::Void,
        depth: 1,
        label: html! { "step " (record.step.iteration) " · attempt voided" },
        from: attempt.started,
        to: attempt.ended.map(|(at, _)| at),
        first: attempt.first_chunk,
        result: html! {
            (reason) " · void: events " (attempt.first_seq.0) "…" (attempt.last_seq.0)
            ", " (counted(attempt.n_chunks, "chunk"))
        },
    }
}

fn call_row(calls: &StepCalls, call: &CallTimes) -> WaterfallRow {
    let tool = calls.tool(call);
    let first = tool.and_then(|tool| json::first_argument(tool.arguments()));
    let outcome = match call.outcome.as_deref() {
        None if calls.is_open(call) => "left open",
        None => "no result",
        Some(outcome) => outcome_words(outcome),
    };
    WaterfallRow {
        kind: RowKind::Call,
        depth: 2,
        label: html! {
            code { (json::visible(&call.tool_name)) }
            @if let Some(first) = first { " " span class="first" dir="auto" { (first) } }
        },
        from: call.started.unwrap_or(call.created),
        to: calls.end(call),
        first: None,
        result: html! {
            (json::visible(outcome))
            @if call.needs_approval { " · needs approval" }
        },
    }
}

/// The sub-agents of a call.
fn subagent_rows(calls: &StepCalls, call: &CallTimes) -> impl Iterator<Item = WaterfallRow> {
    calls.subagents(call).iter().map(|subagent| WaterfallRow {
        kind: RowKind::Subagent,
        depth: 3,
        label: html! {
            "sub-agent "
            a href={ "/ui/console/" (path_segment(&subagent.thread_id)) } { bdi { (json::visible(&subagent.agent)) } }
        },
        from: subagent.started,
        to: subagent.ended.or(calls.ended_at()),
        first: None,
        result: html! { @if subagent.ended.is_some() { "ended" } @else { "not ended" } },
    })
}

/// The time without a process. It begins with the last event before the restart.
fn restart_row(run: &ConsoleRun<'_>, restart: &Restart) -> WaterfallRow {
    let from = last_sign(run, restart);
    let mut attempts = run.times.steps.iter().flat_map(|step| {
        let pairs = step.attempts.iter().zip(step.attempts.iter().skip(1));
        pairs.map(move |pair| (step, pair))
    });
    let voided = attempts
        .find(|(_, (void, next))| void.first_seq < restart.seq && restart.seq < next.first_seq);
    let all = &run.times.steps;
    let n_steps = all.iter().filter(|step| {
        let is_over = step.last_seq < restart.seq;
        is_over && voided.is_none_or(|(void, _)| void.id != step.id)
    });
    let calls = all.iter().flat_map(|step| &step.calls);
    let n_results = calls.filter(|call| call.ended.is_some_and(|ended| ended <= restart.at));
    let (n_steps, n_results) = (n_steps.count(), n_results.count());
    WaterfallRow {
        kind: RowKind::Restart,
        depth: 1,
        label: html! {
            "⚠ "
            @if restart.is_orderly { "server restarted" } @else { "server crashed and restarted" }
        },
        from,
        to: Some(restart.at),
        first: None,
        result: html! {
            @if voided.is_some() { "attempt voided" } @else { "nothing voided" }
            " · kept: "
            (counted(n_steps, "step"))
            ", " (counted(n_results, "result"))
            " · resumed at event "
            (run.event_link(restart.seq))
        },
    }
}

/// The last sign of life before a restart.
fn last_sign(run: &ConsoleRun<'_>, restart: &Restart) -> Timestamp {
    let created = run.reaction.execution.created_at;
    let attempts = run.times.steps.iter().flat_map(|step| &step.attempts);
    let attempts = attempts.filter(|attempt| attempt.first_seq < restart.seq);
    let of_attempts = attempts.flat_map(|attempt| {
        let ended = attempt.ended.filter(|_| attempt.last_seq < restart.seq);
        [Some(attempt.started), ended.map(|(at, _)| at)]
    });
    let calls = run.times.steps.iter().flat_map(|step| &step.calls);
    let of_calls = calls.flat_map(|call| [Some(call.created), call.started, call.ended]);
    let of_calls = of_calls.filter(|at| at.is_some_and(|at| at < restart.at));
    // Another restart is a sign of life, too.
    let restarts = run.times.restarts.iter();
    let restarts = restarts.filter(|other| other.seq < restart.seq);
    let of_restarts = restarts.map(|other| Some(other.at));
    let all = of_attempts.chain(of_calls).chain(of_restarts).flatten();
    all.fold(created, Timestamp::max)
}

/// The calls that the run left open.
fn wait_rows(run: &ConsoleRun<'_>) -> Vec<WaterfallRow> {
    let Some(ended) = run.reaction.ended_at else {
        return Vec::new();
    };
    let row = |call: OpenCall| {
        let name = ToolPart::read(&call.part);
        let name = name.as_ref().map(ToolPart::tool_name).unwrap_or_default();
        WaterfallRow {
            kind: RowKind::Wait,
            depth: 1,
            label: html! {
                @match call.kind {
                    OpenKind::Approval => "waits for a person: approve ",
                    OpenKind::External => "waits for a result: ",
                    OpenKind::Others => "waits for other calls: ",
                    OpenKind::Child => "waits for a sub-agent: ",
                }
                code { (json::visible(name)) }
            },
            from: ended,
            to: match run.continuation {
                Some(next) => Some(next.created_at),
                None if run.is_waiting => None,
                None => Some(ended),
            },
            first: None,
            result: html! {
                @if run.continuation.is_some() { "answered" }
                @else if run.is_waiting { "open" }
                @else { "never answered" }
            },
        }
    };
    run.reaction.open_calls().into_iter().map(row).collect()
}

/// The rows as a table. Its third column has the bars.
pub(super) fn table(rows: &[WaterfallRow], now: Timestamp) -> Markup {
    let end = |row: &WaterfallRow| row.to.unwrap_or(now);
    let from = rows.iter().map(|row| row.from).min().unwrap_or(now);
    let to = rows.iter().map(end).max().unwrap_or(now);
    let pauses: Vec<_> = rows
        .iter()
        .filter(|row| row.kind.is_pause())
        .map(|row| (row.from, end(row)))
        .collect();
    let scale = TimeScale::new((from, to), &pauses);
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Times of the run" {
            table class="waterfall" {
                thead {
                    tr {
                        th scope="col" { "Activity" }
                        th scope="col" class="number" { "Took" }
                        th scope="col" class="when" { "When" }
                        th scope="col" { "Result" }
                    }
                }
                tbody {
                    @for row in rows {
                        tr data-kind=(row.kind.class()) {
                            th scope="row" { div data-depth=(row.depth) { (row.label) } }
                            td class="number" {
                                @if row.to.is_none() { "open " }
                                (time::between(row.from, end(row)))
                            }
                            td class="when" { (bar(&scale, row, end(row))) }
                            td { (row.result) }
                        }
                    }
                }
            }
        }
        @if scale.is_cut { p class="quiet" { "Long pauses have shortened bars." } }
    }
}

/// The bar of a row. Its numbers are in the other columns, so screen readers skip it.
fn bar(scale: &TimeScale, row: &WaterfallRow, end: Timestamp) -> Markup {
    let start = scale.units(row.from).min(WIDTH - MIN_WIDTH);
    let width = (scale.units(end) - start).max(MIN_WIDTH);
    let first = row.first.map(|first| scale.units(first));
    html! {
        svg class="bar" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" width="100%" height=(HEIGHT) aria-hidden="true" focusable="false" {
            rect class="track" x="0" y="0" width=(WIDTH) height=(HEIGHT) {}
            rect class=(row.kind.class()) x=(start) y="2" width=(width) height="12" {}
            @if let Some(first) = first { rect class="first" x=(first) y="0" width="3" height=(HEIGHT) {} }
        }
    }
}
