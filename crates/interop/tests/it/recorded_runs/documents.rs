//! What a log comes to as a document, and what a model is asked of it.

use super::golden::Golden;
use super::log::RunLog;
use loomline_interop::document::to_document;
use loomline_interop::model::history;
use serde_json::Value;
use upp::Message;

/// A message as JSON. Those that are in no log have a random id, and the time at which they were read.
fn message(message: &Message) -> Value {
    let mut message = serde_json::to_value(message).unwrap();
    let is_stored = message["id"].as_str().unwrap().starts_with("00000000-");
    if let Some(fields) = message.as_object_mut().filter(|_| !is_stored) {
        fields.remove("id");
        fields.remove("timestamp");
    }
    message
}

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    for (moment, n_records) in log.moments() {
        let transcript = log.transcript(n_records);
        let name = |kind: &str| format!("{kind} {moment}");
        let document = to_document(&transcript);
        golden.section(&name("document"), document.value.encode());
        golden.values(
            &name("losses"),
            document.losses.iter().map(|it| format!("{it:?}")),
        );
        let messages = history(&transcript, None);
        golden.values(&name("history"), messages.iter().map(message));
    }
    golden.finish()
}
