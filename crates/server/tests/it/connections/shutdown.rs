//! A server that stops.

use super::Site;
use serde_json::json;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Less than the grace period, and much more than a stop takes.
const SOON: Duration = Duration::from_secs(8);

#[tokio::test]
async fn a_stop_closes_silent_and_idle_connections_and_ends_streams() {
    let site = Site::new("").await;
    let mut clients = [
        site.connect().await,
        site.idle().await,
        site.follower().await,
    ];
    site.reaches("open_connections", 3).await;
    timeout(SOON, site.served.stop()).await.unwrap();
    for client in &mut clients {
        client.closed().await;
    }
}

#[tokio::test]
async fn a_stop_lets_a_request_in_progress_finish() {
    let site = Site::new("").await;
    let mut client = site.connect().await;
    let body = json!({ "content": "hello" }).to_string();
    let head = format!(
        "POST /api/v1/threads/t/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    client.send(&head).await;
    sleep(Duration::from_millis(200)).await;
    site.served.shutdown.cancel();
    sleep(Duration::from_millis(200)).await;
    client.send(&body).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 202, "{answer:?}");
    timeout(SOON, site.served.stop()).await.unwrap();
}

#[tokio::test]
async fn a_stop_ends_the_streams_of_http2() {
    let site = Site::new("").await;
    site.server.say("t", "hello").await;
    let client = super::http2();
    let url = site.served.url("/api/v1/threads/t/events");
    let stream = client.get(url).send().await.unwrap();
    site.served.shutdown.cancel();
    let text = timeout(SOON, stream.text()).await.unwrap().unwrap();
    assert!(text.contains("thread.finished"), "{text}");
    timeout(SOON, site.served.stop()).await.unwrap();
}
