//! What the views of Open Responses say of a log.

use super::golden::{Golden, Marked};
use super::log::RunLog;
use loomline_interop::responses::{
    EventFraming, ListOptions, ResponseOf, ResponseStream, conversation, conversation_items,
    input_items, response,
};
use serde_json::json;
use timeline::Record;

const ALL: ListOptions = ListOptions {
    encrypted_reasoning: true,
    extensions: true,
};

fn streamed(mut stream: ResponseStream, records: &[Record]) -> String {
    let mut marked = Marked::default();
    for record in records {
        let mut out = String::new();
        stream.apply(record, &mut out);
        marked.push(record.seq, &out);
    }
    marked.finish()
}

/// The data of server-sent events, one a line.
fn data(sse: &str) -> String {
    let lines = sse.lines().filter_map(|line| line.strip_prefix("data: "));
    let lines = lines.filter(|data| *data != "[DONE]");
    lines.flat_map(|data| [data, "\n"]).collect()
}

/// The response as it stands at the moments that are looked at.
fn objects(mut stream: ResponseStream, log: &RunLog) -> String {
    let mut objects = Vec::new();
    for (place, record) in log.records.iter().enumerate() {
        stream.apply(record, &mut String::new());
        let is_moment = log.moments().iter().any(|(_, n)| *n == place + 1);
        if let Some(object) = stream.object().filter(|_| is_moment) {
            objects.push(format!(
                "@{} {} {}",
                record.seq,
                stream.status().word(),
                object.json
            ));
        }
    }
    objects.join("\n")
}

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    for (n, began) in log.executions().iter().enumerate() {
        let name = |kind: &str| format!("{n} {kind}");
        let of = ResponseOf::Trigger(began.trigger_id());
        let stream = || ResponseStream::new(of.clone(), EventFraming::Sse);
        let all = streamed(stream(), &log.records);
        golden.section(&name("sse"), all.as_str());
        let by_id = ResponseOf::Execution(began.execution.id.clone());
        let by_id = ResponseStream::new(by_id, EventFraming::Sse);
        golden.section(&name("by id"), streamed(by_id, &log.records));
        let framed = ResponseStream::new(of.clone(), EventFraming::Lines);
        let framed = streamed(framed, &log.records);
        let framed = framed.lines().filter(|line| !line.starts_with('@'));
        let framed: String = framed.flat_map(|line| [line, "\n"]).collect();
        assert_eq!(framed, data(&all), "{}", log.name);
        golden.section(
            &name("sse with all"),
            streamed(stream().including(ALL), &log.records),
        );
        let n_events = u64::try_from(data(&all).lines().count()).unwrap();
        for after in 0..n_events {
            let resumed = streamed(stream().starting_after(after), &log.records);
            golden.section(&name(&format!("after {after}")), resumed);
        }
        let mut failed = stream();
        let half = usize::midpoint(began.place, log.end_of(began));
        let mut out = String::new();
        for record in &log.records[..half] {
            failed.apply(record, &mut String::new());
        }
        failed.fail(&json!({"code": "gone", "message": "It is gone."}), &mut out);
        golden.section(&name("failed"), out);
        let quiet = || ResponseStream::quiet(of.clone());
        golden.section(&name("objects"), objects(quiet(), log));
        let quiet = objects(quiet().including(ALL), log);
        golden.section(&name("objects with all"), quiet);
        let transcript = log.transcript(log.records.len());
        let id = &began.execution.id;
        if let Some(made) = response(&transcript, id) {
            golden.section(&name("object"), made.value.json);
            golden.values(
                &name("losses"),
                made.losses.iter().map(|it| format!("{it:?}")),
            );
        }
        for (kind, options) in [("input", ListOptions::default()), ("input with all", ALL)] {
            if let Some(items) = input_items(&transcript, id, options) {
                golden.values(&name(kind), items.value.into_iter().map(|it| it.json));
            }
        }
    }
    for (moment, n_records) in log.moments() {
        let transcript = log.transcript(n_records);
        for (kind, options) in [("items", ListOptions::default()), ("items with all", ALL)] {
            let items = conversation_items(&transcript, options);
            let name = format!("{kind} {moment}");
            golden.values(&name, items.value.into_iter().map(|it| it.json));
            golden.values(
                &format!("losses of {name}"),
                items.losses.iter().map(|it| format!("{it:?}")),
            );
        }
        let thread = transcript.thread.as_ref().unwrap();
        golden.section(
            &format!("conversation {moment}"),
            conversation(thread).to_string(),
        );
    }
    golden.finish()
}
