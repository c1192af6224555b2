//! Runs of the Agent Protocol, whose paths name no thread.

use super::CONFIG;
use crate::harness::Server;
use interop::langgraph::uuid_of;
use serde_json::{Value, json};

fn asks(thread: Option<&str>) -> Value {
    let messages = json!([{"role": "user", "content": "Good morning"}]);
    json!({"agent_id": "demo", "thread_id": thread, "messages": messages})
}

#[tokio::test]
async fn a_run_has_a_uuid_and_is_found_by_it() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    for thread in [Some(thread.as_str()), None] {
        let begun = server.post("/runs", asks(thread)).await.json();
        let id = begun["run_id"].as_str().unwrap();
        assert_eq!(uuid_of(id).as_deref(), Some(id));
        let waited = server.get(&format!("/runs/{id}/wait")).await.json();
        assert_eq!(waited["run"]["run_id"], id);
        assert_eq!(waited["run"]["status"], "success");
        let found = server.get(&format!("/runs/{id}")).await;
        assert_eq!(found.json(), waited["run"], "{}", found.text);
        // As earlier versions wrote it.
        let own = begun["thread_id"].as_str().unwrap();
        let older = format!("{own}{id}").replace('-', "");
        let found = server.get(&format!("/runs/{older}")).await;
        assert_eq!(found.json(), waited["run"], "{}", found.text);
    }
}

#[tokio::test]
async fn a_search_gives_ids_by_which_runs_are_found() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    server.lang_wait(&thread, super::says("demo", "hi")).await;
    let search = json!({ "thread_id": thread });
    let runs = server.post("/runs/search", search).await.json();
    let id = runs[0]["run_id"].as_str().unwrap();
    let found = server.get(&format!("/runs/{id}")).await;
    assert_eq!(found.json(), runs[0], "{}", found.text);
}

#[tokio::test]
async fn an_unknown_run_is_not_found() {
    let server = Server::new(CONFIG).await;
    for id in [
        "x",
        "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061",
        "0190a3c45b6d7e8f9a0b1c2d3e4f50610190a3c45b6d7e8f9a0b1c2d3e4f5062",
    ] {
        for (method, path) in [
            ("GET", ""),
            ("GET", "/wait"),
            ("GET", "/stream"),
            ("POST", "/cancel"),
            ("DELETE", ""),
        ] {
            let path = format!("/runs/{id}{path}");
            let answer = server.call(method, &path, None).await;
            assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text);
            assert_eq!(answer.json()["code"], "not_found", "{}", answer.text);
        }
    }
}

#[tokio::test]
async fn an_assistant_id_in_camel_case_names_the_agent() {
    let server = Server::new(CONFIG).await;
    let mut body = asks(None);
    body["assistantId"] = "clerk".into();
    body.as_object_mut().unwrap().remove("agent_id");
    let waited = server.post("/runs/wait", body.clone()).await;
    assert_eq!(waited.status, 200, "{}", waited.text);
    assert_eq!(waited.json()["run"]["agent_id"], "clerk");
    body["assistantId"] = "nobody".into();
    assert_eq!(server.post("/runs/wait", body).await.status, 404);
}
