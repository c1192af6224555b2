//! Recorded logs behind the routes of every protocol: what clients are given that load a thread again, or
//! take up a stream.
//!
//! The logs are those that `recorded` of the runtime's tests writes. They are put into the store as they
//! are, so all ids and times are theirs. No run goes on here: of a log that ends in the midst of a run,
//! clients are shown what there is.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at the threads of the runtime itself"
)]

#[path = "../../../interop/tests/it/recorded_runs/compact.rs"]
mod compact;
#[path = "../../../interop/tests/it/recorded_runs/golden.rs"]
#[expect(dead_code, reason = "the tests of the views use all of it")]
mod golden;
mod requests;

use crate::harness::Server;
use axum::body::BodyDataStream;
use futures_util::StreamExt;
use futures_util::future::join_all;
use golden::Golden;
use http::{HeaderMap, StatusCode};
use loomline_runtime as runtime;
use requests::{Get, at_rest, in_the_midst};
use runtime::{Append, NewRecord, Ownership, TenantId};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use timeline::{Event, ExecutionId, Record, Seq, ThreadId};

/// The logs that are loaded when nothing runs.
const AT_REST: [&str; 24] = [
    "text_word_by_word",
    "reasoning_and_text",
    "tool_called",
    "tools_in_parallel",
    "message_that_interrupts",
    "rewound",
    "removed_and_renamed",
    "approval_waits",
    "approval_given",
    "approval_denied",
    "client_tool_waits",
    "client_tools_one_by_one",
    "message_beside_an_answer",
    "handoff",
    "handoff_then_approval",
    "subagent",
    "subagent_waits",
    "subagent_answered",
    "model_fails_in_its_text",
    "cancelled_in_its_text",
    "cancelled_while_a_tool_runs",
    "crashed_in_its_text",
    "responses_request",
    "threads_request",
];

/// The logs of which the first records alone are loaded, and behind which event they end. None has
/// sub-agents: what they do comes between a run's own events wherever it happens to.
const IN_THE_MIDST: [(&str, Cut); 7] = [
    ("text_word_by_word", ("text-delta", 3)),
    ("tools_in_parallel", ("tool-input-delta", 4)),
    ("crashed_in_its_text", ("text-delta", 4)),
    ("handoff", ("text-delta", 4)),
    ("approval_given", ("text-delta", 4)),
    ("client_tools_one_by_one", ("text-delta", 2)),
    ("message_that_waits", ("text-delta", 2)),
];

