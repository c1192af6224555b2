//! A run that the real binary does not survive.

use crate::support::server::{self, Server};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const CONFIG: &str = "[limits]\nrestart_pause_ms = 10\n[models.offline]\nprovider = \"scripted\"\n\
    [agents.worker]\nmodel = \"offline\"\n";

/// The chunks of a log of one type.
fn n_chunks(log: &[Value], kind: &str) -> usize {
    let chunks = log.iter().filter(|event| event["chunkType"] == kind);
    chunks.count()
}

/// Waits until the thread's run has been started so often, and its model has spoken since.
fn until_started(server: &Server, n_before: usize) {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let log = server.log("k");
        let resumed = n_chunks(&log, "data-execution-resumed");
        let last = log.last().map(|event| event["chunkType"].clone());
        if resumed == n_before && last == Some(json!("text-delta")) {
            return;
        }
        assert!(Instant::now() < deadline, "the run does not start: {log:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn doctor(data: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loomline"));
    let output = command.arg("--data").arg(data).arg("doctor").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_run_that_is_killed_five_times_fails_and_is_reported() {
    let data = tempfile::tempdir().unwrap();
    let config = data.path().join("loomline.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let start = || Server::start(data.path(), Some(&config), &[]);
    let mut server = start();
    let say = |server: &Server, text: &str| {
        let body = json!({"content": text});
        server.post("/api/v1/threads/k/messages", &body).unwrap();
    };
    say(&server, "slow 20ms say 5000 words");
    for n_before in 0..5 {
        until_started(&server, n_before);
        server.kill();
        if n_before == 3 {
            assert!(doctor(data.path()).contains("unfinished: the server has started"));
        }
        server = start();
    }
    server.rest("k");
    let log = server.log("k");
    assert_eq!(n_chunks(&log, "data-execution-resumed"), 4);
    let mut ends = log
        .iter()
        .filter(|it| it["type"] == "execution.status.changed");
    assert_eq!(ends.next().unwrap()["interruption"]["reason"], "poisoned");
    say(&server, "hello");
    server.rest("k");
    let runs = server.get("/api/v1/threads/k/runs").unwrap();
    let mut states: Vec<&str> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["status"].as_str().unwrap())
        .collect();
    states.sort_unstable();
    assert_eq!(states, ["completed", "failed"]);
    let mut metrics = server::agent().get(server.url("/metrics")).call().unwrap();
    let metrics = metrics.body_mut().read_to_string().unwrap();
    assert!(metrics.contains("outcome=\"poisoned\""), "{metrics}");
    server.stop();
    let told = std::fs::read_to_string(data.path().join("server.log")).unwrap();
    assert!(told.contains("a run is poisoned"), "{told}");
    assert!(doctor(data.path()).contains("poisoned: the server died each time"));
}
