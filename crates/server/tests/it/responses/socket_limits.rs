//! What a client may send over a WebSocket, and how long it may read nothing.

use super::socket::Socket;
use crate::harness::{Served, Server, two_tenants};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

const PATIENCE: Duration = Duration::from_secs(30);

fn small_budgets() -> String {
    let limits = "[limits]\nbody_bytes_in_flight = 100_000\n\
                  [limits.tenant]\nbody_bytes_in_flight = 60_000\n";
    format!("{limits}{}", two_tenants())
}

/// The first frame of a message that does not end.
fn unfinished(bytes: usize) -> Message {
    let payload = vec![b' '; bytes];
    Message::Frame(Frame::message(payload, OpCode::Data(Data::Text), false))
}

/// Waits until a body of this size is answered with this status.
async fn answered(server: &Server, bytes: usize, status: u16) {
    let body = || json!({ "content": "x".repeat(bytes) });
    let answered = async {
        while server
            .post("/api/v1/threads/t/messages", body())
            .await
            .status
            != status
        {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, answered)
        .await
        .expect("the status is met");
}

#[tokio::test]
async fn unfinished_messages_count_in_the_body_budget_of_their_tenant() {
    let server = Server::new(&small_budgets()).await;
    let listening = Served::new(server.app.clone()).await;
    let (a, b) = (server.with_key("llk_a"), server.with_key("llk_b"));
    let mut first = Socket::with_key(&listening, Some("llk_a")).await;
    first.0.send(unfinished(40_000)).await.unwrap();
    while server.app.body_bytes_in_flight() < 40_000 {
        sleep(Duration::from_millis(5)).await;
    }
    answered(&a, 30_000, 429).await;
    answered(&b, 30_000, 202).await;
    let mut second = Socket::with_key(&listening, Some("llk_a")).await;
    second.0.send(unfinished(30_000)).await.unwrap();
    assert_eq!(second.error().await, (429, "limit_reached".to_owned()));
    assert_eq!(second.next().await, None);
    drop(first);
    answered(&a, 50_000, 202).await;
    listening.stop().await;
}

#[tokio::test]
async fn a_message_that_was_answered_holds_no_budget() {
    let server = Server::new(&small_budgets()).await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::with_key(&listening, Some("llk_a")).await;
    for _ in 0..4 {
        let long = json!({"input": "hi", "instructions": "x".repeat(40_000)});
        assert_eq!(socket.respond(long).await["status"], "completed");
    }
    let binary = Message::binary(vec![0; 40_000]);
    socket.0.send(binary).await.unwrap();
    assert_eq!(socket.error().await.0, 400);
    answered(&server.with_key("llk_a"), 50_000, 202).await;
    listening.stop().await;
}

#[tokio::test]
async fn a_frame_that_claims_too_much_ends_the_connection() {
    let server = Server::new("[server]\nmax_body_bytes = 4096\n").await;
    let listening = Served::new(server.app.clone()).await;
    let mut raw = opened(&listening).await;
    // A masked text frame of 1 GiB, of which nothing comes.
    let mut head = vec![0x81, 0xff];
    head.extend((1_u64 << 30).to_be_bytes());
    head.extend([0; 4]);
    raw.write_all(&head).await.unwrap();
    let mut told = Vec::new();
    let read = timeout(PATIENCE, raw.read_to_end(&mut told)).await;
    read.expect("the connection is closed").unwrap();
    assert!(String::from_utf8_lossy(&told).contains("body_too_large"));
    listening.stop().await;
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_disconnected() {
    let server = Server::new("[limits]\nstalled_reader_s = 1\n").await;
    let listening = Served::new(server.app.clone()).await;
    let mut raw = opened(&listening).await;
    let mut pings = Vec::new();
    let read = timeout(PATIENCE, raw.read_to_end(&mut pings)).await;
    read.expect("the connection is closed").unwrap();
    assert!(pings.starts_with(&[0x89, 0]), "{pings:?}");
    listening.stop().await;
}

#[tokio::test]
async fn a_client_that_answers_pings_stays_connected() {
    let server = Server::new("[limits]\nstalled_reader_s = 1\n").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    let idle = timeout(Duration::from_secs(4), async {
        while let Some(Ok(message)) = socket.0.next().await {
            assert!(matches!(message, Message::Ping(_)), "{message}");
        }
    });
    idle.await.expect_err("the connection stays open");
    let response = socket.respond(json!({"input": "hi"})).await;
    assert_eq!(response["status"], "completed");
    listening.stop().await;
}

/// A WebSocket whose frames the test writes itself.
async fn opened(listening: &Served) -> TcpStream {
    let mut raw = TcpStream::connect(listening.addr).await.unwrap();
    let head = "GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
                upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    raw.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(raw.read_u8().await.unwrap());
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{answer}");
    raw
}
