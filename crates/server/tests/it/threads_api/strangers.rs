//! Other tenants, and keys for some threads only.

use super::{Client, refused};
use crate::harness::{Answer, Server, two_tenants};
use crate::tenants::all_guarded_routes;
use axum::body::Body;
use http::header;
use loomline_server::auth::hash_text;
use serde_json::{Value, json};

/// The routes of this API that name something.
fn routes() -> Vec<(String, String)> {
    let mut routes = all_guarded_routes();
    let of_api = ["/v1/thread", "/v1/assistants", "/v1/files"];
    routes.retain(|(_, path)| of_api.iter().any(|of| path.starts_with(of)));
    assert!(routes.len() >= 26, "{routes:?}");
    routes
}

struct Names {
    thread: String,
    message: String,
    run: String,
    step: String,
    assistant: String,
    file: String,
}

impl Names {
    async fn ask(&self, client: &Server, method: &str, path: &str) -> Answer {
        let filled = path
            .replace("{thread_id}", &self.thread)
            .replace("{message_id}", &self.message)
            .replace("{run_id}", &self.run)
            .replace("{step_id}", &self.step)
            .replace("{assistant_id}", &self.assistant)
            .replace("{file_id}", &self.file);
        let body = match path.rsplit('/').next() {
            Some("messages") => json!({"role": "user", "content": "mine"}),
            Some("runs") => json!({"assistant_id": "demo"}),
            Some("submit_tool_outputs") => json!({"tool_outputs": []}),
            Some("assistants") => json!({"model": "scripted"}),
            _ => json!({"metadata": {"mine": "1"}}),
        };
        let body = if method == "POST" {
            body.to_string()
        } else {
            String::new()
        };
        let request = client
            .request(method, &filled)
            .header(header::CONTENT_TYPE, "application/json");
        client.send(request.body(Body::from(body)).unwrap()).await
    }
}

/// A thread of somebody with a run, and an assistant.
async fn secrets(owner: &Client) -> Names {
    let body = json!({"model": "scripted", "instructions": "swordfish"});
    let assistant = owner.post("/assistants", body, "AssistantObject").await;
    let file = super::files::upload(
        owner,
        &[("purpose", "assistants")],
        "secret.txt",
        b"swordfish",
    );
    let file = file.await.json();
    let thread = owner.thread(&["the password is swordfish"]).await;
    let run = owner.ran(&thread, json!({})).await;
    let run = run["id"].as_str().unwrap().to_owned();
    let steps = format!("/threads/{thread}/runs/{run}/steps");
    let (steps, _) = owner.ids(&steps, "ListRunStepsResponse").await;
    let messages = format!("/threads/{thread}/messages");
    let (messages, _) = owner.ids(&messages, "ListMessagesResponse").await;
    Names {
        thread,
        message: messages[1].clone(),
        run,
        step: steps[0].clone(),
        assistant: assistant["id"].as_str().unwrap().to_owned(),
        file: file["id"].as_str().unwrap().to_owned(),
    }
}

async fn seen(owner: &Client, names: &Names) -> (Vec<(String, String)>, Value, String) {
    let assistant = format!("/assistants/{}", names.assistant);
    let assistant = owner.get(&assistant, "AssistantObject").await;
    let file = format!("/v1/files/{}/content", names.file);
    let file = owner.0.get(&file).await.text;
    (owner.said(&names.thread).await, assistant, file)
}

#[tokio::test]
async fn no_route_shows_or_changes_what_another_tenant_has() {
    let server = Server::new(&two_tenants()).await;
    let owner = Client(server.with_key("llk_a"));
    let names = secrets(&owner).await;
    let before = seen(&owner, &names).await;
    let stranger = server.with_key("llk_b");
    for (method, path) in routes() {
        let answer = names.ask(&stranger, &method, &path).await;
        assert!(!answer.text.contains("swordfish"), "{method} {path}");
        if path.contains("{thread_id}") {
            let message = format!("No thread found with id '{}'.", names.thread);
            assert_eq!(refused(&answer), (404, message, None), "{method} {path}");
        } else if path.contains("{assistant_id}") || path.contains("{file_id}") {
            assert_eq!(refused(&answer).0, 404, "{method} {path}");
        }
    }
    assert_eq!(seen(&owner, &names).await, before);
}

#[tokio::test]
async fn a_key_for_some_threads_finds_nothing_else_and_makes_none() {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    let config = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"support-*\"]\n"
    );
    let server = Server::new(&config).await;
    let owner = Client(server.with_key("llk_all"));
    let some = Client(server.with_key("llk_some"));
    let names = secrets(&owner).await;
    let before = seen(&owner, &names).await;
    for (method, path) in routes() {
        let answer = names.ask(&some.0, &method, &path).await;
        assert!(!answer.text.contains("swordfish"), "{method} {path}");
        let expected = match (method.as_str(), path.as_str()) {
            // The configured agents are everybody's.
            ("GET", "/v1/assistants") => 200,
            ("GET", "/v1/assistants/{assistant_id}") => 404,
            (_, path) if path.contains("{thread_id}") => 404,
            _ => 403,
        };
        assert_eq!(answer.status, expected, "{method} {path}");
    }
    assert_eq!(seen(&owner, &names).await, before);
    // It works on those it is for, by their keys and by their ids.
    owner.0.say("support-7", "hello").await;
    let thread = some.get("/threads/support-7", "ThreadObject").await;
    let thread = thread["id"].as_str().unwrap();
    let run = some.begin(thread, json!({})).await;
    some.0.at_rest("support-7").await;
    assert_eq!(some.run(thread, &run).await["status"], "completed");
    // What belongs to no thread can't be drawn into one either.
    let shows =
        json!({"role": "user", "content": "look", "attachments": [{"file_id": names.file}]});
    let path = format!("/threads/{thread}/messages");
    assert_eq!(refused(&some.ask(&path, shows).await).0, 404);
    let asks = json!({"assistant_id": names.assistant});
    let path = format!("/threads/{thread}/runs");
    assert_eq!(refused(&some.ask(&path, asks).await).0, 404);
}

#[tokio::test]
async fn every_route_is_closed_without_a_key() {
    let server = Server::new(&two_tenants()).await;
    let names = Names {
        thread: "t".into(),
        message: "m".into(),
        run: "r".into(),
        step: "s".into(),
        assistant: "a".into(),
        file: "f".into(),
    };
    for (method, path) in routes() {
        let answer = names.ask(&server, &method, &path).await;
        assert_eq!(refused(&answer).0, 401, "{method} {path}");
    }
}
