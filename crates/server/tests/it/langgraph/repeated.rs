//! Requests that are sent again under their token.

use super::{CONFIG, says};
use crate::harness::{Answer, Server, TEAM};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

/// Sends a body under a token.
async fn once(server: &Server, path: &str, token: &str, body: &Value) -> Answer {
    let request = server
        .request("POST", path)
        .header(header::CONTENT_TYPE, "application/json")
        .header("idempotency-key", token);
    server
        .send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

#[tokio::test]
async fn a_run_without_a_thread_that_is_asked_for_again_is_the_same_run_of_the_same_thread() {
    let server = Server::new(CONFIG).await;
    let mut body = says("demo", "Good morning");
    body["on_completion"] = "keep".into();
    let one = once(&server, "/runs", "once", &body).await.json();
    let again = once(&server, "/runs", "once", &body).await.json();
    assert!(one["run_id"].is_string(), "{one}");
    assert_eq!(
        (&one["run_id"], &one["thread_id"]),
        (&again["run_id"], &again["thread_id"])
    );
    let other = once(&server, "/runs", "twice", &body).await.json();
    assert_ne!(one["thread_id"], other["thread_id"]);
    let count = server.post("/threads/count", json!({})).await;
    assert_eq!(count.json(), 2);
}

#[tokio::test]
async fn an_answer_for_a_sub_agent_that_is_sent_again_is_answered_as_it_was() {
    let server = Server::new(TEAM).await;
    let thread = server.lang_thread().await;
    let asks = says("lead", "use find {\"query\": \"compute 6 * 7\"}");
    let values = server.lang_wait(&thread, asks).await;
    let id = values["__interrupt__"][0]["id"].as_str().unwrap();
    let path = format!("/threads/{thread}/runs");
    // One names the call, the other one leaves it to what waits.
    for (n, resume) in [json!({id: true}), json!(true)].into_iter().enumerate() {
        let token = format!("answer-{n}");
        let body = json!({"assistant_id": "lead", "command": {"resume": resume}});
        if n > 0 {
            let asks = says("lead", "use find {\"query\": \"compute 1 + 1\"}");
            server.lang_wait(&thread, asks).await;
        }
        let one = once(&server, &path, &token, &body).await;
        assert_eq!(one.status, 200, "{}", one.text);
        let again = once(&server, &path, &token, &body).await;
        assert_eq!(again.status, 200, "{}", again.text);
        assert_eq!(one.json()["run_id"], again.json()["run_id"]);
        server.at_rest(&thread).await;
        let again = once(&server, &path, &token, &body).await;
        assert_eq!(one.json()["run_id"], again.json()["run_id"]);
    }
}
