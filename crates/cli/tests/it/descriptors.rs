//! A server that has no file descriptors left.

use crate::support::cli::Home;
use crate::support::http::{Answer, get};
use crate::support::server::Server;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

fn connect(server: &Server) -> TcpStream {
    let address = server.base.strip_prefix("http://").unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream
}

/// Opens an event stream; `None` if the server does not answer with one.
fn follow(server: &Server) -> Option<TcpStream> {
    let mut stream = connect(server);
    stream
        .write_all(b"GET /api/v1/threads/t/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut head = [0; 12];
    let read = stream.read_exact(&mut head);
    (read.is_ok() && head.ends_with(b"200")).then_some(stream)
}

fn limit_descriptors(server: &Server, n: usize) {
    let pid = server.pid().to_string();
    let limit = format!("--nofile={n}");
    let limited = Command::new("prlimit")
        .args(["--pid", &pid, &limit])
        .status();
    assert!(limited.unwrap().success());
}

fn health(server: &Server, path: &str) -> Answer {
    get(server, path, "application/json")
}

#[test]
fn health_is_answered_when_no_descriptor_is_left() {
    let home = Home::new();
    let server = home.server();
    server
        .post("/api/v1/threads/t/messages", &json!({ "content": "hello" }))
        .unwrap();
    server.rest("t");
    let used = server.open_descriptors();
    limit_descriptors(&server, used + 20);
    let start = Instant::now();
    // Silent connections make room.
    let silent: Vec<_> = (0..60).map(|_| connect(&server)).collect();
    assert_eq!(health(&server, "/healthz").status, 200);
    drop(silent);
    while health(&server, "/readyz").status != 200 {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    // Streams do not.
    let mut followers = Vec::new();
    while let Some(follower) = follow(&server) {
        followers.push(follower);
        assert!(followers.len() <= 40);
    }
    assert!(followers.len() >= 5, "{}", followers.len());
    for _ in 0..10 {
        assert_eq!(health(&server, "/healthz").status, 200);
        assert_eq!(health(&server, "/readyz").status, 503);
    }
    drop(followers);
    while health(&server, "/readyz").status != 200 {
        assert!(start.elapsed() < Duration::from_secs(50));
    }
    let log = std::fs::read_to_string(home.data().join("server.log")).unwrap();
    let logged = log.matches("no connection can be accepted").count();
    let seconds = usize::try_from(start.elapsed().as_secs()).unwrap();
    assert!(
        (1..=seconds + 1).contains(&logged),
        "{logged} in {seconds} s"
    );
}

#[test]
fn the_soft_descriptor_limit_is_raised_to_the_hard_one() {
    let home = Home::new();
    let server = Server::with_limits(&home.data(), "ulimit -Sn 100; ulimit -Hn 2000");
    // The limit is raised before the first connection is accepted.
    assert_eq!(health(&server, "/healthz").status, 200);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<_> = line.unwrap().split_whitespace().collect();
    assert_eq!(words.get(3..5), Some(&["2000", "2000"][..]), "{words:?}");
}
