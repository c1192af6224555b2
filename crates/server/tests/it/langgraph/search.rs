//! Threads that are looked for.

use super::{CONFIG, says};
use crate::harness::Server;
use serde_json::{Value, json};

/// The ids of the threads that a search finds.
async fn found(server: &Server, body: Value) -> Vec<String> {
    let answer = server.post("/threads/search", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let threads = answer.json();
    let threads = threads.as_array().unwrap().iter();
    let ids = threads.map(|thread| thread["thread_id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[tokio::test]
async fn threads_are_found_by_how_they_stand() {
    let server = Server::new(CONFIG).await;
    let mut threads = Vec::new();
    for (status, agent, text) in [
        ("idle", "demo", "Good morning"),
        ("interrupted", "clerk", "use compute 6 * 7"),
        ("error", "demo", "fail"),
    ] {
        let thread = server.lang_thread().await;
        server.lang_wait(&thread, says(agent, text)).await;
        threads.push((status, thread));
    }
    for (status, thread) in &threads {
        let wanted = found(&server, json!({ "status": status })).await;
        assert_eq!(wanted, [thread.as_str()], "{status}");
        let counted = server.post("/threads/count", json!({ "status": status }));
        assert_eq!(counted.await.json(), 1);
    }
    assert!(found(&server, json!({"status": "busy"})).await.is_empty());
    let closed = &threads[2].1;
    let path = format!("/api/v1/threads/{closed}/close");
    assert_eq!(server.post(&path, json!({})).await.status, 200);
    assert!(found(&server, json!({"status": "error"})).await.is_empty());
    assert_eq!(found(&server, json!({"status": "idle"})).await.len(), 2);
}

#[tokio::test]
async fn a_copy_counts_with_what_it_was_copied_from_and_values_are_shown_as_far_as_they_fit() {
    let config = format!("{CONFIG}[server]\nmax_body_bytes = 20000000\n");
    let server = Server::new(&config).await;
    let thread = server.lang_thread().await;
    let text = "x".repeat(1_000_000);
    let said: Vec<Value> = (0..9).map(|_| text.as_str().into()).collect();
    let path = format!("/threads/{thread}/state");
    let answer = server
        .post(&path, json!({"values": {"messages": said}}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let copy = server
        .post(&format!("/threads/{thread}/copy"), json!({}))
        .await;
    assert_eq!(copy.status, 200);
    let page = server.post("/threads/search", json!({})).await.json();
    let page = page.as_array().unwrap();
    let n_shown = page.iter().filter(|it| it.get("values").is_some()).count();
    assert_eq!((page.len(), n_shown), (2, 1));
    // A part of the values is named where they are wanted, too.
    let select = json!({"ids": [thread], "select": ["values.messages"]});
    let page = server.post("/threads/search", select).await.json();
    assert!(page[0]["values"]["messages"].is_array());
}
