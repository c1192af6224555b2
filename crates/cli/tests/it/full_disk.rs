//! A disk that takes no more: the kernel refuses writes beyond a size (`RLIMIT_FSIZE`), then allows them again.

use crate::support::cli::Home;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

/// The size that no file of the server may exceed, in bytes.
const LIMIT: u64 = 1 << 20;

fn limit(server: &Server, bytes: &str) {
    let pid = format!("--pid={}", server.pid());
    let limit = format!("--fsize={bytes}:");
    let set = Command::new("prlimit").args([&pid, &limit]).status();
    assert!(set.unwrap().success());
}

/// The status and the body of an answer.
fn get(server: &Server, path: &str) -> (u16, Value) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_mins(1)))
        .http_status_as_error(false)
        .build()
        .into();
    let mut answer = agent.get(server.url(path)).call().unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    (answer.status().as_u16(), body)
}

fn say(server: &Server, key: &str, n_bytes: usize) -> bool {
    let body = json!({"content": "x".repeat(n_bytes)});
    let path = format!("/api/v1/threads/{key}/messages");
    server.post(&path, &body).is_ok()
}

#[test]
fn readiness_fails_while_the_disk_is_full_and_the_log_stays_short() {
    let home = Home::new();
    let server = Server::ignoring_size_signals(&home.data());
    let deadline = Instant::now() + Duration::from_mins(3);
    while get(&server, "/readyz").0 != 200 {
        assert!(Instant::now() < deadline, "the server does not get ready");
    }
    limit(&server, &LIMIT.to_string());
    let mut n = 0;
    while say(&server, &format!("t{n}"), 20_000) {
        n += 1;
        assert!(Instant::now() < deadline, "the limit was never reached");
    }
    // Until the last page is full.
    while get(&server, "/readyz").0 == 200 {
        say(&server, "small", 1);
        assert!(Instant::now() < deadline, "it stays ready");
    }
    let (status, body) = get(&server, "/readyz");
    assert_eq!(status, 503, "{body}");
    assert_eq!(body["error"]["code"], "not_ready");
    assert_eq!(body["error"]["details"]["reason"], "commits_fail");
    assert_eq!(get(&server, "/healthz").0, 200);
    let (status, _) = get(&server, "/api/v1/threads/t0/messages");
    assert_eq!(status, 200, "reading goes on");

    let start = Instant::now();
    let mut n_failed = 0;
    while start.elapsed() < Duration::from_secs(3) || n_failed <= 20 {
        assert!(!say(&server, "full", 20_000));
        assert!(Instant::now() < deadline, "{n_failed} messages failed");
        n_failed += 1;
    }
    let seconds = start.elapsed().as_secs();
    let log = std::fs::read_to_string(home.data().join("server.log")).unwrap();
    let errors = log.lines().filter(|line| line.contains("ERROR")).count() as u64;
    // One more for what failed before, and one for each second that has begun.
    assert!(errors <= seconds + 3, "{errors} in {seconds} s: {log}");
    assert!(log.contains("suppressed="), "{log}");

    limit(&server, "unlimited");
    let deadline = Instant::now() + Duration::from_mins(3);
    while get(&server, "/readyz").0 != 200 {
        assert!(Instant::now() < deadline, "it stays unready");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(say(&server, "t0", 1));
}
