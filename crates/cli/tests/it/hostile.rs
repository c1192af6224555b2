//! A hundred hostile requests: after each the server answers, and at the end the log is what it was.
//!
//! They go to a real process over bare sockets, for what no well-behaved client would send.

mod requests;

use crate::support::cli::Home;
use requests::{Hostile, Outcome};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// The thread that is attacked, and its tenant's and the other's key.
pub(crate) struct Site {
    address: String,
    pub(crate) thread: String,
    pub(crate) own: String,
    pub(crate) other: String,
    /// A response that was stored in it.
    pub(crate) response: String,
}

/// How long an answer may take. What is refused, is refused at once.
const PATIENCE: Duration = Duration::from_mins(1);

fn key(home: &Home) -> (String, String) {
    let made = home.ok(&["key", "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("key"), text("hash"))
}

impl Site {
    /// Sends these bytes, and says then that nothing follows if the request breaks off there. Gives what was
    /// answered until the server closes.
    fn send(&self, bytes: &[u8], breaks_off: bool) -> Vec<u8> {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        // The server may refuse and close before all is sent.
        let _ = socket.write_all(bytes);
        if breaks_off {
            let _ = socket.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        let mut piece = [0; 8192];
        loop {
            match socket.read(&mut piece) {
                Ok(0) => return answer,
                Ok(n_bytes) => answer.extend_from_slice(&piece[..n_bytes]),
                Err(error) if is_closed(&error) => return answer,
                Err(error) => panic!("no end of the answer in time: {error}"),
            }
        }
    }

    /// A well-formed request that must be answered with this status.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = requests::request(method, path, &self.own, text.as_bytes());
        let answer = String::from_utf8(self.send(&request, false)).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {answer}");
        serde_json::from_str(body).unwrap()
    }

    /// Says something on the thread, and waits until so many runs are over.
    fn say(&self, content: &str, n_runs: usize) {
        let said = json!({ "content": content });
        self.ask("POST", "/api/v1/threads/attacked/messages", Some(&said));
        let follow = "/api/v1/threads/attacked/events?until=rest";
        let stream = ["accept: text/event-stream"];
        let request = requests::with_headers("GET", follow, &self.own, &stream, b"");
        let answer = self.send(&request, false);
        assert_eq!(status(&answer), Some(200));
        let runs = self.ask("GET", "/api/v1/threads/attacked/runs", None);
        let runs = runs["runs"].as_array().unwrap();
        let ended: Vec<&Value> = runs.iter().map(|run| &run["status"]).collect();
        assert_eq!(ended, vec!["completed"; n_runs]);
    }

    fn log(&self) -> Value {
        let request = requests::with_headers(
            "GET",
            "/api/v1/threads/attacked/events?limit=500",
            &self.own,
            &["accept: application/json"],
            b"",
        );
        let answer = String::from_utf8(self.send(&request, false)).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::ConnectionReset
            | std::io::ErrorKind::ConnectionAborted
            | std::io::ErrorKind::BrokenPipe
    )
}

/// The status of an answer; none where the server only closed.
fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    line.split(' ').nth(1)?.parse().ok()
}

#[test]
fn a_hundred_hostile_requests_leave_the_server_serving_and_the_log_whole() {
    let mut home = Home::new();
    let ((own, own_hash), (other, other_hash)) = (key(&home), key(&home));
    home.configure(&format!(
        "[server]\nmax_body_bytes = 1000000\n[models.m]\nprovider = \"scripted\"\n[agents.demo]\nmodel = \"m\"\n\
         [tenants.acme]\nkey_hashes = [\"{own_hash}\"]\n[tenants.other]\nkey_hashes = [\"{other_hash}\"]\n"
    ));
    let mut server = home.server();
    let address = server.base.trim_start_matches("http://").to_owned();
    let mut site = Site {
        address,
        thread: "attacked".to_owned(),
        own,
        other,
        response: String::new(),
    };
    site.say("hello", 1);
    let id = site.ask("GET", "/api/v1/threads/attacked", None)["id"].clone();
    id.as_str().unwrap().clone_into(&mut site.thread);
    let conversation = format!("conv_{}", site.thread.replace('-', ""));
    let asked = json!({"model": "demo", "input": "again", "conversation": conversation});
    let response = site.ask("POST", "/v1/responses", Some(&asked))["id"].clone();
    response.as_str().unwrap().clone_into(&mut site.response);
    let before = site.log();
    for (path, bytes) in requests::readable(&site) {
        let answer = site.send(&bytes, false);
        let text = String::from_utf8_lossy(&answer);
        assert_eq!(status(&answer), Some(200), "{path}: {text}");
    }

    let hostile: Vec<Hostile> = requests::all(&site);
    assert!(hostile.len() >= 100, "{} requests", hostile.len());
    for Hostile {
        name,
        bytes,
        breaks_off,
        outcome,
    } in &hostile
    {
        let answer = site.send(bytes, *breaks_off);
        let status = status(&answer);
        let text = String::from_utf8_lossy(&answer);
        match outcome {
            // JSON-RPC refuses with 200, and an error in the body.
            Outcome::Refused => assert!(
                status.is_some_and(|status| (400..500).contains(&status))
                    || text.contains("\"error\":{\"code\":-32"),
                "{name}: {text}"
            ),
            Outcome::Closed => assert!(
                status.is_none_or(|status| (400..500).contains(&status)),
                "{name}: {text}"
            ),
            Outcome::Is(expected) => assert_eq!(status, Some(*expected), "{name}: {text}"),
            Outcome::Harmless => assert!(
                status.is_none_or(|status| status < 500 || status == 501 || status == 505),
                "{name}: {text}"
            ),
        }
        let health = site.send(&requests::request("GET", "/healthz", "", b""), false);
        assert_eq!(self::status(&health), Some(200), "after {name}");
    }
    // Connections that only ever began are held while everything goes on.
    let held: Vec<TcpStream> = requests::begun(&site)
        .iter()
        .map(|bytes| {
            let mut socket = TcpStream::connect(&site.address).unwrap();
            socket.write_all(bytes).unwrap();
            socket
        })
        .collect();

    assert_eq!(site.log(), before, "the log is what it was");
    site.say("still there?", 3);
    drop(held);
    server.stop();
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{}{}", doctor.out, doctor.err);
}
