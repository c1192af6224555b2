//! What `LangGraph`'s streaming protocol says of a log.

use super::golden::{Golden, Marked};
use super::langgraph::Followed;
use super::log::RunLog;
use crate::langgraph::protocol::{ALL, request};
use loomline_interop::langgraph::{EventRequest, Moment, ProtocolEvent, ProtocolRun};

fn events(run: &Followed<'_>, request: EventRequest) -> Vec<ProtocolEvent> {
    let view = ProtocolRun::new("thread", "run", run.began.trigger_id(), request);
    let mut view = if run.began.answers() {
        view.resumed()
    } else {
        view
    };
    let mut events = Vec::new();
    for record in run.records {
        events.extend(view.select(record).1);
        if view.wants_values() {
            events.extend(view.begin(run.values(Moment::Begin)));
        }
    }
    if view.wants_end() {
        let values = view.wants_last_values();
        let values = values.then(|| run.values(Moment::End));
        events.extend(view.end("k", values, &run.asked));
    }
    events
}

fn written(events: &[ProtocolEvent]) -> String {
    let mut marked = Marked::default();
    for events in events.chunk_by(|one, other| one.id.seq() == other.id.seq()) {
        let mut out = String::new();
        for event in events {
            event.write(&mut out);
        }
        marked.push(events[0].id.seq(), &out);
    }
    marked.finish()
}

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    for (n, began) in log.executions().iter().enumerate() {
        let run = Followed::new(log, began);
        let all = events(&run, request(&ALL, None));
        golden.section(&format!("{n} all channels"), written(&all));
        for channel in ALL {
            let events = events(&run, request(&[channel], None));
            let methods: Vec<&str> = events.iter().map(|event| event.method).collect();
            let of_all = all.iter().filter(|event| methods.contains(&event.method));
            if of_all.eq(&events) {
                let n_events = events.len();
                golden.line(format_args!(
                    "== {n} {channel}: {n_events} events of all channels"
                ));
            } else {
                golden.section(&format!("{n} {channel}"), written(&events));
            }
        }
        let named = events(&run, request(&["custom:data-weather"], None));
        golden.section(&format!("{n} of one name"), written(&named));
        for place in all.iter().map(|event| event.id).step_by(3) {
            let resumed = events(&run, request(&ALL, Some(place)));
            golden.section(&format!("{n} since {place}"), written(&resumed));
        }
    }
    golden.finish()
}
