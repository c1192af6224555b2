//! The main job: a history is taken in, gone on with, given out, and survives the process.

use crate::reference::reference;
use crate::support::cli::{self, Home, fixture};
use crate::support::http;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::path::Path;
use thread::{CanonicalOptions, Profile, Severity, Thread};
use timeline::verify;

/// A thread as everybody sees it: its log and its document.
#[derive(Debug, PartialEq)]
struct Seen {
    log: Vec<Value>,
    document: String,
    hash: String,
}

fn see(server: &Server, key: &str) -> Seen {
    server.rest(key);
    let path = format!("/api/v1/threads/{key}/document");
    let answer = http::get(server, &path, "application/json");
    assert_eq!(answer.status, 200, "{answer:?}");
    Seen {
        log: server.log(key),
        hash: answer.header("loomline-content-hash").unwrap(),
        document: answer.text,
    }
}

/// Takes a history in and lets the demo agent go on with it, watching.
fn taken_in_and_gone_on_with(server: &Server, history: &str) {
    let path = "/api/v1/import?from=pydantic-ai&key=job";
    let imported = http::post(server, path, history, &[]);
    assert_eq!(imported.status, 201, "{imported:?}");
    let tail = imported.json()["thread"]["seq"].as_u64().unwrap();
    let message = json!({"content": "compute 6*7 then compute 1+1", "stream": true});
    let path = "/api/v1/threads/job/messages";
    let shown = http::post(server, path, &message.to_string(), &[]).frames();
    assert_eq!(shown.last().unwrap()["result"], "completed");
    let outputs: Vec<_> = shown
        .iter()
        .filter_map(|event| event["part"].get("output"))
        .collect();
    assert_eq!(outputs, [42, 2]);
    let path = format!("/api/v1/threads/job/events?until=rest&after={tail}");
    let replayed = http::get(server, &path, "text/event-stream").frames();
    let index = usize::try_from(tail).unwrap();
    assert_eq!(replayed, server.log("job")[index..]);
    assert!(shown.iter().all(|event| replayed.contains(event)));
}

/// What was said before is in the document, word for word and in order.
fn holds_the_history(document: &Value, history: &Value) {
    let calls = |messages: &Value| -> Vec<(Value, Value)> {
        let parts = messages.as_array().unwrap().iter();
        let parts = parts.flat_map(|message| message["parts"].as_array().unwrap());
        let calls =
            parts.filter(|part| part["part_kind"] == "tool-call" || part["part_kind"] == "text");
        calls
            .map(|part| (part["args"].clone(), part["content"].clone()))
            .collect()
    };
    let turns = document["turns"].as_array().unwrap();
    let kept: Vec<_> = turns
        .iter()
        .filter(|turn| turn["turn_type"] == "agent")
        .flat_map(|turn| calls(&turn["messages"]))
        .collect();
    let before = calls(history);
    assert_eq!(kept[..before.len()], before);
    let rest: Vec<_> = kept[before.len()..]
        .iter()
        .map(|(args, _)| &args["expression"])
        .collect();
    assert_eq!(rest, [&json!("6*7"), &json!("1+1"), &Value::Null]);
}

/// The document is one that writers may write, and its hash is what everyone says.
fn holds_the_protocol(home: &Home, seen: &Seen) {
    let document = Thread::decode(&seen.document).unwrap();
    assert_eq!(document.version(), thread::Version::V0_0_4);
    let errors: Vec<_> = thread::validate(&document, Profile::Strict)
        .into_iter()
        .filter(|violation| violation.severity == Severity::Error)
        .collect();
    assert_eq!(errors, []);
    let hash = thread::hash(&document, CanonicalOptions::default()).unwrap();
    assert_eq!(hash.to_string(), seen.hash);
    let path = home.file("job.json", &seen.document);
    let path = path.to_str().unwrap();
    assert_eq!(home.ok(&["hash", path]), format!("{hash}\n"));
    home.ok(&["validate", "--strict", path]);
    assert_eq!(
        home.ok(&["export", "--thread", "job"]),
        format!("{}\n", seen.document)
    );
    assert_eq!(verify(&cli::records(&seen.log)), Ok(()));
}

fn main_job(history: &Path) {
    let home = Home::new();
    let history = std::fs::read_to_string(history).unwrap();
    let mut server = home.server();
    taken_in_and_gone_on_with(&server, &history);
    let seen = see(&server, "job");
    holds_the_protocol(&home, &seen);
    let document = serde_json::from_str(&seen.document).unwrap();
    holds_the_history(&document, &serde_json::from_str(&history).unwrap());
    server.stop();
    server = home.server();
    assert_eq!(see(&server, "job"), seen);
    server.kill();
    server = home.server();
    assert_eq!(see(&server, "job"), seen);
    drop(server);
    assert_eq!(
        home.ok(&["export", "--thread", "job"]),
        format!("{}\n", seen.document)
    );
    assert!(home.ok(&["doctor"]).contains("ok  store is sound"));
}

#[test]
fn a_history_is_taken_in_gone_on_with_given_out_and_survives_the_process() {
    main_job(&fixture("history.json"));
}

#[test]
fn a_real_history_is_taken_in_gone_on_with_given_out_and_survives_the_process() {
    let Some(shared) = reference("a real history") else {
        return;
    };
    main_job(&shared.join("vectors/pydantic-ai/tools_multi_step.json"));
}

#[test]
fn a_run_that_was_killed_ends_as_if_nothing_had_been() {
    let home = Home::new();
    let mut server = home.server();
    let history = std::fs::read_to_string(fixture("history.json")).unwrap();
    http::post(
        &server,
        "/api/v1/import?from=pydantic-ai&key=job",
        &history,
        &[],
    );
    let message = json!({"content": "slow 20ms compute 6*7 then say 30 words"});
    server
        .post("/api/v1/threads/job/messages", &message)
        .unwrap();
    server.until("job", |event| {
        event["type"] == "part.updated" && event["part"]["output"] == 42
    });
    server.kill();
    server = home.server();
    let seen = see(&server, "job");
    holds_the_protocol(&home, &seen);
    let document: Value = serde_json::from_str(&seen.document).unwrap();
    let last = document["turns"].as_array().unwrap().last().unwrap();
    assert_eq!(last["completion_status"], "complete");
    assert_eq!(last["messages"].as_array().unwrap().len(), 3);
}
