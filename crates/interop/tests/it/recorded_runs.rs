//! The views of every protocol over recorded runs: what each says of a log is in a file.
//!
//! The logs are those that `recorded` of the runtime's tests writes. Each protocol has one function
//! from a log to a text, and nothing else here knows the protocol's views.

mod a2a;
mod ag_ui;
mod ai_sdk;
mod chat_completions;
mod compact;
mod documents;
mod golden;
mod langgraph;
mod log;
mod mcp;
mod responses;
mod streaming;
mod threads;

use log::RunLog;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a protocol says of a log.
type Views = fn(&RunLog) -> String;

const PROTOCOLS: [(&str, Views); 10] = [
    ("ai-sdk", ai_sdk::views),
    ("responses", responses::views),
    ("chat-completions", chat_completions::views),
    ("threads", threads::views),
    ("ag-ui", ag_ui::views),
    ("langgraph", langgraph::views),
    ("langgraph-streaming", streaming::views),
    ("a2a", a2a::views),
    ("mcp", mcp::views),
    ("documents", documents::views),
];

fn folder(name: &str) -> PathBuf {
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/runs");
    Path::new(runs).join(name)
}

fn names(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().path().file_stem().unwrap().to_owned());
    names.map(|name| name.into_string().unwrap()).collect()
}

/// Compares what a protocol says of every log with its file. Run with `UPDATE_RUNS=1` to write the
/// files anew.
fn compare(protocol: &str) {
    let (_, views) = PROTOCOLS
        .iter()
        .find(|(name, _)| *name == protocol)
        .unwrap();
    let (folder, update) = (folder(protocol), golden::is_updated());
    for log in RunLog::all() {
        let file = folder.join(format!("{}.txt", log.name));
        let now = views(&log);
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, compact::compact(&now)).unwrap();
        }
        let then = std::fs::read_to_string(&file).unwrap_or_default();
        let then = compact::whole(&then);
        golden::assert_same(&now, &then, &file);
    }
}

#[test]
fn ai_sdk_views_are_as_recorded() {
    compare("ai-sdk");
}

#[test]
fn responses_views_are_as_recorded() {
    compare("responses");
}

#[test]
fn chat_completions_views_are_as_recorded() {
    compare("chat-completions");
}

#[test]
fn threads_api_views_are_as_recorded() {
    compare("threads");
}

#[test]
fn ag_ui_views_are_as_recorded() {
    compare("ag-ui");
}

#[test]
fn langgraph_views_are_as_recorded() {
    compare("langgraph");
}

#[test]
fn langgraph_streaming_protocol_views_are_as_recorded() {
    compare("langgraph-streaming");
}

#[test]
fn a2a_views_are_as_recorded() {
    compare("a2a");
}

#[test]
fn mcp_views_are_as_recorded() {
    compare("mcp");
}

#[test]
fn documents_and_histories_are_as_recorded() {
    compare("documents");
}

#[test]
fn every_protocol_has_a_file_for_each_of_thirty_or_more_logs() {
    let logs = log::run_names();
    assert!(logs.len() >= 30);
    for (protocol, _) in PROTOCOLS {
        assert_eq!(names(&folder(protocol)), logs, "{protocol}");
    }
}
