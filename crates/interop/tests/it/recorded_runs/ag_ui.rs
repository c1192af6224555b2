//! What the views of AG-UI say of a log.

use super::golden::{Golden, Marked, lines};
use super::log::{Began, RunLog};
use loomline_interop::ag_ui::{RunView, to_messages, was_cut_off};
use timeline::ItemId;

/// The events of a run up to its end, including those that the server adds there.
fn streamed(mut view: RunView, log: &RunLog, from: usize) -> String {
    let mut marked = Marked::default();
    for (place, record) in log.records.iter().enumerate().skip(from) {
        let was_over = view.is_over();
        let mut events = view.select(record).1;
        if view.is_over() && !was_over {
            events.extend(ended(&mut view, log, place + 1));
        }
        marked.push(record.seq, &lines(events));
    }
    marked.finish()
}

fn ended(view: &mut RunView, log: &RunLog, n_records: usize) -> Vec<serde_json::Value> {
    if view.is_finished() {
        view.add_requests(&[]);
    }
    if view.has_waiting_children() {
        let own = log.waits_beneath();
        let asked = own.iter().zip(&log.beneath);
        view.add_child_calls(asked.map(|(own, (key, call))| (key.as_str(), own.as_str(), call)));
    }
    let wants_messages = view.wants_messages();
    let messages = wants_messages.then(|| to_messages(&log.transcript(n_records)).value);
    view.end(messages)
}

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    let executions = log.executions();
    for (n, began) in executions.iter().enumerate() {
        let name = |kind: &str| format!("{n} {kind}");
        let view = || RunView::new("thread", "run", began.trigger_id());
        golden.section(&name("stream"), streamed(view(), log, 0));
        golden.section(
            &name("telling"),
            streamed(view().with_user_message(), log, 0),
        );
        let running = RunView::running("thread", "run", None);
        golden.section(&name("running"), streamed(running, log, began.place));
        let later = executions[n + 1..].iter().filter(|it| it.answers());
        let answers: Vec<ItemId> = later.map(Began::trigger_id).collect();
        if !answers.is_empty() {
            golden.section(
                &name("then"),
                streamed(view().then_answering(answers), log, 0),
            );
        }
    }
    let failed = RunView::failed("It is gone.", "gone");
    golden.section("failed", failed.to_string());
    for (moment, n_records) in log.moments() {
        let transcript = log.transcript(n_records);
        let messages = to_messages(&transcript);
        golden.values(&format!("messages {moment}"), messages.value);
        golden.values(
            &format!("losses {moment}"),
            messages.losses.iter().map(|it| format!("{it:?}")),
        );
        golden.section(
            &format!("cut off {moment}"),
            was_cut_off(&transcript).to_string(),
        );
    }
    golden.finish()
}
