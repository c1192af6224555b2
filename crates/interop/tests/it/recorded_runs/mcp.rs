//! What the views of MCP say of a log.

use super::golden::{Golden, Marked, lines};
use super::log::RunLog;
use loomline_interop::mcp::{ProgressView, message_text, to_text};
use timeline::Record;

fn progress(mut progress: ProgressView, records: &[Record]) -> String {
    let mut marked = Marked::default();
    for record in records {
        let messages = progress.messages(record);
        marked.push(
            record.seq,
            &lines(messages.iter().map(|it| format!("{it:?}"))),
        );
    }
    marked.finish()
}

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    for (n, began) in log.executions().iter().enumerate() {
        let of = ProgressView::new(Some(began.trigger_id()));
        golden.section(&format!("{n} progress"), progress(of, &log.records));
        let running = progress(ProgressView::new(None), &log.records[began.place..]);
        golden.section(&format!("{n} running"), running);
    }
    for (moment, n_records) in log.moments() {
        let transcript = log.transcript(n_records);
        golden.section(&format!("text {moment}"), to_text(&transcript));
        golden.section(
            &format!("answer {moment}"),
            message_text(&transcript.entries),
        );
    }
    golden.finish()
}
