//! What the grid leaves for others: each request, its answer and what was read of it, as files.
//!
//! Below the folder that `LOOMLINE_FIXTURES_OUT` names, if it names one, each vendor has a folder
//! after the module of its tests, such as `chat_completions.openai`. The n-th request of a scenario
//! is `Text.0.request.json`, the body as it was sent; `Text.0.response.sse` (or `json`, `ndjson`,
//! `html`), the body that answered; `Text.0.meta.json`, the path, the headers and the status; and
//! `Text.0.decoded.json`, the response or the error that the codec made of it. A scenario that does
//! not apply is `Document.skipped`, with the reason. `scripts/check-providers` shows the files to
//! the vendors' own libraries.

use crate::vendor::{Scenario, Seen, Vendor};
use loomline_upp::{Error, Message, Response};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Where the files of a vendor go, if they are wanted.
fn folder(module: &str) -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "only the person who runs the test knows where"
    )]
    let out = std::env::var_os("LOOMLINE_FIXTURES_OUT")?;
    let (_, vendor) = module.split_once("::").unwrap();
    let folder = PathBuf::from(out).join(vendor.replace("::", "."));
    std::fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

/// What came of a request, as JSON.
pub(crate) fn outcome(outcome: Result<&Response, &Error>) -> Value {
    match outcome {
        Ok(response) => json!({
            "message": Message::from(response.message.clone()),
            "usage": response.usage,
            "stopReason": response.stop_reason,
            "data": response.data,
            "modelId": response.model_id,
            "responseId": response.response_id,
        }),
        Err(error) => json!({ "error": error }),
    }
}

/// Saves why a scenario does not apply.
pub(crate) fn save_skipped(module: &str, scenario: Scenario, reason: &str) {
    if let Some(folder) = folder(module) {
        std::fs::write(folder.join(format!("{scenario:?}.skipped")), reason).unwrap();
    }
}

/// Saves the requests that were seen, their answers, and what was read of them.
pub(crate) fn save(
    vendor: &dyn Vendor,
    module: &str,
    scenario: Scenario,
    seen: &[Seen],
    read: &[Value],
) {
    assert_eq!(seen.len(), read.len(), "each request has one outcome");
    let Some(folder) = folder(module) else {
        return;
    };
    for (n, (seen, read)) in seen.iter().zip(read).enumerate() {
        let reply = vendor.reply(scenario, n);
        let content_type = &reply.headers[0].1;
        let ending = match content_type.split(';').next().unwrap() {
            "text/event-stream" => "sse",
            "application/x-ndjson" => "ndjson",
            "application/json" => "json",
            "text/html" => "html",
            other => panic!("no ending for {other}"),
        };
        let sent: Map<String, Value> = seen
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().into()))
            .collect();
        let headers: Map<String, Value> = reply
            .headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
            .collect();
        let meta = json!({
            "path": seen.path, "requestHeaders": sent,
            "status": reply.status, "headers": headers, "stalls": reply.stalls,
        });
        let write = |what: &str, text: String| {
            let file = folder.join(format!("{scenario:?}.{n}.{what}"));
            std::fs::write(file, text).unwrap();
        };
        write("request.json", seen.text.clone());
        write(&format!("response.{ending}"), reply.pieces.concat());
        write("meta.json", format!("{meta:#}\n"));
        write("decoded.json", format!("{read:#}\n"));
    }
}
