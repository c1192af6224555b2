//! The attacks. Each takes what it can get, and holds it.

use crate::Scale;
use crate::server::{N_KEYS, Server};
use crate::wire::{connect, request, send_each, statuses};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How an attack ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The clients go on; the server has to end it.
    ByServer,
    /// The clients are within their rights, and leave.
    ByClient,
}

/// What an attack holds while it lasts.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) sockets: Vec<TcpStream>,
    /// What the server answered, for the table.
    pub(crate) note: String,
}

/// An attack, and the memory that the server may take during it.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// In MiB.
    pub(crate) max_rss: u64,
    pub(crate) ends: Ends,
    /// Puts into the store what the attack needs.
    pub(crate) prepare: fn(&Server, &Scale),
    pub(crate) run: fn(&Server, &Scale) -> Held,
}

const MAX_RSS: u64 = 512;
const MAX_RSS_WITH_FOLLOWERS: u64 = 768;
/// After this time the server has given back the memory that runs took.
const SETTLE: Duration = Duration::from_secs(20);
/// Just less than a message may have.
const LARGE: usize = 3 << 20;

pub(crate) fn all() -> Vec<Attack> {
    let attack = |name, ends, prepare, run| Attack {
        name,
        max_rss: MAX_RSS,
        ends,
        prepare,
        run,
    };
    vec![
        attack("silent connections", Ends::ByServer, nothing, silent),
        attack("half-open heads", Ends::ByServer, nothing, half_open),
        attack(
            "followers that never read",
            Ends::ByServer,
            large_thread,
            deaf_followers,
        ),
        attack(
            "streams of one key",
            Ends::ByClient,
            small_thread,
            streams_of_one_key,
        ),
        attack(
            "endless WebSocket messages",
            Ends::ByServer,
            nothing,
            endless_messages,
        ),
        attack(
            "bodies with a million values",
            Ends::ByClient,
            nothing,
            many_values,
        ),
        attack("stalled bodies", Ends::ByServer, nothing, stalled_bodies),
        attack("concurrent runs", Ends::ByClient, nothing, concurrent_runs),
        attack("imports", Ends::ByClient, nothing, imports),
        attack("threads", Ends::ByClient, nothing, threads),
        Attack {
            max_rss: MAX_RSS_WITH_FOLLOWERS,
            ..attack(
                "idle followers",
                Ends::ByClient,
                small_thread,
                idle_followers,
            )
        },
        attack(
            "readers that never read",
            Ends::ByServer,
            long_thread,
            deaf_readers,
        ),
        attack(
            "exports of a long thread",
            Ends::ByClient,
            long_thread,
            exports,
        ),
    ]
}

fn nothing(_: &Server, _: &Scale) {}

