//! Streams and views are bounded in bytes, and readers that do not read are disconnected.

use crate::harness::{Served, Server};
use axum::body::Body;
use futures_util::StreamExt;
use interop::archive::Format;
use interop::convert::SourceForm;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// How long something that takes a second may take on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// Small limits.
const SMALL: &str =
    "[limits]\nstalled_reader_s = 1\nmessage_bytes = 1000000\nthread_view_bytes = 2000000\n";

/// Adds messages of this size to a thread that nothing answers; gives its key.
async fn long_thread(server: &Server, n: usize, bytes: usize) -> String {
    let made = server.post("/v1/conversations", json!({})).await.json();
    let id = made["id"].as_str().unwrap();
    for _ in 0..n {
        let added = server
            .post(&format!("/v1/conversations/{id}/items"), said(bytes))
            .await;
        assert_eq!(added.status, 200, "{}", added.text);
    }
    let list = server.get("/api/v1/threads").await.json();
    list["threads"][0]["key"].as_str().unwrap().to_owned()
}

fn said(bytes: usize) -> Value {
    let content = json!([{"type": "input_text", "text": "x".repeat(bytes)}]);
    json!({"items": [{"type": "message", "role": "user", "content": content}]})
}

async fn open_streams(server: &Server) -> u64 {
    let metrics = server.get("/metrics").await.text;
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("loomline_open_streams "));
    line.unwrap().parse().unwrap()
}

/// Waits until this many streams are open.
async fn until_open(server: &Server, wanted: u64) {
    let end = Instant::now() + SOON;
    while open_streams(server).await != wanted {
        assert!(Instant::now() < end, "{wanted} streams are never open");
        sleep(Duration::from_millis(20)).await;
    }
}

/// A client that asks for something and reads nothing.
async fn silent(host: &Served, path: &str, key: &str) -> TcpStream {
    let mut client = TcpStream::connect(host.addr).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\naccept: text/event-stream\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    client
}

