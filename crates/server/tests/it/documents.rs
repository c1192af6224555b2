//! Threads as files: taken in, given out, the same after a restart.

use crate::harness::Server;
use serde_json::json;

const HISTORY: &str = r#"[
  {"kind":"request","parts":[{"part_kind":"user-prompt","content":"What is 2 + 2?","timestamp":"2026-01-05T08:00:00Z"}]},
  {"kind":"response","parts":[{"part_kind":"tool-call","tool_name":"add","args":{"a":2,"b":2},"tool_call_id":"c1"}],
   "model_name":"m","timestamp":"2026-01-05T08:00:01Z","usage":{"input_tokens":5,"output_tokens":3}},
  {"kind":"request","parts":[{"part_kind":"tool-return","tool_name":"add","content":4,"tool_call_id":"c1","timestamp":"2026-01-05T08:00:02Z"}]},
  {"kind":"response","parts":[{"part_kind":"text","content":"It is 4."}],"model_name":"m","timestamp":"2026-01-05T08:00:03Z"}
]"#;

#[tokio::test]
async fn an_imported_history_is_the_same_document_after_the_store_is_opened_again() {
    let first = Server::new("").await;
    let imported = first
        .post_text("/api/v1/import?from=pydantic-ai&key=h", HISTORY)
        .await;
    assert_eq!(imported.status, 201, "{}", imported.text);
    assert_eq!(imported.json()["thread"]["key"], "h");
    assert!(imported.json()["losses"].is_array());
    let before = first.get("/api/v1/threads/h/document").await;
    let hash = before.headers["loomline-content-hash"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(hash.starts_with("sha256:") && hash.len() == 71);
    assert_eq!(before.json()["version"], "0.0.4");
    first.app.shutdown().await.unwrap();
    let Server {
        app,
        router,
        directory,
        ..
    } = first;
    drop((app, router));
    let second = Server::at(directory, "").await;
    let after = second.get("/api/v1/threads/h/document").await;
    assert_eq!(
        (
            after.headers["loomline-content-hash"].to_str().unwrap(),
            after.text
        ),
        (hash.as_str(), before.text)
    );
}

#[tokio::test]
async fn a_document_that_was_given_out_is_taken_in_again() {
    let server = Server::new("").await;
    server.say("t", "use compute 1 + 2").await;
    let document = server.get("/api/v1/threads/t/document").await;
    let imported = server
        .post_text(
            "/api/v1/import?from=threadprotocol&key=u",
            document.text.clone(),
        )
        .await;
    assert_eq!(imported.status, 201, "{}", imported.text);
    let again = server.get("/api/v1/threads/u/document").await.json();
    assert_eq!(again["turns"], document.json()["turns"]);
}

#[tokio::test]
async fn what_is_said_after_an_import_is_given_out_whatever_the_document_had_in_its_place() {
    let server = Server::new("").await;
    for (key, document) in [
        ("none", r#"{"version":"0.0.4","agents":[],"x":1}"#),
        ("other", r#"{"turns":5,"version":"0.0.4","agents":[]}"#),
    ] {
        let path = format!("/api/v1/import?from=threadprotocol&key={key}");
        let imported = server.post_text(&path, document).await;
        assert_eq!(imported.status, 201, "{}", imported.text);
        let path = format!("/api/v1/threads/{key}/document");
        assert_eq!(server.get(&path).await.text.trim(), document);
        server.say(key, "hi").await;
        let grown = server.get(&path).await.json();
        let said = grown["turns"].as_array().map(Vec::len);
        assert_eq!(said, Some(2), "{grown:#}");
        assert!(grown["agents"].is_object() && grown["thread_id"].is_string());
    }
}

#[tokio::test]
async fn an_imported_conversation_goes_on() {
    let server = Server::new("").await;
    server
        .post_text("/api/v1/import?from=pydantic-ai&key=h", HISTORY)
        .await;
    server.say("h", "and more").await;
    let messages = server.get("/api/v1/threads/h/messages").await.json();
    let roles: Vec<_> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(
        json!(roles),
        json!(["user", "assistant", "user", "assistant"])
    );
}
