//! What the view of Chat Completions says of a log.

use super::golden::{Golden, Marked};
use super::log::RunLog;
use crate::chat_completions::sent;
use loomline_interop::chat_completions::{CompletionStream, StoredMessages};
use loomline_interop::run::RunSelector;

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    for (n, began) in log.executions().iter().enumerate() {
        let of = RunSelector::answering(began.trigger_id());
        let mut stream = CompletionStream::new(of).streaming(true);
        let mut marked = Marked::default();
        for record in &log.records {
            let mut out = String::new();
            stream.apply(record, &mut out);
            marked.push(record.seq, &out);
        }
        golden.section(&format!("{n} stream"), marked.finish());
        let whole = match stream.outcome() {
            None => "none".to_owned(),
            Some(Ok(whole)) => serde_json::to_string(&whole).unwrap(),
            Some(Err(error)) => error.body().to_string(),
        };
        golden.section(&format!("{n} whole"), whole);
    }
    for (moment, n_records) in log.moments() {
        let stored = StoredMessages::whole(&log.transcript(n_records));
        let messages: Vec<String> = stored.contents().map(|it| sent(it).to_string()).collect();
        golden.section(&format!("messages {moment}"), messages.join("\n"));
    }
    golden.finish()
}