#[tokio::test]
async fn a_stalled_reader_gives_back_its_permit() {
    let server = Server::new(SMALL).await;
    let key = long_thread(&server, 16, 900_000).await;
    let host = Served::new(server.app.clone()).await;
    let path = format!("/api/v1/threads/{key}/events");
    let mut silent_clients = Vec::new();
    for _ in 0..3 {
        silent_clients.push(silent(&host, &path, "").await);
    }
    // The permits of a server in this process are counted by its own router.
    let metrics = host.url("/metrics");
    let client = upp::http_client_builder("test").unwrap().build().unwrap();
    let open = async || {
        let text = client.get(&metrics).send().await.unwrap();
        let text = text.text().await.unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("loomline_open_streams "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let end = Instant::now() + SOON;
    while open().await != 3 {
        assert!(Instant::now() < end, "the streams are never open");
    }
    while open().await != 0 {
        assert!(Instant::now() < end, "the permits are not given back");
        sleep(Duration::from_millis(50)).await;
    }
    drop(silent_clients);
    host.stop().await;
}

#[tokio::test]
async fn a_reader_that_waits_for_events_is_not_stalled() {
    let server = Server::new(SMALL).await;
    server.say("t", "hi").await;
    let request = server.request("GET", "/api/v1/threads/t/events");
    let (status, mut stream) = server.open(request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, 200);
    stream.next().await.unwrap().unwrap();
    // It asks for more, and there is none for longer than a stalled reader may take.
    let silence = tokio::time::timeout(Duration::from_secs(3), stream.next()).await;
    assert!(silence.is_err(), "{silence:?}");
    server.begin("t", "again").await;
    let next = tokio::time::timeout(SOON, stream.next()).await.unwrap();
    assert!(next.unwrap().is_ok());
}

#[tokio::test]
async fn a_revoked_key_ends_the_stream_of_a_stalled_reader() {
    let hash = loomline_server::auth::hash_text("llk_a");
    let other = loomline_server::auth::hash_text("llk_b");
    let keys = format!(
        "[limits]\nstalled_reader_s = 3600\n[tenants.a]\nkey_hashes = [\"{hash}\", \"{other}\"]\n"
    );
    let server = Server::new(&keys).await.with_key("llk_a");
    let key = long_thread(&server, 4, 900_000).await;
    let request = server.request("GET", &format!("/api/v1/threads/{key}/events"));
    let (_, mut stream) = server.open(request.body(Body::empty()).unwrap()).await;
    stream.next().await.unwrap().unwrap();
    let other_key = server.with_key("llk_b");
    assert_eq!(open_streams(&other_key).await, 1);
    // Nobody asks for the next frame.
    let left = keys.replace(&format!("\"{hash}\", "), "");
    let left = loomline_server::Config::parse(&left, &|_| None).unwrap();
    server.app.replace_tenants(&left.tenants).unwrap();
    until_open(&other_key, 0).await;
    let rest: Vec<_> = stream.collect().await;
    assert!(rest.last().unwrap().is_err(), "the connection is not ended");
}

#[tokio::test]
async fn a_frame_of_a_stream_is_bounded_by_bytes() {
    let server = Server::new("").await;
    let key = long_thread(&server, 40, 10_000).await;
    let path = format!("/api/v1/threads/{key}/events?until=rest");
    let request = server.request("GET", &path).body(Body::empty()).unwrap();
    let (_, stream) = server.open(request).await;
    let sizes: Vec<usize> = stream.map(|frame| frame.unwrap().len()).collect().await;
    assert!(sizes.len() > 5, "{sizes:?}");
    // A batch ends with the record that fills it.
    let max = (64 << 10) + 11_000;
    assert!(sizes.iter().all(|size| *size <= max), "{sizes:?}");
}

#[tokio::test]
async fn a_page_of_events_is_bounded_by_bytes_and_says_that_more_follow() {
    let server = Server::new("").await;
    let key = long_thread(&server, 6, 100_000).await;
    let (mut after, mut n_pages, mut n_events) = (0, 0, 0);
    loop {
        let path = format!("/api/v1/threads/{key}/events?after={after}");
        let request = server.request("GET", &path);
        let request = request.header("accept", "application/json");
        let page = server.send(request.body(Body::empty()).unwrap()).await;
        assert!(page.text.len() < 300_000, "{}", page.text.len());
        let page = page.json();
        n_pages += 1;
        n_events += page["events"].as_array().unwrap().len();
        after = page["last"].as_u64().unwrap();
        if page["more"] == false {
            break;
        }
    }
    assert_eq!((after, n_events), (8, 8));
    assert!(n_pages > 2, "{n_pages}");
}

#[tokio::test]
async fn a_thread_that_is_too_large_is_not_read_as_a_whole() {
    let server = Server::new(SMALL).await;
    let key = long_thread(&server, 4, 900_000).await;
    for view in ["document", "messages", "messages?limit=100", "runs"] {
        let refused = server.get(&format!("/api/v1/threads/{key}/{view}")).await;
        assert_eq!(refused.error().1, "thread_too_large", "{view}");
        assert_eq!(refused.status, 422);
    }
    let piece = server
        .get(&format!("/api/v1/threads/{key}/messages?limit=1"))
        .await;
    assert_eq!(piece.status, 200, "{}", piece.text);
    let events = server.at_rest(&key).await;
    assert_eq!(events.len(), 6);
    let form = SourceForm::Of(Format::Thread);
    assert!(server.app.export(&"dev".into(), &key, form).await.is_ok());
}

#[tokio::test]
async fn a_view_waits_until_others_are_sent() {
    let server = Server::new(SMALL).await;
    let key = long_thread(&server, 2, 900_000).await;
    let path = format!("/api/v1/threads/{key}/document");
    let request = || server.request("GET", &path).body(Body::empty()).unwrap();
    let (status, first) = server.open(request()).await;
    assert_eq!(status, 200);
    let second = server.get(&path);
    let mut second = std::pin::pin!(second);
    let early = tokio::time::timeout(Duration::from_millis(500), &mut second).await;
    assert!(early.is_err(), "two views are in memory at once");
    drop(first);
    assert_eq!(second.await.status, 200);
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_over_every_protocol() {
    let server = Server::new(SMALL).await;
    let large = "x".repeat(1_000_001);
    let text = json!([{"type": "text", "text": large}]);
    let user = json!([{"id": "m", "role": "user", "parts": text}]);
    let a2a =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": large}]}});
    let ag_ui = json!({"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{"id": "m", "role": "user", "content": large}]});
    let asked = [
        ("/api/v1/threads/t/messages", json!({"content": large})),
        ("/v1/responses", json!({"input": large})),
        ("/api/chat", json!({"id": "t", "messages": user})),
        ("/a2a/v1/message:send", a2a),
        ("/ag-ui", ag_ui),
        (
            "/runs/wait",
            json!({"assistant_id": "demo", "input": {"messages": [{"role": "user", "content": large}]}}),
        ),
    ];
    for (path, body) in asked {
        let request = server.request("POST", path);
        let request = request
            .header("content-type", "application/json")
            .header("a2a-version", "1.0");
        let request = request.body(Body::from(body.to_string())).unwrap();
        let refused = server.send(request).await;
        assert!(
            refused.status.is_client_error(),
            "{path}: {}",
            refused.status
        );
        let is_named = ["message_too_large", "larger than the 1000000"];
        let is_named = is_named.iter().any(|it| refused.text.contains(it));
        assert!(is_named, "{path}: {}", refused.text);
    }
    let list = server.get("/api/v1/threads").await.json();
    assert_eq!(list["threads"], json!([]), "nothing is written");
}

#[tokio::test]
async fn a_tool_result_that_is_too_large_is_an_error_for_the_model() {
    let server = Server::new("[limits]\nmessage_bytes = 20000\n[agents.a]\nmodel = \"m\"\ntools = [\"read_file\"]\n[models.m]\nprovider = \"scripted\"\n").await;
    let file = server.directory.path().join("files/large.txt");
    std::fs::write(file, "y".repeat(30_000)).unwrap();
    let events = server.say("t", "use read_file on large.txt").await.events();
    let text = json!(events.iter().map(|it| &it.1).collect::<Vec<_>>()).to_string();
    assert!(text.contains("more than the"), "{text}");
    let runs = server.get("/api/v1/threads/t/runs").await.text;
    assert!(runs.contains("completed"), "{runs}");
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_the_run() {
    let server = Server::new("[limits]\nmessage_bytes = 2000\n").await;
    server.say("t", "say 1000 words").await;
    let runs = server.get("/api/v1/threads/t/runs").await.text;
    assert!(runs.contains("message_too_large"), "{runs}");
    let next = server.say("t", "hi").await;
    assert!(next.text.contains("You said: hi") || next.status == 200);
}
