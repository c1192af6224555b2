//! What the server says of a store that is damaged.

use crate::harness::Server;
use axum::body::Body;
use http::header;
use serde_json::{Value, json};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

/// What is said on the thread whose log is damaged.
const SAID: &str = "the page with these words is about to be damaged";

/// Overwrites each page that has these words.
fn damage(file: &Path, words: &str) {
    let bytes = std::fs::read(file).unwrap();
    let mut store = std::fs::File::options().write(true).open(file).unwrap();
    for (number, page) in bytes.chunks(4096).enumerate() {
        let has = page
            .windows(words.len())
            .any(|window| window == words.as_bytes());
        if has {
            store.seek(SeekFrom::Start(number as u64 * 4096)).unwrap();
            store.write_all(&[0xa5; 4096]).unwrap();
        }
    }
}

async fn damaged() -> Server {
    let server = Server::new("").await;
    server.say("t", SAID).await;
    server.app.shutdown().await.unwrap();
    let Server {
        app,
        router,
        directory,
        ..
    } = server;
    drop((app, router));
    damage(&directory.path().join("loomline.db"), SAID);
    Server::at(directory, "").await
}

#[tokio::test]
async fn a_damaged_store_has_an_error_code_and_a_metric() {
    let server = damaged().await;
    let figures = server.get("/metrics").await.text;
    assert!(figures.contains("loomline_store_healthy 1"), "{figures}");
    assert!(
        figures.contains("loomline_store_damage_found_total 0"),
        "{figures}"
    );
    let answer = server.get("/api/v1/threads/t/messages").await;
    assert_eq!(answer.error(), (500, "store_damaged".into(), None));
    let message = answer.json()["error"]["message"].clone();
    assert!(
        message.as_str().unwrap().contains("loomline doctor"),
        "{message}"
    );
    let figures = server.get("/metrics").await.text;
    assert!(figures.contains("loomline_store_healthy 0"), "{figures}");
    assert!(
        !figures.contains("loomline_store_damage_found_total 0"),
        "{figures}"
    );
}

#[tokio::test]
async fn readiness_fails_once_damage_is_found_and_liveness_does_not() {
    let server = damaged().await;
    assert_eq!(server.get("/readyz").await.status, 200);
    let request = server
        .request("GET", "/api/v1/threads/t/messages")
        .header(header::ACCEPT, "application/json");
    server.send(request.body(Body::empty()).unwrap()).await;
    let refused = server.get("/readyz").await;
    let details = refused.json()["error"]["details"].clone();
    assert_eq!(refused.error().0, 503);
    assert_eq!(refused.error().1, "not_ready");
    assert_eq!(details, json!({"reason": "store_damaged"}));
    assert!(refused.headers.contains_key("retry-after"));
    let health: Value = server.get("/healthz").await.json();
    assert_eq!(health, json!({"status": "ok"}));
}
