//! What the views of the Threads API say of a log.

use super::golden::{Golden, Marked};
use super::log::RunLog;
use loomline_interop::threads::{Run, RunStream, ThreadView, thread_object};
use serde::Serialize;
use timeline::Record;

const THREAD: &str = "thread_1";

fn streamed(mut stream: RunStream, records: &[Record]) -> String {
    let mut marked = Marked::default();
    for record in records {
        let mut out = String::new();
        let flow = stream.write(record, &mut out);
        marked.push(record.seq, &out);
        if flow.is_break() {
            return marked.finish();
        }
    }
    marked.finish() + "(goes on)\n"
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn snapshots(golden: &mut Golden, log: &RunLog) {
    for (moment, n_records) in log.moments() {
        let now = log.records[n_records - 1].at;
        let transcript = log.transcript(n_records);
        let thread = thread_object(transcript.thread.as_ref().unwrap());
        golden.section(&format!("thread {moment}"), json(&thread.value));
        let view = ThreadView::of(&transcript);
        let runs = view.runs().iter();
        golden.values(
            &format!("runs {moment}"),
            runs.clone().map(|run| json(&run.object(now))),
        );
        let steps = runs.clone().flat_map(|run| run.steps(now));
        golden.values(&format!("steps {moment}"), steps.map(|step| json(&step)));
        let messages = view.messages().map(|listed| json(&listed.object()));
        golden.values(&format!("messages {moment}"), messages);
        let losses = runs.flat_map(Run::losses).map(|it| format!("{it:?}"));
        golden.values(&format!("losses {moment}"), losses);
        let active = view.active(now).map(|run| run.id().to_owned());
        golden.values(&format!("active {moment}"), active);
    }
}

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    for (n, began) in log.executions().iter().enumerate() {
        let name = |kind: &str| format!("{n} {kind}");
        let item = began.trigger_id();
        let stream = || RunStream::answering(THREAD, item.clone());
        golden.section(&name("stream"), streamed(stream(), &log.records));
        if n == 0 {
            let thread = log.transcript(began.place).thread.unwrap();
            let stream = stream().with_thread(thread_object(&thread).value);
            golden.section(&name("with thread"), streamed(stream, &log.records));
            let half = usize::midpoint(began.place, log.end_of(began));
            let (mut stream, mut out) = (
                streamed_to(&log.records[..half], THREAD, &item),
                String::new(),
            );
            stream.fail("It is gone.", &mut out);
            golden.section(&name("failed"), out);
        }
        let brings = |record: &Record| matches!(&record.event, timeline::Event::ItemCreated { item } if item.id == began.trigger.id);
        let Some(place) = log
            .records
            .iter()
            .position(brings)
            .filter(|_| began.answers())
        else {
            continue;
        };
        let before = ThreadView::of(&log.transcript(place));
        if let Some(run) = before.runs().last() {
            let stream = RunStream::continuing(THREAD, run.clone(), item);
            golden.section(&name("going on"), streamed(stream, &log.records[place..]));
            golden.section(&name("queued again"), json(&run.as_queued_again()));
        }
    }
    snapshots(&mut golden, log);
    golden.finish()
}

fn streamed_to(records: &[Record], thread: &str, item: &timeline::ItemId) -> RunStream {
    let mut stream = RunStream::answering(thread, item.clone());
    for record in records {
        let _ = stream.write(record, &mut String::new());
    }
    stream
}
