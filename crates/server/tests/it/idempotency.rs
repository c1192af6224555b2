//! An `Idempotency-Key` that comes again: with the request that it names, or with another one.

use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

async fn keyed(server: &Server, path: &str, key: &str, body: &str) -> Answer {
    let request = server
        .request("POST", path)
        .header(header::CONTENT_TYPE, "application/json")
        .header("idempotency-key", key);
    server
        .send(request.body(Body::from(body.to_owned())).unwrap())
        .await
}

fn code(answer: &Answer) -> Value {
    let body = answer.json();
    let own = body["error"]["code"].clone();
    if own.is_null() {
        body["code"].clone()
    } else {
        own
    }
}

/// Sends a request, the same again, and another one, under one key.
async fn refuses_another(server: &Server, path: &str, body: Value, other: Value) {
    let text = body.to_string();
    let first = keyed(server, path, "once", &text).await;
    assert!(first.status.is_success(), "{path}: {}", first.text);
    let again = keyed(server, path, "once", &text).await;
    assert_eq!(again.status, first.status, "{path}: {}", again.text);
    let refused = keyed(server, path, "once", &other.to_string()).await;
    assert_eq!(refused.status, 422, "{path}: {}", refused.text);
    assert_eq!(code(&refused), "idempotency_key_reused", "{path}");
    let again = keyed(server, path, "once", &text).await;
    assert_eq!(again.status, first.status, "{path}: {}", again.text);
}

#[tokio::test]
async fn an_idempotency_key_with_another_body_is_refused() {
    let server = Server::new("").await;
    let path = "/api/v1/threads/t/messages";
    let [one, two] = ["one", "two"].map(|said| json!({ "content": said }));
    refuses_another(&server, path, one.clone(), two).await;
    server.at_rest("t").await;
    let messages = server.get(path).await.json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
    // On another thread it names another request.
    let other = keyed(
        &server,
        "/api/v1/threads/u/messages",
        "once",
        "{\"content\":\"x\"}",
    )
    .await;
    assert_eq!(other.status, 202, "{}", other.text);
}

#[tokio::test]
async fn every_protocol_refuses_a_reused_idempotency_key() {
    let server = Server::new("").await;
    let thread = server.post("/v1/threads", json!({})).await.json();
    let runs = format!("/v1/threads/{}/runs", thread["id"].as_str().unwrap());
    let says = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
    let run = |text: &str| json!({"assistant_id": "demo", "input": says(text)});
    let begins = |text: &str| {
        let messages = says(text)["messages"].clone();
        json!({"assistant_id": "demo", "additional_messages": messages})
    };
    let with_thread = |text: &str| json!({"assistant_id": "demo", "thread": says(text)});
    let respond = |text: &str| json!({"model": "demo", "input": text});
    for (path, body, other) in [
        ("/v1/responses", respond("one"), respond("two")),
        (runs.as_str(), begins("one"), begins("two")),
        ("/v1/threads/runs", with_thread("one"), with_thread("two")),
        ("/runs/wait", run("one"), run("two")),
    ] {
        let (mut body, mut other) = (body, other);
        if path == "/runs/wait" {
            body["on_completion"] = "keep".into();
            other["on_completion"] = "keep".into();
        }
        refuses_another(&server, path, body, other).await;
    }
}

#[tokio::test]
async fn what_is_made_once_refuses_a_reused_idempotency_key() {
    let server = Server::new("").await;
    let thread = server.post("/v1/threads", json!({})).await.json();
    let messages = format!("/v1/threads/{}/messages", thread["id"].as_str().unwrap());
    let says = |text: &str| json!({"role": "user", "content": text});
    let named = |name: &str| json!({"model": "demo", "name": name});
    let noted = |n: u8| json!({"metadata": {"n": n.to_string()}});
    for (path, body, other) in [
        (messages.as_str(), says("one"), says("two")),
        ("/v1/threads", noted(1), noted(2)),
        ("/v1/assistants", named("one"), named("two")),
        ("/threads", noted(1), noted(2)),
    ] {
        refuses_another(&server, path, body, other).await;
    }
}

#[tokio::test]
async fn a_chat_refuses_a_reused_idempotency_key() {
    let server = Server::new("").await;
    let submit = |id: &str, text: &str| {
        let message = json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
        json!({"id": "c", "trigger": "submit-message", "messages": [message]}).to_string()
    };
    let first = keyed(&server, "/api/chat", "once", &submit("m1", "one")).await;
    assert_eq!(first.status, 200, "{}", first.text);
    let history = server.get("/api/v1/threads/c/messages").await.json();
    assert_eq!(history["messages"].as_array().unwrap().len(), 2);
    let refused = keyed(&server, "/api/chat", "once", &submit("m2", "two")).await;
    assert!(
        refused.status == 422 || refused.status == 409,
        "{}",
        refused.text
    );
    assert!(
        ["idempotency_key_reused", "history_differs"].contains(&code(&refused).as_str().unwrap()),
        "{}",
        refused.text
    );
}
