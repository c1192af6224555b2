//! Request bodies: their budgets, their rate, and what they hold while they arrive.

use crate::harness::{Served, Server, two_tenants};
use http::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Longer than a body that stalls may last.
const PATIENCE: Duration = Duration::from_secs(30);
const MESSAGES: &str = "/api/v1/threads/t/messages";

/// A request whose body was sent in part.
struct Raw(TcpStream);

impl Raw {
    async fn open(listening: &Served, path: &str, headers: &str, length: usize) -> Self {
        let mut stream = TcpStream::connect(listening.addr).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Self(stream)
    }

    /// A JSON body of one tenant.
    async fn json(listening: &Served, key: &str, length: usize) -> Self {
        let headers = format!("authorization: Bearer {key}\r\ncontent-type: application/json\r\n");
        Self::open(listening, MESSAGES, &headers, length).await
    }

    async fn send(mut self, bytes: usize) -> Self {
        self.0.write_all(&vec![b' '; bytes]).await.unwrap();
        self
    }

    /// What comes until the server closes the connection.
    async fn closed(mut self) -> (u16, Value) {
        let mut text = String::new();
        let read = timeout(PATIENCE, self.0.read_to_string(&mut text)).await;
        read.expect("the connection is closed").unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        (status, body["error"]["code"].clone())
    }
}

/// A body that takes about so many bytes of the budgets.
fn message(bytes: usize) -> Value {
    json!({ "content": "x".repeat(bytes) })
}

