//! How long a connection may wait.

use super::Site;
use super::raw::Client;
use crate::harness::Served;
use loomline_server::{Sockets, config::TlsConfig};
use rcgen::generate_simple_self_signed;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[tokio::test]
async fn a_silent_connection_is_closed_after_the_header_timeout() {
    let site = Site::new("header_timeout_s = 1").await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(site.connect().await);
    }
    for client in &mut silent {
        assert_eq!(client.closed().await, "");
    }
    site.reaches("open_connections", 0).await;
    assert_eq!(site.figure("connections_timed_out_total").await, 50);
}

#[tokio::test]
async fn a_head_that_arrives_too_slowly_closes_the_connection() {
    let site = Site::new("header_timeout_s = 1").await;
    for is_first in [true, false] {
        let mut client = if is_first {
            site.connect().await
        } else {
            site.idle().await
        };
        let start = Instant::now();
        client.send("GET /healthz HTTP/1.1\r\n").await;
        // Bytes that keep coming are no excuse.
        while start.elapsed() < Duration::from_millis(700) {
            client.send("x-more: 1\r\n").await;
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(client.closed().await, "");
        assert!(start.elapsed() >= Duration::from_secs(1));
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_the_idle_timeout_alone() {
    let site = Site::new("header_timeout_s = 1\nidle_timeout_s = 3").await;
    let mut client = site.idle().await;
    // Longer than a head may take, which has not begun.
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(client.get("/healthz").await.status, 200);
    let start = Instant::now();
    assert_eq!(client.closed().await, "");
    assert!(start.elapsed() >= Duration::from_millis(2_900));
    site.reaches("open_connections", 0).await;
}

#[tokio::test]
async fn a_stream_outlives_the_timeouts_of_its_connection() {
    let limits = "header_timeout_s = 1\nidle_timeout_s = 1\nstalled_reader_s = 1";
    let site = Site::new(limits).await;
    let mut follower = site.follower().await;
    sleep(Duration::from_millis(2_500)).await;
    assert!(follower.is_open().await);
    assert_eq!(site.figure("connections_timed_out_total").await, 0);
}

#[tokio::test]
async fn a_websocket_outlives_the_timeouts_of_its_connection() {
    let limits = "header_timeout_s = 1\nidle_timeout_s = 1\nconnections = 1";
    let site = Site::new(limits).await;
    let mut socket = site.connect().await;
    let upgrade = "GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    socket.send(upgrade).await;
    assert!(socket.read_until("\r\n\r\n").await.contains("101"));
    sleep(Duration::from_millis(2_500)).await;
    // It is not idle, and still counted.
    assert_eq!(site.connect().await.get("/openapi.json").await.status, 503);
    assert!(socket.is_open().await);
}

#[tokio::test]
async fn a_client_that_reads_no_answers_is_disconnected() {
    let site = Site::new("stalled_reader_s = 1").await;
    let mut client = site.connect().await;
    client
        .flood("GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    site.reaches("connections_timed_out_total", 1).await;
    site.reaches("open_connections", 0).await;
}

#[tokio::test]
async fn an_http2_connection_without_a_request_is_closed() {
    let site = Site::new("header_timeout_s = 1").await;
    let mut client = site.connect().await;
    client
        .send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await;
    client.closed().await;
    site.reaches("open_connections", 0).await;
}

#[tokio::test]
async fn an_http2_connection_is_idle_only_between_its_streams() {
    let limits = "header_timeout_s = 1\nidle_timeout_s = 2";
    let site = Site::new(limits).await;
    site.server.say("t", "hello").await;
    let client = super::http2();
    let url = site.served.url("/api/v1/threads/t/events");
    let stream = client.get(url).send().await.unwrap();
    sleep(Duration::from_secs(3)).await;
    assert_eq!(site.figure("open_connections").await, 1);
    // On the connection of the stream.
    let health = client.get(site.served.url("/healthz")).send();
    assert_eq!(health.await.unwrap().status(), 200);
    assert_eq!(site.figure("open_connections").await, 1);
    drop(stream);
    site.reaches("open_connections", 0).await;
}

#[tokio::test]
async fn an_http2_connection_has_limits_of_streams_and_heads() {
    let site = Site::new("http2_streams = 7").await;
    let settings = settings(site.served.addr).await;
    assert!(settings.contains(&(3, 7)), "{settings:?}");
    assert!(settings.contains(&(6, 64 << 10)), "{settings:?}");
}

/// The settings that a server sends on an HTTP/2 connection.
async fn settings(server: SocketAddr) -> Vec<(u16, u32)> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(server).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "a frame of settings");
    let length = usize::from(head[1]) << 8 | usize::from(head[2]);
    let mut settings = Vec::new();
    for _ in 0..length / 6 {
        settings.push((
            stream.read_u16().await.unwrap(),
            stream.read_u32().await.unwrap(),
        ));
    }
    settings
}

#[tokio::test]
async fn a_tls_handshake_that_takes_too_long_closes_the_connection() {
    let site = Site::new("tls_timeout_s = 1\nheader_timeout_s = 60").await;
    let tls = served_with_tls(&site);
    let mut clients = [
        Client::connect(tls.addr).await,
        Client::connect(tls.addr).await,
    ];
    // The head of a message of 512 bytes, which does not come.
    clients[0].send("\x16\x03\x01\x02\0").await;
    for client in &mut clients {
        assert_eq!(client.closed().await, "");
    }
    site.reaches("open_connections", 0).await;
    assert_eq!(site.figure("connections_timed_out_total").await, 2);
}

#[tokio::test]
async fn one_handshake_too_many_ends_the_oldest() {
    let site = Site::new("connections = 2\nconnections_per_address = 2").await;
    let tls = served_with_tls(&site);
    let mut first = Client::connect(tls.addr).await;
    let mut second = Client::connect(tls.addr).await;
    site.reaches("open_connections", 2).await;
    let mut third = Client::connect(tls.addr).await;
    assert_eq!(first.closed().await, "");
    assert!(second.is_open().await && third.is_open().await);
}

fn served_with_tls(site: &Site) -> Served {
    let made = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let directory = site.server.directory.path();
    let files = TlsConfig {
        cert: directory.join("cert.pem"),
        key: directory.join("key.pem"),
    };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let mut config = site.server.app.config().clone();
    config.server.tls = Some(files);
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let sockets = Sockets::bind(&config, address).unwrap();
    Served::on(site.server.app.clone(), sockets)
}
