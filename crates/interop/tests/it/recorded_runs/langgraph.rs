//! What the views of `LangGraph` say of a log.

use super::golden::{Golden, Marked, lines};
use super::log::{Began, RunLog};
use loomline_interop::langgraph::{
    Frame, FrameId, InterruptedCall, Moment, RunEventStream, RunRecord, Snapshots, Speaks,
    StreamMode, agent_protocol_messages, messages_of, values_at, values_of,
};
use serde_json::Value;
use std::collections::BTreeSet;
use timeline::Record;

const ALL: [StreamMode; 5] = [
    StreamMode::Values,
    StreamMode::Updates,
    StreamMode::Messages,
    StreamMode::MessagesTuple,
    StreamMode::Custom,
];

/// A run, and what is said at its ends.
pub(super) struct Followed<'a> {
    log: &'a RunLog,
    pub(super) began: &'a Began<'a>,
    /// The run's records, and those before it.
    pub(super) records: &'a [Record],
    pub(super) asked: Vec<InterruptedCall>,
    first: Value,
    last: Value,
}

impl<'a> Followed<'a> {
    pub(super) fn new(log: &'a RunLog, began: &'a Began<'a>) -> Self {
        let end = log.end_of(began);
        let executions = log.executions();
        let last = executions.iter().rfind(|it| it.place < end).unwrap();
        let values = |n_records: usize, of: &Began<'_>, moment| {
            values_at(&log.transcript(n_records), &of.execution.id, moment).unwrap()
        };
        Self {
            log,
            began,
            records: &log.records[..end],
            asked: asked(log, last),
            first: values(began.place + 1, began, Moment::Begin),
            last: values(end, last, Moment::End),
        }
    }

    /// The thread's values at this moment of the run.
    pub(super) fn values(&self, moment: Moment) -> Value {
        match moment {
            Moment::Begin => self.first.clone(),
            Moment::End => self.last.clone(),
        }
    }
}

/// The frames of a run, each with the record that it is of.
fn frames(run: &Followed<'_>, modes: &[StreamMode], last: Option<FrameId>) -> Vec<(u64, Frame)> {
    let (log, began) = (run.log, run.began);
    let view = RunEventStream::new("thread", "run", began.trigger_id(), modes).after(last);
    let mut view = if began.answers() {
        view.resumed()
    } else {
        view
    };
    let mut all = vec![(0, view.metadata())];
    for (place, record) in log.records.iter().enumerate() {
        let (_, mut frames) = view.select(record);
        if view.wants_values() {
            frames.extend(view.begin(run.values(Moment::Begin)));
        }
        if place + 1 == run.records.len() {
            let values = view.wants_last_values();
            let values = values.then(|| run.values(Moment::End));
            frames.extend(view.end(values, &run.asked));
        }
        all.extend(frames.into_iter().map(|frame| (record.seq.0, frame)));
    }
    all
}

/// What an execution has left for somebody.
fn asked(log: &RunLog, last: &Began<'_>) -> Vec<InterruptedCall> {
    let own = log.left_by(&last.execution.id);
    let own = own
        .iter()
        .filter_map(|call| InterruptedCall::of("k", "k", call));
    let beneath = log.beneath.iter();
    let beneath = beneath.filter_map(|(key, call)| InterruptedCall::of("k", key, call));
    let waits = !log.waits_beneath().is_empty();
    own.chain(beneath.filter(|_| waits)).collect()
}

fn written(frames: &[(u64, Frame)]) -> String {
    let mut marked = Marked::default();
    for frames in frames.chunk_by(|one, other| one.0 == other.0) {
        let mut out = String::new();
        for (_, frame) in frames {
            frame.write(&mut out);
        }
        marked.push(frames[0].0, &out);
    }
    marked.finish()
}

/// Whether these frames are those of all that have their names.
fn are_of(all: &[(u64, Frame)], frames: &[(u64, Frame)]) -> bool {
    let names: BTreeSet<&str> = frames.iter().map(|(_, frame)| frame.event).collect();
    let of_all = all.iter().filter(|(_, frame)| names.contains(frame.event));
    of_all.eq(frames)
}

fn streams(golden: &mut Golden, log: &RunLog, n: usize, began: &Began<'_>) {
    let name = |kind: &str| format!("{n} {kind}");
    let run = Followed::new(log, began);
    let all = frames(&run, &ALL, None);
    golden.section(&name("all modes"), written(&all));
    for mode in ALL {
        let frames = frames(&run, &[mode], None);
        let name = name(mode.name());
        if are_of(&all, &frames) {
            let n = frames.len();
            golden.line(format_args!("== {name}: {n} frames of all modes"));
        } else {
            golden.section(&name, written(&frames));
        }
    }
    for id in all.iter().filter_map(|(_, frame)| frame.id).step_by(3) {
        // What comes first has no id and comes again.
        let resumed = frames(&run, &ALL, Some(id)).split_off(1);
        golden.section(&name(&format!("after {id}")), written(&resumed));
    }
}

fn snapshots(golden: &mut Golden, log: &RunLog) {
    for (moment, n_records) in log.moments() {
        let transcript = log.transcript(n_records);
        let name = |kind: &str| format!("{kind} {moment}");
        let messages = messages_of(&transcript);
        golden.values(&name("messages"), &messages);
        golden.values(
            &name("messages of the Agent Protocol"),
            agent_protocol_messages(&messages),
        );
        let values = values_of(&transcript);
        let known = values["messages"] == Value::from(messages);
        golden.section(&name("values are the messages"), known.to_string());
        let states = Snapshots::of(&transcript);
        let page = states.page(None, 100, usize::MAX);
        let state = |place: usize| states.to_json(Some(place), "thread", "k", None);
        golden.values(&name("states"), page.into_iter().map(state));
        for speaks in [Speaks::LangGraph, Speaks::AgentProtocol] {
            let runs = RunRecord::all(&transcript);
            let runs = runs.iter().map(|run| run.to_json(speaks, "thread"));
            golden.section(&name(&format!("runs {speaks:?}")), lines(runs));
        }
    }
}

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    for (n, began) in log.executions().iter().enumerate() {
        streams(&mut golden, log, n, began);
    }
    snapshots(&mut golden, log);
    golden.finish()
}