/// Waits until bodies hold so many bytes.
async fn held(server: &Server, bytes: usize) {
    let held = async {
        while server.app.body_bytes_in_flight() < bytes {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, held).await.expect("the bytes arrive");
}

/// Sends a message of this size, which is refused for a limit.
async fn refused(server: &Server, bytes: usize, limit: &str) {
    let answer = server.post(MESSAGES, message(bytes)).await;
    assert_eq!(answer.error().1, "limit_reached");
    assert_eq!(answer.json()["error"]["details"]["limit"], limit);
    assert!(answer.retry_after() > 0);
}

/// Waits until a message of this size is accepted.
async fn accepted(server: &Server, bytes: usize) {
    let accepted = async {
        while server.post(MESSAGES, message(bytes)).await.status != StatusCode::ACCEPTED {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, accepted)
        .await
        .expect("the budget is freed");
}

fn small_budgets() -> String {
    let limits = "[limits]\nbody_bytes_in_flight = 100_000\n\
                  [limits.tenant]\nbody_bytes_in_flight = 60_000\n";
    format!("{limits}{}", two_tenants())
}

#[tokio::test]
async fn a_tenant_that_spent_its_body_budget_is_refused_and_others_are_not() {
    let server = Server::new(&small_budgets()).await;
    let listening = Served::new(server.app.clone()).await;
    let (a, b) = (server.with_key("llk_a"), server.with_key("llk_b"));
    let stalled = Raw::json(&listening, "llk_a", 60_000).await;
    let stalled = stalled.send(40_000).await;
    held(&a, 40_000).await;
    refused(&a, 30_000, "tenant.body_bytes_in_flight").await;
    accepted(&b, 30_000).await;
    drop(stalled);
    accepted(&a, 30_000).await;
    listening.stop().await;
}

#[tokio::test]
async fn the_bodies_of_all_tenants_share_one_budget() {
    let server = Server::new(&small_budgets()).await;
    let listening = Served::new(server.app.clone()).await;
    let b = server.with_key("llk_b");
    let stalled = Raw::json(&listening, "llk_a", 60_000).await;
    let stalled = stalled.send(59_000).await;
    held(&b, 59_000).await;
    refused(&b, 50_000, "body_bytes_in_flight").await;
    drop(stalled);
    accepted(&b, 50_000).await;
    listening.stop().await;
}

#[tokio::test]
async fn a_content_length_takes_no_budget_before_its_bytes() {
    let server = Server::new(&small_budgets()).await;
    let listening = Served::new(server.app.clone()).await;
    let mut stalled = Vec::new();
    for _ in 0..20 {
        stalled.push(Raw::json(&listening, "llk_a", 59_999).await.send(10).await);
    }
    accepted(&server.with_key("llk_a"), 50_000).await;
    listening.stop().await;
}

#[tokio::test]
async fn a_request_without_a_key_takes_no_body_budget() {
    let server = Server::new(&small_budgets()).await;
    let listening = Served::new(server.app.clone()).await;
    for key in ["", "llk_wrong"] {
        let stalled = Raw::json(&listening, key, 60_000).await.send(50_000).await;
        assert_eq!(stalled.closed().await, (401, json!("unauthorized")));
    }
    accepted(&server.with_key("llk_a"), 50_000).await;
    listening.stop().await;
}

#[tokio::test]
async fn a_hundred_stalled_bodies_end_with_408_and_a_closed_connection() {
    let server = Server::new(&two_tenants()).await;
    let listening = Served::new(server.app.clone()).await;
    let mut stalled = JoinSet::new();
    for _ in 0..100 {
        let body = Raw::json(&listening, "llk_a", 16 << 20).await;
        let body = body.send(100).await;
        stalled.spawn(body.closed());
    }
    while let Some(closed) = stalled.join_next().await {
        assert_eq!(closed.unwrap(), (408, json!("body_timeout")));
    }
    listening.stop().await;
}

#[tokio::test]
async fn a_body_below_the_minimum_rate_ends_with_408() {
    let server = Server::new(&two_tenants()).await;
    let listening = Served::new(server.app.clone()).await;
    let mut body = Raw::json(&listening, "llk_a", 1 << 20).await;
    // Without an end of its own: the server has to close the connection.
    let trickled = async {
        while body.0.write_all(b" ").await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, trickled)
        .await
        .expect("the connection is closed");
    listening.stop().await;
}

#[tokio::test]
async fn a_stalled_upload_ends_with_408_and_frees_its_budget() {
    let server = Server::new(&small_budgets()).await;
    let listening = Served::new(server.app.clone()).await;
    let headers =
        "authorization: Bearer llk_a\r\ncontent-type: multipart/form-data; boundary=b\r\n";
    let mut upload = Raw::open(&listening, "/v1/files", headers, 60_000).await;
    let file = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n";
    upload.0.write_all(file.as_bytes()).await.unwrap();
    let upload = upload.send(40_000).await;
    let a = server.with_key("llk_a");
    held(&a, 40_000).await;
    refused(&a, 30_000, "tenant.body_bytes_in_flight").await;
    assert_eq!(upload.closed().await, (408, json!("body_timeout")));
    accepted(&a, 30_000).await;
    listening.stop().await;
}

#[tokio::test]
async fn an_upload_beyond_the_budget_is_refused() {
    let server = Server::new(&small_budgets()).await;
    let listening = Served::new(server.app.clone()).await;
    let stalled = Raw::json(&listening, "llk_a", 60_000).await;
    let _stalled = stalled.send(40_000).await;
    let a = server.with_key("llk_a");
    held(&a, 40_000).await;
    refused(&a, 30_000, "tenant.body_bytes_in_flight").await;
    let body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n{}\r\n--b--\r\n",
        "x".repeat(30_000)
    );
    let request = a.request("POST", "/v1/files");
    let request = request.header("content-type", "multipart/form-data; boundary=b");
    let answer = a.send(request.body(body.into()).unwrap()).await;
    assert_eq!(answer.status, 429, "{}", answer.text);
    assert_eq!(answer.json()["error"]["code"], "limit_reached");
    listening.stop().await;
}

#[tokio::test]
async fn a_body_of_a_million_values_is_refused() {
    let server = Server::new("").await;
    let zeros = |n: usize| format!("{{\"content\":[{}0]}}", "0,".repeat(n - 1));
    let answer = server.post_text(MESSAGES, zeros(1_000_000)).await;
    assert_eq!(answer.error().1, "too_many_values");
    // So many may be read: that they are no parts is found after that.
    let answer = server.post_text(MESSAGES, zeros(100_000)).await;
    assert_eq!(answer.error().1, "invalid_field");
}

#[tokio::test]
async fn a_short_body_whose_values_exceed_the_budget_is_refused() {
    let server = Server::new(&small_budgets()).await;
    let a = server.with_key("llk_a");
    let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let body = |n: usize| format!("{{\"content\":[{}0]}}", format!("{nested},").repeat(n));
    let answer = a.post_text(MESSAGES, body(1)).await;
    assert_eq!(answer.error().1, "invalid_field");
    let answer = a.post_text(MESSAGES, body(4)).await;
    assert_eq!(
        (answer.status.as_u16(), answer.error().1.as_str()),
        (413, "too_many_values")
    );
    let limit = answer.json()["error"]["details"]["limit"].as_u64().unwrap();
    assert!((100..400).contains(&limit), "{limit}");
}

#[tokio::test]
async fn a_response_that_is_waited_for_holds_no_body_budget() {
    let server = Server::new(&small_budgets()).await;
    let a = server.with_key("llk_a");
    let slow = json!({
        "model": "demo",
        "input": "slow 50ms say 40 words",
        "instructions": "x".repeat(40_000),
    });
    let waits = a.post("/v1/responses", slow);
    let mut waits = std::pin::pin!(waits);
    tokio::select! {
        // The slow request takes its part of the budget before the other one asks.
        biased;
        answer = &mut waits => panic!("it has to take longer: {}", answer.text),
        () = accepted(&a, 40_000) => {}
    }
    assert_eq!(waits.await.status, 200);
}
