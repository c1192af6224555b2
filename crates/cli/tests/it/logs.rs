//! What is logged, and how.

use crate::support::cli::{Home, Running};
use crate::support::http;
use crate::support::server::{Server, agent};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

const KEY: &str = "llk_swordfish";
const OWN_KEY: &str = "sk-marlin";

/// What a server answers to a request, as it is.
fn asked(server: &mut Running, head: &str, body: &str) -> String {
    let line = server.line();
    let address = line.trim().rsplit("http://").next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let rest = format!(
        "host: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .write_all(format!("{head}{rest}").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A stream of events that has begun.
fn follow(server: &Server, path: &str) -> ureq::http::Response<ureq::Body> {
    let request = agent().get(server.url(path));
    let request = request.header("accept", "text/event-stream");
    request.call().unwrap()
}

/// The line that is logged when somebody makes a thread.
fn logged(arguments: &[&str]) -> String {
    let home = Home::new();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let mut server = home.spawn(&[&serve, arguments].concat());
    let head = "POST /api/v1/threads HTTP/1.1\r\nx-request-id: r-1\r\n";
    let answer = asked(&mut server, head, "{}");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    server.told("answered")
}

#[test]
fn a_line_is_an_object_where_logs_are_for_programs() {
    let line = logged(&["--log-format", "json"]);
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["target"], "audit");
    assert_eq!(told["level"], "INFO");
    assert_eq!(told["status"], 201);
    assert_eq!(told["span"]["path"], "/api/v1/threads");
    assert_eq!(told["span"]["id"], "r-1");
    told["timestamp"]
        .as_str()
        .unwrap()
        .parse::<jiff::Timestamp>()
        .unwrap();
}

#[test]
fn a_line_is_for_people_otherwise() {
    let line = logged(&[]);
    assert!(
        line.contains("audit: answered") && line.contains("status=201"),
        "{line}"
    );
}

#[test]
fn another_form_is_refused_with_those_there_are() {
    let ran = Home::new().run(&["--log-format", "xml", "doctor"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("[possible values: text, json]"),
        "{}",
        ran.err
    );
}

#[test]
fn no_key_is_in_the_log_however_much_is_logged() {
    let mut home = Home::new();
    let hash = server::auth::hash_text(KEY);
    home.configure(&format!(
        "[tenants.acme]\nkey_hashes = [\"{hash}\"]\n[models.m]\nprovider = \"chat-completions\"\nmodel = \"m\"\n\
         base_url = \"http://127.0.0.1:9/v1\"\nheaders = {{ x-api-key = \"{OWN_KEY}\" }}\n[agents.a]\nmodel = \"m\"\n"
    ));
    home.set("LOOMLINE_LOG", "trace");
    let mut server = home.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    let head = format!(
        "POST /api/v1/threads/t/messages HTTP/1.1\r\nauthorization: Bearer {KEY}\r\ncookie: {KEY}\r\n"
    );
    let answer = asked(
        &mut server,
        &head,
        "{\"content\": \"hi\", \"stream\": true}",
    );
    assert!(answer.contains("network"), "{answer}");
    server.signal("TERM");
    let ran = server.close();
    assert!(
        ran.err.contains("/api/v1/threads/t/messages"),
        "{}",
        ran.err
    );
    for key in [KEY, OWN_KEY] {
        assert!(!ran.err.contains(key), "{}", ran.err);
    }
}

#[test]
fn that_a_thread_is_deleted_that_somebody_follows_is_no_error() {
    let home = Home::new();
    let server = home.server();
    http::post(&server, "/api/v1/threads", "{\"key\":\"k\"}", &[]);
    let followed = follow(&server, "/api/v1/threads/k/events");
    let deleted = agent().delete(server.url("/api/v1/threads/k")).call();
    assert_eq!(deleted.unwrap().status().as_u16(), 204);
    // The stream says it, and ends.
    let told = followed.into_body().read_to_string().unwrap();
    let (_, last) = told.trim_end().rsplit_once("\n\n").unwrap();
    assert!(last.starts_with("event: error\n"), "{last}");
    assert!(last.contains("thread_not_found"), "{last}");
    let log = std::fs::read_to_string(home.data().join("server.log")).unwrap();
    assert!(!log.contains("ERROR"), "{log}");
}
