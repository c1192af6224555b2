//! How the real binary starts and stops.
#![cfg(unix)]

use crate::support::server::{self, Server};
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn configured(data: &Path, text: &str) -> Server {
    let config = data.join("loomline.toml");
    std::fs::write(&config, text).unwrap();
    Server::start(data, Some(&config), &[])
}

fn until(what: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !what() {
        assert!(Instant::now() < deadline, "it never comes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A request whose body never comes.
fn stuck(server: &Server) -> TcpStream {
    let address = server.base.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let head = "POST /api/v1/threads HTTP/1.1\r\nhost: localhost\r\n\
        content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    socket.write_all(head.as_bytes()).unwrap();
    // The server has read the head once it has answered another request.
    server.get("/api/v1/threads").unwrap();
    socket
}

#[test]
fn a_tool_that_hangs_does_not_keep_the_server_from_stopping() {
    let data = tempfile::tempdir().unwrap();
    // Nobody reads this pipe, so that a tool that opens it for writing hangs.
    let pipe = data.path().join("pipe");
    Command::new("mkfifo").arg(&pipe).status().unwrap();
    let config = format!(
        "[limits]\nshutdown_grace_s = 4\n[models.m]\nprovider = \"scripted\"\n\
         [agents.a]\nmodel = \"m\"\ntools = [\"record\"]\n[tools]\nledger = \"{}\"\n",
        pipe.display()
    );
    let mut server = configured(data.path(), &config);
    let body = json!({"content": "record line=x ms=0"});
    server.post("/api/v1/threads/k/messages", &body).unwrap();
    let has = |server: &Server, kind: &str| {
        let log = server.log("k");
        log.iter().any(|event| event["chunkType"] == kind)
    };
    until(|| has(&server, "data-tool-started"));
    server.signal("TERM");
    server.ended();
    let mut server = configured(data.path(), &config);
    assert!(has(&server, "data-execution-parked"));
    server.rest("k");
    server.stop();
}

#[test]
fn the_grace_period_ends_requests_that_are_stuck() {
    let data = tempfile::tempdir().unwrap();
    let mut server = configured(data.path(), "[limits]\nshutdown_grace_s = 1\n");
    let _stuck = stuck(&server);
    server.signal("TERM");
    assert!(server.ended().success());
    let told = std::fs::read_to_string(data.path().join("server.log")).unwrap();
    assert!(told.contains("some requests did not end in time"), "{told}");
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let data = tempfile::tempdir().unwrap();
    let mut server = configured(data.path(), "[limits]\nshutdown_grace_s = 3600\n");
    let _stuck = stuck(&server);
    server.signal("TERM");
    let told = || std::fs::read_to_string(data.path().join("server.log")).unwrap();
    until(|| told().contains("stopping"));
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(143));
    assert!(told().contains("a second signal"), "{}", told());
}

#[test]
fn a_server_listens_before_its_mcp_servers_are_reached() {
    let data = tempfile::tempdir().unwrap();
    let config = "[mcp.silent]\ncommand = \"sleep\"\nargs = [\"60\"]\nconnect_timeout_s = 3\n\
         [models.m]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"m\"\ntools = [\"mcp:silent\"]\n";
    let mut server = configured(data.path(), config);
    let status = |path: &str| {
        let client = server::agent();
        let answer = client.get(server.url(path)).call();
        answer.map_or_else(
            |error| match error {
                ureq::Error::StatusCode(code) => code,
                other => panic!("{other}"),
            },
            |answer| answer.status().as_u16(),
        )
    };
    assert_eq!(status("/healthz"), 200);
    assert_eq!(status("/readyz"), 503);
    // A run waits for the tools; then the server is ready.
    let body = json!({"content": "hello"});
    server.post("/api/v1/threads/k/messages", &body).unwrap();
    assert_eq!(status("/readyz"), 200);
    server.rest("k");
    server.stop();
}