/// Behind the n-th chunk of this type.
type Cut = (&'static str, usize);

/// How long a stream may say nothing before the log goes on.
const QUIET: Duration = Duration::from_millis(200);
/// How long a stream may say nothing before it has failed to end.
const HUNG: Duration = Duration::from_secs(30);

fn folder(name: &str) -> PathBuf {
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/runs");
    Path::new(runs).join(name)
}

/// The log of this name, if it is there.
pub(crate) fn log(name: &str) -> Option<Vec<Record>> {
    let text = std::fs::read_to_string(folder("logs").join(format!("{name}.log"))).ok()?;
    let text = golden::with_ids(&compact::whole(&text));
    let record = |line: &str| {
        let mut fields = line.splitn(3, ' ');
        let mut next = || fields.next().unwrap();
        Record {
            seq: Seq(next().parse().unwrap()),
            at: next().parse().unwrap(),
            event: Event::decode(next()).unwrap(),
        }
    };
    Some(text.lines().map(record).collect())
}

fn new(records: &[Record]) -> Vec<NewRecord> {
    let new = records.iter();
    new.map(|record| NewRecord::new(record.at, record.event.clone()).unwrap())
        .collect()
}

/// Puts a log into a store.
async fn put(server: &Server, records: &[Record]) {
    let (first, rest) = records.split_at(2);
    let (store, tenant) = (server.app.default_store(), TenantId::from("dev"));
    let made = store.get_or_create(&tenant, new(first), None, None).await;
    append(server, &made.unwrap().thread, rest).await;
}

/// Puts more of a log into a store. Nobody is told.
async fn append(server: &Server, thread: &ThreadId, records: &[Record]) {
    let store = server.app.default_store();
    let head = store.head(thread).await.unwrap();
    let append = Append {
        thread: thread.clone(),
        epoch: head.epoch,
        tail: head.tail,
        records: new(records),
        token: None,
        is_limited: false,
        ownership: Ownership::Keep,
        unmoved: Vec::new(),
    };
    store.append(append).await.unwrap();
}

/// Has the runtime look at what the store has of the thread.
async fn look(server: &Server) {
    let (tenant, none) = (TenantId::from("dev"), ExecutionId::from("none"));
    let runtime = server.app.default_runtime();
    let cancelled = runtime.cancel(&tenant, "k", Some(&none), "").await;
    assert!(cancelled.is_err());
}

const CONFIG: &str = "
default_agent = \"talker\"
[models.m]
provider = \"scripted\"
[agents.talker]
model = \"m\"
";

/// A server with a log and those of its sub-agents. What is cut off of the log's end is not there.
pub(crate) async fn server_with(name: &str, records: &[Record]) -> Server {
    let server = Server::new(CONFIG).await;
    put(&server, records).await;
    for child in (1..=9).map_while(|n| log(&format!("{name}.child{n}"))) {
        put(&server, &child).await;
    }
    server
}

/// The headers that say something of what is answered.
const HEADERS: [&str; 4] = [
    "content-type",
    "location",
    "content-location",
    "x-vercel-ai-ui-message-stream",
];

/// The first line of what is answered, and the headers that say what it is.
fn head(status: StatusCode, headers: &HeaderMap) -> String {
    let mut head = format!("{}\n", status.as_u16());
    for (name, value) in headers {
        if HEADERS.contains(&name.as_str()) {
            writeln!(head, "{name}: {}", value.to_str().unwrap()).unwrap();
        }
    }
    head
}

/// An answer without the request's own id.
fn without_request_id(body: &str) -> String {
    let name = "\"requestId\":\"";
    match body.split_once(name) {
        Some((before, rest)) => {
            let (_, after) = rest.split_once('"').unwrap();
            format!("{before}{name}\"{after}")
        }
        None => body.to_owned(),
    }
}

fn compare(folder_name: &str, name: &str, golden: Golden) {
    let file = folder(folder_name).join(format!("{name}.txt"));
    let now = golden.finish();
    if golden::is_updated() {
        std::fs::create_dir_all(folder(folder_name)).unwrap();
        std::fs::write(&file, compact::compact(&now)).unwrap();
    }
    let then = compact::whole(&std::fs::read_to_string(&file).unwrap_or_default());
    golden::assert_same(&now, &then, &file);
}

/// Run with `UPDATE_RUNS=1` to write the files anew.
#[tokio::test]
async fn threads_at_rest_are_served_as_recorded() {
    for name in AT_REST {
        let records = log(name).unwrap();
        let server = server_with(name, &records).await;
        let mut golden = Golden::default();
        for get in at_rest(&records) {
            let answer = server.send(get.request(&server)).await;
            let body = without_request_id(&answer.text);
            let said = head(answer.status, &answer.headers) + &body;
            golden.section(&get.to_string(), said);
        }
        compare("served", name, golden);
    }
}

/// A text without what tells when a thread changed last, how long its log is, and its newest event.
fn without_changes(text: &str) -> String {
    let mut text = without_request_id(text);
    let keys = [
        "updatedAt",
        "updated_at",
        "state_updated_at",
        "seq",
        "bytes",
        "compaction",
    ];
    if let Ok(mut value) = serde_json::from_str::<serde_json::Value>(&text) {
        let mut members = vec![&mut value];
        while let Some(value) = members.pop() {
            if let Some(fields) = value.as_object_mut() {
                fields.retain(|key, _| !keys.contains(&key.as_str()));
            }
            match value {
                serde_json::Value::Array(all) => members.extend(all),
                serde_json::Value::Object(all) => members.extend(all.values_mut()),
                serde_json::Value::Null
                | serde_json::Value::Bool(_)
                | serde_json::Value::Number(_)
                | serde_json::Value::String(_) => {}
            }
        }
        for list in ["threads", "tasks"] {
            // They are in the order of the last changes.
            if let Some(all) = value.get_mut(list).and_then(|it| it.as_array_mut()) {
                all.sort_by_key(ToString::to_string);
            }
        }
        text = value.to_string();
    }
    text
}

#[tokio::test]
async fn a_compaction_changes_no_reading_of_any_protocol() {
    let mut n_compacted = 0;
    for name in AT_REST {
        let records = log(name).unwrap();
        let server = server_with(name, &records).await;
        let gets = at_rest(&records);
        let read = async || {
            let mut all = Vec::new();
            for get in &gets {
                if get.to_string().contains("/events") {
                    // The log has one more event.
                    continue;
                }
                let answer = server.send(get.request(&server)).await;
                let said = head(answer.status, &answer.headers) + &without_changes(&answer.text);
                all.push((get.to_string(), said));
            }
            all
        };
        let before = read().await;
        let body = serde_json::json!({"summary": "in short", "keepRuns": 0});
        let made = server.post("/api/v1/threads/k/compactions", body).await;
        if made.status != 201 {
            assert_eq!(made.error().1, "illegal_cut", "{name}: {}", made.text);
            continue;
        }
        n_compacted += 1;
        let thread = server.get("/api/v1/threads/k").await.json();
        assert_eq!(thread["compaction"]["id"], made.json()["id"]);
        for (then, now) in before.into_iter().zip(read().await) {
            assert_eq!(then, now, "{name}");
        }
    }
    assert!(n_compacted >= 15, "{n_compacted}");
}

/// Run with `UPDATE_RUNS=1` to write the files anew.
#[tokio::test]
async fn streams_of_running_threads_are_taken_up_as_recorded() {
    for (name, cut) in IN_THE_MIDST {
        let records = log(name).unwrap();
        let (records, rest) = records.split_at(place_of(&records, cut));
        let server = server_with(name, records).await;
        let gets = in_the_midst(records);
        let mut streams = join_all(gets.iter().map(|get| taken_up(&server, get))).await;
        let begun = said(&mut streams, QUIET).await;
        append(&server, &thread_of(records), rest).await;
        look(&server).await;
        let ended = said(&mut streams, HUNG).await;
        let mut golden = Golden::default();
        for ((get, stream), said) in gets.iter().zip(&streams).zip(begun.iter().zip(ended)) {
            assert!(stream.body.is_none(), "{name}: {get} does not end");
            let (begun, ended) = said;
            golden.section(&get.to_string(), format!("{}{begun}{ended}", stream.head));
        }
        compare("taken-up", name, golden);
    }
}

fn thread_of(records: &[Record]) -> ThreadId {
    let found = records.iter().find_map(|record| {
        let Event::ThreadCreated { thread } = &record.event else {
            return None;
        };
        Some(thread.id.clone())
    });
    found.unwrap()
}

/// The place after the record that a log is cut behind.
fn place_of(records: &[Record], (kind, n): Cut) -> usize {
    let mut places = records.iter().enumerate().filter(|(_, record)| {
        matches!(&record.event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == kind)
    });
    places.nth(n - 1).unwrap().0 + 1
}

/// An answer that is read piece by piece.
struct Stream {
    head: String,
    /// None once it is over.
    body: Option<BodyDataStream>,
}

async fn taken_up(server: &Server, get: &Get) -> Stream {
    let (status, body) = server.open(get.request(server)).await;
    Stream {
        head: format!("{}\n", status.as_u16()),
        body: Some(body),
    }
}

/// What streams say until they are over, or say nothing for so long.
async fn said(streams: &mut [Stream], patience: Duration) -> Vec<String> {
    let said = streams.iter_mut().map(|stream| async {
        let mut text = Vec::new();
        while let Some(body) = &mut stream.body
            && let Ok(more) = tokio::time::timeout(patience, body.next()).await
        {
            match more {
                Some(more) => text.extend_from_slice(&more.unwrap()),
                None => stream.body = None,
            }
        }
        without_request_id(&String::from_utf8(text).unwrap())
    });
    join_all(said).await
}
