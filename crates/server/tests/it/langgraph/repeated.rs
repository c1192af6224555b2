//! Requests that are sent again under their token.

use super::{CONFIG, says};
use crate::harness::{Answer, Server, TEAM};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

/// Sends a body under a token.
pub(super) async fn once(server: &Server, path: &str, token: &str, body: Value) -> Answer {
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
    let one = once(&server, "/runs", "once", body.clone()).await.json();
    let again = once(&server, "/runs", "once", body.clone()).await.json();
    assert!(one["run_id"].is_string(), "{one}");
    assert_eq!(
        (&one["run_id"], &one["thread_id"]),
        (&again["run_id"], &again["thread_id"])
    );
    let other = once(&server, "/runs", "twice", body.clone()).await.json();
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
        let one = once(&server, &path, &token, body.clone()).await;
        assert_eq!(one.status, 200, "{}", one.text);
        let again = once(&server, &path, &token, body.clone()).await;
        assert_eq!(again.status, 200, "{}", again.text);
        assert_eq!(one.json()["run_id"], again.json()["run_id"]);
        server.at_rest(&thread).await;
        let again = once(&server, &path, &token, body.clone()).await;
        assert_eq!(one.json()["run_id"], again.json()["run_id"]);
    }
}

#[tokio::test]
async fn an_answer_that_names_its_interrupt_is_looked_for_on_that_ones_thread_alone() {
    let server = Server::new(TEAM).await;
    let thread = server.lang_thread().await;
    let text = "use find {\"query\": \"compute 6 * 7\"} and find {\"query\": \"compute 1 + 1\"}";
    let values = server.lang_wait(&thread, says("lead", text)).await;
    let asked = values["__interrupt__"].as_array().unwrap();
    let path = format!("/threads/{thread}/runs");
    // What another one took under the same token is none of it.
    for asked in asked {
        let id = asked["id"].as_str().unwrap();
        let body = json!({"assistant_id": "lead", "command": {"resume": {id: true}}});
        let answer = once(&server, &path, "once", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    server.at_rest(&thread).await;
    let kept = server.get(&format!("/threads/{thread}")).await.json();
    let text = kept["values"].to_string();
    assert!(
        text.contains("gave 42.") && text.contains("gave 2."),
        "{text}"
    );
}

#[tokio::test]
async fn an_answer_without_a_name_is_known_though_something_else_is_asked_by_now() {
    let server = Server::new(TEAM).await;
    let thread = server.lang_thread().await;
    let ask = |query: &str| says("lead", &format!("use find {}", json!({"query": query})));
    server.lang_wait(&thread, ask("compute 6 * 7")).await;
    let path = format!("/threads/{thread}/runs");
    let body = json!({"assistant_id": "lead", "command": {"resume": true}});
    let one = once(&server, &path, "once", body.clone()).await.json();
    server.at_rest(&thread).await;
    server.lang_wait(&thread, ask("compute 1 + 1")).await;
    let again = once(&server, &path, "once", body).await.json();
    assert_eq!(one["run_id"], again["run_id"]);
    let kept = server.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(kept["status"], "interrupted", "{kept}");
}
