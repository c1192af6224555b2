//! The documents that forms lead to.

use super::Meeting;
use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

/// A server with a document at `/form.json`, something else at `/page`, and how often they were read.
async fn elsewhere() -> (u16, Arc<AtomicUsize>, JoinSet<()>) {
    let n_read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_read);
    let form = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        async { json!({"fields": [{"id": "street", "required": true}]}).to_string() }
    };
    let router = Router::new()
        .route("/form.json", get(form))
        .route("/page", get(|| async { "<html></html>" }))
        .route("/long", get(|| async { " ".repeat(300_000) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (port, n_read, tasks)
}

fn form(url: &str) -> Value {
    json!({"$schema": super::DATA, "request_data": {
        "id": "address", "description": "Where to?", "form": {"json_url": url},
    }})
}

async fn asking(config: &str, url: &str) -> Meeting {
    let meeting = Meeting::keys(config).await;
    meeting.user.say("t", "hello").await;
    super::join(&meeting.shop, "shop", &[]).await;
    meeting.ask(&form(url)).await;
    meeting
}

async fn answered(meeting: &Meeting, value: Value) -> u16 {
    let body = json!({ "value": value });
    let answer = meeting
        .about(&meeting.user, "data:address", "answer", body)
        .await;
    answer.status.as_u16()
}

#[tokio::test]
async fn a_document_is_fetched_once_and_answers_are_held_to_it() {
    let (port, n_read, _served) = elsewhere().await;
    let config = format!(
        "[aitp]\nfetch_forms = true\n[outbound]\nhttp = true\nallow = [\"127.0.0.1:{port}\"]\n"
    );
    let meeting = asking(&config, &format!("http://127.0.0.1:{port}/form.json")).await;
    for _ in 0..2 {
        let asked = meeting.request("data:address").await;
        assert_eq!(asked["answerSchema"]["required"], json!(["street"]));
    }
    assert_eq!(n_read.load(Ordering::Relaxed), 1);
    assert_eq!(answered(&meeting, json!({"city": "Bonn"})).await, 422);
    assert_eq!(answered(&meeting, json!({"street": "Main"})).await, 200);
}

#[tokio::test]
async fn a_document_that_may_not_be_fetched_leaves_the_request_as_it_is() {
    let (port, n_read, _served) = elsewhere().await;
    let guarded = "[aitp]\nfetch_forms = true\n[outbound]\nhttp = true\n";
    let allowed = format!("{guarded}allow = [\"127.0.0.1:{port}\"]\n");
    for (config, path) in [
        ("", "form.json"),
        (guarded, "form.json"),
        (allowed.as_str(), "page"),
        (allowed.as_str(), "long"),
        (allowed.as_str(), "none"),
    ] {
        let meeting = asking(config, &format!("http://127.0.0.1:{port}/{path}")).await;
        let asked = meeting.request("data:address").await;
        assert_eq!(asked["state"], "open", "{path}");
        assert_eq!(asked["answerSchema"]["required"], json!([]));
        assert_eq!(
            answered(&meeting, json!({"city": "Bonn"})).await,
            200,
            "{path}"
        );
    }
    assert_eq!(n_read.load(Ordering::Relaxed), 0);
}
