//! What the terminal shows of recorded runs, which a server that only knows these tells.

#[path = "../../../interop/tests/it/recorded_runs/compact.rs"]
mod compact;
#[path = "../../../interop/tests/it/recorded_runs/golden.rs"]
#[expect(dead_code, reason = "the tests of the views use all of it")]
mod golden;

use crate::support::cli::Home;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// The runs that are shown.
const RUNS: [&str; 15] = [
    "text_word_by_word",
    "reasoning_and_text",
    "tool_called",
    "tools_in_parallel",
    "message_that_interrupts",
    "approval_waits",
    "approval_given",
    "client_tool_waits",
    "handoff",
    "handoff_then_approval",
    "subagent",
    "model_fails_in_its_text",
    "cancelled_in_its_text",
    "cancelled_while_a_tool_runs",
    "crashed_in_its_text",
];

fn folder(name: &str) -> PathBuf {
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/runs");
    Path::new(runs).join(name)
}

/// The events of a run, as the real server tells them.
fn events(name: &str) -> String {
    let file = folder("served").join(format!("{name}.txt"));
    let text = compact::whole(&std::fs::read_to_string(file).unwrap());
    let text = golden::with_ids(&text);
    let mut sections = text.split("\n== ");
    let wanted = "GET /api/v1/threads/k/events?until=rest\n";
    let found = sections.find_map(|text| text.strip_prefix(wanted)).unwrap();
    let start = found.find("id: 1.").unwrap();
    format!("{}\n", &found[start..])
}

/// What was said first.
fn trigger(events: &str) -> Value {
    let data = events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let mut events = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let said = |event: &Value| event["type"] == "item.created" && event["item"]["role"] == "user";
    events.find(said).unwrap()["item"]["id"].take()
}

/// Answers one request: what is said is accepted, the events are those, and nothing runs.
fn answer(mut stream: TcpStream, events: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    reader.read_line(&mut head).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let (kind, body) = if head.starts_with("POST") {
        let accepted = json!({"itemId": trigger(events), "after": 0, "queued": false});
        ("application/json", accepted.to_string())
    } else if head.contains("/events") {
        ("text/event-stream", events.to_owned())
    } else {
        (
            "application/json",
            json!({"key": "k", "status": "open"}).to_string(),
        )
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    // The terminal may have seen enough.
    let _ = stream.write_all((head + &body).as_bytes());
}

/// What the terminal shows of a run.
fn shown(name: &str) -> String {
    let events = events(name);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &events);
        }
    });
    let ran = Home::new().run(&["run", "Go", "--thread", "k", "--server", &url]);
    format!("{}\n{}== said beside\n{}", ran.code, ran.out, ran.err)
}

/// Run with `UPDATE_RUNS=1` to write the files anew.
#[test]
fn the_terminal_shows_runs_as_recorded() {
    for name in RUNS {
        let now = shown(name);
        let file = folder("terminal").join(format!("{name}.txt"));
        if golden::is_updated() {
            std::fs::create_dir_all(folder("terminal")).unwrap();
            std::fs::write(&file, &now).unwrap();
        }
        let then = std::fs::read_to_string(&file).unwrap_or_default();
        golden::assert_same(&now, &then, &file);
    }
}
