//! Imports: who may be said to speak in them.

use super::with_rights;
use crate::harness::{Answer, Server};
use serde_json::json;

const ONLY_ADA: &str = "actors = [\"ada\"]";

/// Imports a document as a thread of this key.
async fn import(client: &Server, key: &str, document: &str) -> Answer {
    let path = format!("/api/v1/import?from=threadprotocol&key={key}");
    client.post_text(&path, document.to_owned()).await
}

/// The document of a thread on which these actors have each said something.
async fn document(client: &Server, key: &str, actors: &[&str]) -> String {
    let path = format!("/api/v1/threads/{key}/messages");
    for actor in actors {
        let body = json!({"content": "hello", "metadata": {"actor": actor}});
        let said = client.post(&path, body).await;
        assert_eq!(said.status, 202, "{}", said.text);
        client.at_rest(key).await;
    }
    let document = client.get(&format!("/api/v1/threads/{key}/document")).await;
    // What a message names as its actor is given out as a note, and read as one unless it is written so.
    assert!(document.text.contains("app:actor"), "{}", document.text);
    document.text.replace("app:actor", "actor")
}

fn forbidden(pointer: &str) -> (u16, String, Option<String>) {
    let pointer = Some(pointer.to_owned());
    (403, "forbidden_actor".to_owned(), pointer)
}

#[tokio::test]
async fn an_import_speaks_as_nobody_whom_its_key_may_not_speak_as() {
    let (all, some) = with_rights(ONLY_ADA).await;
    let both = document(&all, "both", &["ada", "bob"]).await;
    let refused = import(&some, "copy", &both).await;
    let (status, code, pointer) = refused.error();
    assert_eq!((status, code.as_str()), (403, "forbidden_actor"));
    let pointer = pointer.unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&both).unwrap();
    assert_eq!(parsed.pointer(&pointer), Some(&json!("bob")), "{pointer}");
    assert_eq!(all.get("/api/v1/threads/copy").await.status, 404);
    let ada = document(&all, "ada", &["ada", "ada"]).await;
    assert_eq!(import(&some, "copy", &ada).await.status, 201);
    assert_eq!(import(&all, "other", &both).await.status, 201);
}

#[tokio::test]
async fn an_import_has_nobody_join_whom_its_key_may_not_speak_as() {
    let (all, some) = with_rights(ONLY_ADA).await;
    all.say("t", "hello").await;
    let body = json!({"actor": {"id": "shop", "capabilities": []}});
    assert_eq!(all.post("/api/v1/threads/t/actors", body).await.status, 201);
    let joined = all.get("/api/v1/threads/t/document").await.text;
    let refused = import(&some, "copy", &joined).await.error();
    let turns: serde_json::Value = serde_json::from_str(&joined).unwrap();
    let n_last = turns["turns"].as_array().unwrap().len() - 1;
    let pointer = format!("/turns/{n_last}/messages/0/event_data/actor/id");
    assert_eq!(refused, forbidden(&pointer));
    assert_eq!(all.get("/api/v1/threads/copy").await.status, 404);
    // What is imported binds nobody, not even to the key that imports it.
    assert_eq!(import(&all, "copy", &joined).await.status, 201);
    let actors = all.get("/api/v1/threads/copy/actors").await.json();
    assert_eq!(actors["actors"][0]["isBound"], false, "{actors}");
}

#[tokio::test]
async fn an_import_without_actors_needs_none() {
    let (all, some) = with_rights(ONLY_ADA).await;
    all.say("t", "hello").await;
    let plain = all.get("/api/v1/threads/t/document").await.text;
    assert_eq!(import(&some, "copy", &plain).await.status, 201);
}
