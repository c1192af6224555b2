//! Runs as events.

use super::{Client, events, names, schema};
use axum::body::Body;
use futures_util::StreamExt;
use http::header;
use serde_json::json;

#[tokio::test]
async fn a_text_is_streamed_in_the_order_clients_know() {
    let client = Client::new().await;
    let thread = client.thread(&["hi"]).await;
    let body = json!({"assistant_id": "demo", "stream": true});
    let told = events(&client.ask(&format!("/threads/{thread}/runs"), body).await);
    let mut order = names(&told);
    order.dedup();
    assert_eq!(
        order,
        [
            "thread.run.created",
            "thread.run.queued",
            "thread.run.in_progress",
            "thread.run.step.created",
            "thread.run.step.in_progress",
            "thread.message.created",
            "thread.message.in_progress",
            "thread.message.delta",
            "thread.message.completed",
            "thread.run.step.completed",
            "thread.run.completed",
            "done",
        ]
    );
    // What was streamed is what is read afterwards.
    let (_, run) = told
        .iter()
        .find(|(name, _)| name == "thread.run.completed")
        .unwrap();
    assert_eq!(&client.run(&thread, run).await, run);
    let (_, message) = told
        .iter()
        .find(|(name, _)| name == "thread.message.completed")
        .unwrap();
    let path = format!(
        "/threads/{thread}/messages/{}",
        message["id"].as_str().unwrap()
    );
    assert_eq!(&client.get(&path, "MessageObject").await, message);
}

#[tokio::test]
async fn a_thread_that_is_made_with_its_run_is_told_first() {
    let client = Client::new().await;
    let body = json!({"assistant_id": "demo", "stream": true, "thread": {"messages": [{"role": "user", "content": "hi"}]}});
    let told = events(&client.ask("/threads/runs", body).await);
    assert_eq!(names(&told)[..2], ["thread.created", "thread.run.created"]);
    assert_eq!(told[1].1["thread_id"], told[0].1["id"]);
}

#[tokio::test]
async fn a_run_that_fails_ends_its_stream() {
    let client = Client::new().await;
    let thread = client.thread(&["fail after 3"]).await;
    let body = json!({"assistant_id": "demo", "stream": true});
    let told = events(&client.ask(&format!("/threads/{thread}/runs"), body).await);
    let told = names(&told);
    let end = [
        "thread.message.incomplete",
        "thread.run.step.failed",
        "thread.run.failed",
        "done",
    ];
    assert_eq!(told[told.len() - 4..], end);
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_cancel_the_run() {
    let client = Client::new().await;
    let thread = client.thread(&["slow 5ms say 60 words"]).await;
    let request = client
        .0
        .request("POST", &format!("/v1/threads/{thread}/runs"));
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let body = json!({"assistant_id": "demo", "stream": true}).to_string();
    let (_, mut stream) = client.0.open(request.body(Body::from(body)).unwrap()).await;
    stream.next().await.unwrap().unwrap();
    drop(stream);
    client.rest(&thread).await;
    let runs = client
        .get(&format!("/threads/{thread}/runs"), "ListRunsResponse")
        .await;
    assert_eq!(runs["data"][0]["status"], "completed");
    assert_eq!(client.said(&thread).await.len(), 2);
}

#[tokio::test]
async fn a_run_that_is_cancelled_ends_its_stream() {
    let client = Client::new().await;
    let thread = client.thread(&["slow 20ms say 500 words"]).await;
    let request = client
        .0
        .request("POST", &format!("/v1/threads/{thread}/runs"));
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let body = json!({"assistant_id": "demo", "stream": true}).to_string();
    let (_, mut stream) = client.0.open(request.body(Body::from(body)).unwrap()).await;
    let mut text = String::new();
    while !text.contains("thread.message.delta") {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    let runs = client
        .get(&format!("/threads/{thread}/runs"), "ListRunsResponse")
        .await;
    let id = runs["data"][0]["id"].as_str().unwrap().to_owned();
    let cancel = format!("/threads/{thread}/runs/{id}/cancel");
    let cancelled = client.post(&cancel, json!({}), "RunObject").await;
    while let Some(piece) = stream.next().await {
        text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    let order = [
        "thread.run.cancelling",
        "thread.message.incomplete",
        "thread.run.step.cancelled",
        "thread.run.cancelled",
        "done",
    ];
    let mut rest = text.as_str();
    for name in order {
        let (_, after) = rest
            .split_once(&format!("event: {name}\n"))
            .unwrap_or_else(|| panic!("no {name} in {rest}"));
        rest = after;
    }
    schema::check("RunObject", &cancelled);
    assert_eq!(client.run(&thread, &cancelled).await["status"], "cancelled");
}
