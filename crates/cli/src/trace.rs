//! `trace`: the runs of a thread as a waterfall in the terminal.

use crate::args::TraceOptions;
use crate::error::CliError;
use crate::output::{BAD, BOLD, DIM, Output, TOOL, WARNED, clean, width};
use crate::store::{Reach, StoreLocation};
use crate::threads::{all_events, missing};
use anstyle::Style;
use interop::parts::{StepResponse, ToolPart};
use interop::run::{
    AttemptEnd, CallTimes, ExecutionTimes, Restart, StartedSubagent, StepCalls, StepTimes,
    duration_text,
};
use jiff::Timestamp;
use runtime::Run;
use serde_json::{Value, json};
use server::OpenMode;
use std::collections::BTreeMap;
use timeline::{Entry, Event, ExecutionId, Reaction, StepId, StepRecord, Transcript};

/// Width of the labels, in characters.
const LABEL: usize = 34;
/// Width of the durations, in characters.
const DURATION: usize = 10;
/// Minimum and maximum width of the bars, in characters.
const BARS: (usize, usize) = (10, 60);
/// Maximum length of the text behind a bar, in characters.
const RESULT: usize = 28;

/// A row of the waterfall.
struct TraceRow {
    style: Style,
    depth: usize,
    label: String,
    from: Timestamp,
    /// Its end; absent if it has not ended.
    to: Option<Timestamp>,
    result: String,
}

/// A run with its times.
struct TracedRun {
    reaction: Reaction,
    times: ExecutionTimes,
}

pub(crate) async fn trace(
    place: &StoreLocation,
    options: TraceOptions,
    output: &Output,
) -> Result<(), CliError> {
    let TraceOptions {
        key,
        run,
        all,
        whose,
    } = options;
    let reach = place.reach(&whose, OpenMode::ReadOnly).await?;
    let runs = read(&reach, &key).await?;
    let is_wanted = |it: &TracedRun| match &run {
        Some(id) => it.reaction.execution.id.as_str() == id,
        None => true,
    };
    let mut wanted: Vec<TracedRun> = runs.into_iter().filter(is_wanted).collect();
    if let (true, Some(id)) = (wanted.is_empty(), run) {
        return Err(CliError::NoRun { key, id });
    }
    if !all {
        wanted.drain(..wanted.len().saturating_sub(1));
    }
    if wanted.is_empty() {
        return output.line("the thread has no runs yet");
    }
    for (n, run) in wanted.iter().enumerate() {
        if n > 0 {
            output.line("")?;
        }
        print(run, output)?;
    }
    reach.close().await
}

/// The runs of a thread, oldest first.
async fn read(reach: &Reach, key: &str) -> Result<Vec<TracedRun>, CliError> {
    let mut running: Vec<ExecutionTimes> = Vec::new();
    let mut over: BTreeMap<ExecutionId, ExecutionTimes> = BTreeMap::new();
    let mut transcript = Transcript::default();
    let events = all_events(reach, key, |logged| {
        let record = &logged.record;
        if let Event::ExecutionCreated { execution, .. } = &record.event {
            running.push(ExecutionTimes::new(execution.id.clone()));
        }
        let ended = running.extract_if(.., |times| times.apply(record));
        over.extend(ended.map(|times| (times.id().clone(), times)));
        transcript.apply(record);
    });
    events.await.map_err(|error| missing(error, key))?;
    over.extend(running.into_iter().map(|times| (times.id().clone(), times)));
    let reactions = transcript.entries.into_iter();
    let traced = reactions.filter_map(|entry| match entry {
        Entry::Reaction(reaction) => {
            let times = over.remove(&reaction.execution.id)?;
            Some(TracedRun { reaction, times })
        }
        Entry::Item(_) => None,
    });
    Ok(traced.collect())
}

fn print(run: &TracedRun, output: &Output) -> Result<(), CliError> {
    let execution = &run.reaction.execution;
    let rows = rows(run);
    let from = execution.created_at;
    let last = rows.iter().filter_map(|row| row.to).max();
    let now = Timestamp::now();
    let to = if run.reaction.ended_at.is_some() {
        last.unwrap_or(from)
    } else {
        now
    };
    for row in &rows {
        output.value(&value(row, execution.id.as_str()))?;
    }
    let reason = execution.interruption.as_ref();
    let fixed = LABEL + DURATION + RESULT + 6;
    let bars = width().saturating_sub(fixed).clamp(BARS.0, BARS.1);
    for row in rows {
        let end = row.to.unwrap_or(now);
        let label = format!("{}{}", "  ".repeat(row.depth), row.label);
        let style = row.style;
        let line = format!(
            "{style}{:LABEL$}{style:#}  {style}{}{style:#}  {:>DURATION$}  {DIM}{}{DIM:#}",
            fitted(&label, LABEL),
            bar((from, to), (row.from, end), bars),
            duration_text(millis(row.from, end)),
            fitted(&row.result, RESULT)
        );
        output.line(line.trim_end())?;
    }
    if let Some(detail) = reason.and_then(|why| why.detail.as_deref()) {
        output.line(&format!("{BAD}reason{BAD:#}  {}", clean(detail)))?;
    }
    Ok(())
}

fn value(row: &TraceRow, run: &str) -> Value {
    json!({
        "executionId": run,
        "depth": row.depth,
        "label": row.label,
        "from": row.from.to_string(),
        "to": row.to.map(|to| to.to_string()),
        "result": row.result,
    })
}