fn post_message(server: &Server, key: &str, content: &str) {
    let path = format!("/api/v1/threads/{key}/messages");
    server.ok("POST", &path, Some(&json!({ "content": content })));
    let at_rest = format!("/api/v1/threads/{key}");
    let deadline = Instant::now() + Duration::from_mins(1);
    while server.ok("GET", &at_rest, None).contains("\"streaming\"") {
        assert!(
            Instant::now() < deadline,
            "the thread {key} does not come to rest"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn small_thread(server: &Server, _: &Scale) {
    post_message(server, "small", "Good morning");
}

/// A message whose text is padded to this many bytes; the answer is short.
fn padded(n_bytes: usize) -> String {
    format!("say 1 word \"{}\"", "x".repeat(n_bytes))
}

fn large_thread(server: &Server, _: &Scale) {
    for _ in 0..2 {
        post_message(server, "large", &padded(LARGE));
    }
}

/// 219 MB in the full form.
fn long_thread(server: &Server, scale: &Scale) {
    let key = "long";
    if server.ask("GET", "/api/v1/threads/long", None).status == 404 {
        for _ in 0..scale.of(73, 12) {
            post_message(server, key, &padded(LARGE));
        }
        // Agents that read a long conversation take memory that is not the attack's. Idle threads give it back.
        std::thread::sleep(if scale.is_full {
            SETTLE
        } else {
            Duration::ZERO
        });
    }
}

fn silent(server: &Server, scale: &Scale) -> Held {
    let sockets = send_each(server.address, scale.of(3_000, 1_000), |_| String::new());
    let note = format!("{} connected", sockets.len());
    Held { sockets, note }
}

fn half_open(server: &Server, scale: &Scale) -> Held {
    let head = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ";
    let mut sockets = send_each(server.address, scale.of(500, 200), |_| head.to_owned());
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(500));
        for socket in &mut sockets {
            // A connection that the server has closed is no failure.
            let _ = socket.write_all(b"x");
        }
    }
    let note = format!("{} connected", sockets.len());
    Held { sockets, note }
}

fn follow(key: &str, thread: &str) -> String {
    let path = format!("/api/v1/threads/{thread}/events");
    request("GET", &path, key, "accept: text/event-stream\r\n", "")
}

fn deaf_followers(server: &Server, scale: &Scale) -> Held {
    let sockets = send_each(server.address, scale.of(300, 100), |_| {
        follow(&server.keys[0], "large")
    });
    let note = format!("{} connected", sockets.len());
    Held { sockets, note }
}

fn deaf_readers(server: &Server, scale: &Scale) -> Held {
    let sockets = send_each(server.address, scale.of(30, 30), |_| {
        follow(&server.keys[0], "long")
    });
    let note = format!("{} connected", sockets.len());
    Held { sockets, note }
}

fn streams_of_one_key(server: &Server, scale: &Scale) -> Held {
    let n = scale.of(1_500, 1_200);
    let mut sockets = send_each(server.address, n, |_| follow(&server.keys[0], "small"));
    let note = statuses(&mut sockets);
    Held { sockets, note }
}

fn idle_followers(server: &Server, scale: &Scale) -> Held {
    let n = scale.of(10_000, 2_000);
    let mut sockets = send_each(server.address, n, |n| {
        follow(&server.keys[n % N_KEYS], "small")
    });
    let note = statuses(&mut sockets);
    Held { sockets, note }
}

/// A frame of a message that goes on, masked with zeros.
fn frame(is_first: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![u8::from(is_first), 0x80 | 127];
    frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

fn endless_messages(server: &Server, scale: &Scale) -> Held {
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let open = request("GET", "/v1/responses", &server.keys[0], upgrade, "");
    let mut sockets = send_each(server.address, scale.of(60, 30), |_| open.clone());
    let note = statuses(&mut sockets);
    let payload = vec![b'x'; 1 << 16];
    // Up to 15 MiB each, which is less than one message may have.
    let mut is_open = vec![true; sockets.len()];
    for n in 0..240 {
        for (socket, is_open) in sockets.iter_mut().zip(&mut is_open) {
            *is_open = *is_open && socket.write_all(&frame(n == 0, &payload)).is_ok();
        }
    }
    let n_open = is_open.iter().filter(|is_open| **is_open).count();
    let note = format!("{note}; {n_open} took 15 MiB");
    Held { sockets, note }
}

fn many_values(server: &Server, _: &Scale) -> Held {
    let mut values = "0,".repeat(1_000_000);
    values.push('0');
    let body = format!("{{\"content\":\"hi\",\"metadata\":{{\"n\":[{values}]}}}}");
    let clients: Vec<_> = (0..8)
        .map(|n| {
            let (address, key, body) = (server.address, server.keys[0].clone(), body.clone());
            std::thread::spawn(move || {
                let path = format!("/api/v1/threads/values-{n}/messages");
                let text = request("POST", &path, &key, "connection: close\r\n", &body);
                let mut socket = connect(address, n)?;
                let _ = socket.write_all(text.as_bytes());
                Some(socket)
            })
        })
        .collect();
    let sockets = clients.into_iter().filter_map(|it| it.join().unwrap());
    let mut sockets: Vec<_> = sockets.collect();
    let note = statuses(&mut sockets);
    Held { sockets, note }
}

fn stalled_bodies(server: &Server, _: &Scale) -> Held {
    let head = request(
        "POST",
        "/api/v1/threads/stalled/messages",
        &server.keys[0],
        "",
        "x",
    );
    let head = head.replace("content-length: 1", "content-length: 15000000");
    let part = "x".repeat(1 << 19);
    let sockets = send_each(server.address, 100, |_| format!("{head}{part}"));
    let note = format!("{} connected", sockets.len());
    Held { sockets, note }
}

/// Sends requests from sixteen connections at a time; tells how many had which status.
fn ask_many(
    server: &Server,
    n: usize,
    method: &'static str,
    path: impl Fn(usize) -> String + Send + Sync,
    body: impl Fn(usize) -> String + Send + Sync,
) -> String {
    const AT_ONCE: usize = 16;
    let counts = std::sync::Mutex::new(std::collections::BTreeMap::new());
    std::thread::scope(|scope| {
        for first in 0..AT_ONCE {
            let (counts, path, body) = (&counts, &path, &body);
            scope.spawn(move || {
                for n in (first..n).step_by(AT_ONCE) {
                    let key = &server.keys[n % N_KEYS];
                    let body = body(n);
                    let answer =
                        crate::wire::ask(server.address, method, &path(n), key, Some(&body));
                    *counts.lock().unwrap().entry(answer.status).or_insert(0) += 1;
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    let mut text = String::new();
    for (status, n) in counts {
        let _ = write!(text, "{status}: {n} ");
    }
    text
}

fn concurrent_runs(server: &Server, scale: &Scale) -> Held {
    let body = json!({ "content": "slow 200ms say 20 words" }).to_string();
    let note = ask_many(
        server,
        scale.of(2_000, 500),
        "POST",
        |n| format!("/api/v1/threads/run-{n}/messages"),
        |_| body.clone(),
    );
    Held {
        note,
        ..Held::default()
    }
}

fn imports(server: &Server, scale: &Scale) -> Held {
    small_thread(server, scale);
    let document = server.ok("GET", "/api/v1/threads/small/document", None);
    let note = ask_many(
        server,
        scale.of(500, 200),
        "POST",
        |n| format!("/api/v1/import?from=threadprotocol&key=import-{n}"),
        |_| document.clone(),
    );
    Held {
        note,
        ..Held::default()
    }
}

fn threads(server: &Server, scale: &Scale) -> Held {
    let note = ask_many(
        server,
        scale.of(10_000, 1_000),
        "POST",
        |_| "/api/v1/threads".to_owned(),
        |n| json!({ "key": format!("thread-{n}") }).to_string(),
    );
    Held {
        note,
        ..Held::default()
    }
}

fn exports(server: &Server, _: &Scale) -> Held {
    let sizes: Vec<_> = std::thread::scope(|scope| {
        let export = |_| {
            scope.spawn(|| {
                let answer = server.ask("GET", "/api/v1/threads/long/document", None);
                (answer.status, answer.body.len() >> 20)
            })
        };
        let exports: Vec<_> = (0..4).map(export).collect();
        let ended = exports.into_iter().map(|export| export.join().unwrap());
        ended.collect()
    });
    Held {
        note: format!("{sizes:?} MiB"),
        ..Held::default()
    }
}
