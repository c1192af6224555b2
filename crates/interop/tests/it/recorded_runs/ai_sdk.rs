//! What the AI SDK's views say of a log.

use super::golden::{Golden, Marked, lines};
use super::log::{Began, RunLog};
use loomline_interop::ai_sdk::{
    ChunkJson, MessageSoFar, StreamView, continues_message, message_so_far, to_ui_messages,
};
use loomline_interop::run::RunSelector;
use timeline::{ItemId, Record};

fn answering(major: u8, trigger: ItemId) -> StreamView {
    StreamView::new(major, RunSelector::answering(trigger))
}

fn streamed(mut view: StreamView, records: &[Record]) -> String {
    let mut marked = Marked::default();
    for record in records {
        let chunks = view.chunks(record);
        marked.push(record.seq, &lines(chunks.iter().map(ChunkJson::to_text)));
    }
    marked.finish()
}

/// The message that an execution goes on with.
fn so_far(log: &RunLog, before: Option<&Began<'_>>, began: &Began<'_>) -> Option<MessageSoFar> {
    let transcript = log.transcript(began.place);
    message_so_far(&transcript, &before?.execution.id, true)
}

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    let executions = log.executions();
    for (n, began) in executions.iter().enumerate() {
        let before = n.checked_sub(1).and_then(|n| executions.get(n));
        for major in [7, 6, 5] {
            let view = answering(major, began.trigger_id());
            golden.section(&format!("{n} for {major}"), streamed(view, &log.records));
            if began.answers() {
                let view =
                    answering(major, began.trigger_id()).continuing(so_far(log, before, began));
                golden.section(
                    &format!("{n} continued for {major}"),
                    streamed(view, &log.records),
                );
            }
        }
        let run = || RunSelector::answering(began.trigger_id());
        let view = || StreamView::new(7, run());
        let name = |kind: &str| format!("{n} {kind}");
        golden.section(
            &name("with thread"),
            streamed(view().with_thread(), &log.records),
        );
        golden.section(&name("with ek"), streamed(view().with_ek(), &log.records));
        let running = StreamView::new(7, RunSelector::running(None));
        golden.section(
            &name("running"),
            streamed(running, &log.records[began.place..]),
        );
        let later = &executions[n + 1..];
        let through: Vec<bool> = later
            .iter()
            .take_while(|it| continues_message(it.execution, Some(it.trigger)))
            .map(Began::answers)
            .collect();
        if !through.is_empty() {
            golden.section(
                &name("through"),
                streamed(StreamView::new(7, run().through(through)), &log.records),
            );
        }
        let answers: Vec<_> = later.iter().filter(|it| it.answers()).collect();
        if !answers.is_empty() {
            let items = answers.iter().map(|it| it.trigger_id());
            golden.section(
                &name("then"),
                streamed(
                    StreamView::new(7, run().then_answering(items)),
                    &log.records,
                ),
            );
        }
    }
    for (moment, n_records) in log.moments() {
        let shown = to_ui_messages(&log.transcript(n_records));
        golden.values(&format!("messages {moment}"), shown.value);
        golden.values(
            &format!("losses {moment}"),
            shown.losses.iter().map(|it| format!("{it:?}")),
        );
    }
    golden.finish()
}