fn rows(run: &TracedRun) -> Vec<TraceRow> {
    let execution = &run.reaction.execution;
    let agent = Run::of(execution.run.as_ref()).agent;
    let reason = execution.interruption.as_ref();
    let result = match reason {
        Some(why) => format!("{}, {}", execution.status, why.reason),
        None => execution.status.to_string(),
    };
    let mut rows = vec![TraceRow {
        style: if reason.is_some() { BAD } else { BOLD },
        depth: 0,
        label: format!("run of {}", agent.as_deref().unwrap_or("agent")),
        from: execution.created_at,
        to: run.reaction.ended_at,
        result,
    }];
    let mut restarts = run.times.restarts.iter().peekable();
    let times = run.times.steps.iter().map(|times| (&times.id, times));
    let times: BTreeMap<&StepId, &StepTimes> = times.collect();
    for record in &run.reaction.steps {
        let Some(step) = times.get(&record.step.id).copied() else {
            continue;
        };
        for (n, attempt) in step.attempts.iter().enumerate() {
            while let Some(restart) = restarts.next_if(|it| it.seq < attempt.first_seq) {
                rows.push(restart_row(restart));
            }
            rows.push(attempt_row(record, step, n));
        }
        let calls = StepCalls::of(record);
        for call in &step.calls {
            rows.push(call_row(&calls, call));
            let subagents = calls.subagents(call).iter();
            rows.extend(subagents.map(|subagent| subagent_row(&calls, subagent)));
        }
    }
    rows.extend(restarts.map(restart_row));
    rows
}

fn restart_row(restart: &Restart) -> TraceRow {
    let result = if restart.is_orderly {
        "after a shutdown"
    } else {
        "after a crash"
    };
    TraceRow {
        style: WARNED,
        depth: 1,
        label: "restart of the server".to_owned(),
        from: restart.at,
        to: Some(restart.at),
        result: result.to_owned(),
    }
}

fn attempt_row(record: &StepRecord, step: &StepTimes, n: usize) -> TraceRow {
    let attempt = &step.attempts[n];
    let is_void = n + 1 < step.attempts.len();
    let response = record.response.as_ref();
    let response: Option<StepResponse> = response.and_then(|(it, _)| it.read().ok());
    let model = response.and_then(|it| it.model);
    let first = attempt
        .first_chunk
        .map(|first| millis(attempt.started, first));
    let reason = attempt.ended.map(|(_, reason)| reason);
    let result = match (is_void, reason, first) {
        (true, Some(AttemptEnd::Restarted), _) => "void: the process stopped".to_owned(),
        (true, _, _) => "void: called again".to_owned(),
        (false, Some(AttemptEnd::Failed), _) => "failed".to_owned(),
        (false, _, Some(first)) => format!("first token {}", duration_text(first)),
        (false, _, None) => String::new(),
    };
    TraceRow {
        style: if is_void { WARNED } else { Style::new() },
        depth: 1,
        label: match model {
            Some(model) => format!("step {} {model}", record.step.iteration),
            None => format!("step {}", record.step.iteration),
        },
        from: attempt.started,
        to: attempt.ended.map(|(at, _)| at),
        result,
    }
}

fn call_row(calls: &StepCalls, call: &CallTimes) -> TraceRow {
    let input = calls.tool(call).map(ToolPart::arguments);
    let result = match call.outcome.as_deref() {
        None if calls.is_open(call) => "left open",
        None => "no result",
        Some(outcome) => outcome,
    };
    TraceRow {
        style: TOOL,
        depth: 2,
        label: format!("{} {}", call.tool_name, input.unwrap_or_default()),
        from: call.started.unwrap_or(call.created),
        to: calls.end(call),
        result: result.to_owned(),
    }
}

fn subagent_row(calls: &StepCalls, subagent: &StartedSubagent) -> TraceRow {
    let result = if subagent.ended.is_some() {
        "ended"
    } else {
        "not ended"
    };
    TraceRow {
        style: DIM,
        depth: 3,
        label: format!("sub-agent {}", subagent.agent),
        from: subagent.started,
        to: subagent.ended.or(calls.ended_at()),
        result: result.to_owned(),
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    let millis = to.as_millisecond().saturating_sub(from.as_millisecond());
    u64::try_from(millis).unwrap_or_default()
}

/// A text on one line that has at most this length, in characters.
fn fitted(text: &str, length: usize) -> String {
    let text = clean(text).replace(['\n', '\t'], " ");
    if text.chars().count() <= length {
        return text;
    }
    let cut: String = text.chars().take(length.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// A bar from one instant to another, on a scale of this width, in characters.
fn bar(scale: (Timestamp, Timestamp), bar: (Timestamp, Timestamp), width: usize) -> String {
    let whole = millis(scale.0, scale.1).max(1);
    let column = |at: Timestamp| {
        let share = u128::from(millis(scale.0, at).min(whole)) * width as u128 / u128::from(whole);
        usize::try_from(share).unwrap_or(width)
    };
    let start = column(bar.0).min(width.saturating_sub(1));
    let end = column(bar.1).clamp(start + 1, width);
    let text = format!("{}{}", " ".repeat(start), "█".repeat(end - start));
    format!("{text:width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn a_bar_covers_its_share_of_the_scale() {
        let scale = (at(0), at(1_000));
        assert_eq!(bar(scale, (at(0), at(500)), 10), "█████     ");
        assert_eq!(bar(scale, (at(500), at(1_000)), 10), "     █████");
        assert_eq!(bar(scale, (at(1_000), at(1_000)), 10), "         █");
        assert_eq!(bar((at(0), at(0)), (at(0), at(0)), 4), "█   ");
    }

    #[test]
    fn a_long_text_is_cut_to_its_width() {
        assert_eq!(fitted("a\nb", 3), "a b");
        assert_eq!(fitted("abcdef", 4), "abc…");
    }
}
