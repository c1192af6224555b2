//! No request crosses from one tenant to another (EK-13).

use crate::harness::{Answer, Server, two_tenants};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

/// Every route of the server's own dialect that needs a key, so that none is forgotten.
pub(crate) fn guarded_routes() -> Vec<(String, String)> {
    let mut routes = all_guarded_routes();
    routes.retain(|(_, path)| {
        let others = ["/v1/", "/a2a", "/mcp"]
            .iter()
            .any(|first| path.starts_with(first));
        !others && !crate::langgraph::has(path)
    });
    routes
}

/// Every route that needs a key, from the generated document.
pub(crate) fn all_guarded_routes() -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(&loomline_server::openapi().unwrap()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let routes = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods
            .filter(|(_, route)| route.get("security").is_some())
            .map(|(method, _)| (method.to_uppercase(), path.clone()))
    });
    routes.collect()
}

fn body_of(method: &str, path: &str) -> Option<Value> {
    match (method, path.rsplit('/').next()) {
        ("POST", Some("messages" | "replace")) => Some(json!({ "content": "mine" })),
        ("POST", Some("compactions")) => Some(json!({ "summary": "mine", "keepRuns": 0 })),
        ("POST", Some("chat")) => Some(json!({
            "id": "secret", "trigger": "submit-message",
            "messages": [{ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "mine" }] }]
        })),
        ("POST", Some("answers")) => Some(json!({
            "answers": [{ "toolCallId": "c", "approved": true }]
        })),
        ("POST", Some("ag-ui" | "{agent}")) => Some(json!({
            "threadId": "secret", "runId": "r1", "state": {}, "tools": [], "context": [], "forwardedProps": {},
            "messages": [{ "id": "m1", "role": "user", "content": "mine" }]
        })),
        ("POST", Some("import")) => Some(json!([])),
        ("PUT", Some("{id}")) => Some(json!({ "value": "mine" })),
        ("POST", Some("actors")) => Some(json!({ "actor": { "id": "me" } })),
        ("PATCH", Some("{actor}")) => Some(json!({ "capabilities": [] })),
        ("POST", Some("answer")) => Some(json!({ "value": {} })),
        ("POST", Some("threads")) => Some(json!({ "key": "secret" })),
        ("POST", Some("tokens")) => Some(json!({ "threadPrefix": "secret", "agent": "demo" })),
        ("POST", Some("lease")) => Some(json!({})),
        ("POST", Some("heartbeat")) => Some(json!({ "lease": "guessed" })),
        ("POST", Some("deltas")) => Some(json!({ "lease": "guessed", "seq": 0, "deltas": [] })),
        ("POST", Some("complete")) => Some(json!({
            "lease": "guessed", "answer": { "assistantEvent": { "type": "message", "content": [] } }
        })),
        ("POST", Some("fail")) => Some(json!({ "lease": "guessed", "message": "mine" })),
        ("PATCH", Some("{key}")) => Some(json!({ "title": "mine" })),
        _ => None,
    }
}

pub(crate) async fn ask(client: &Server, method: &str, path: &str, execution: &str) -> Answer {
    let filled = path
        .replace("{key}", "secret")
        .replace("{id}", "secret")
        .replace("{executionId}", execution)
        .replace("{actor}", "me")
        .replace("{request}", "decision:seat")
        .replace("{agent}", "demo")
        .replace("{index}", "0")
        .replace("{kind}", "note")
        .replace("{step}", "secret");
    let query = match path {
        "/api/v1/import" => "?from=pydantic-ai&key=secret",
        "/api/v1/threads/{key}/import" => "?from=pydantic-ai",
        "/api/v1/threads/{key}/diff" => "?with=secret",
        _ => "",
    };
    let request = client
        .request(method, &format!("{filled}{query}"))
        .header(header::CONTENT_TYPE, "application/json");
    let body = body_of(method, path).map_or_else(Body::empty, |body| Body::from(body.to_string()));
    client.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn every_route_is_closed_without_a_key() {
    let server = Server::new(&two_tenants()).await;
    let routes = guarded_routes();
    assert!(routes.len() >= 22, "{routes:?}");
    for (method, path) in routes {
        for key in [None, Some("llk_c"), Some(""), Some("llk_a llk_b")] {
            let client = Server {
                key,
                ..server.with_key("")
            };
            let answer = ask(&client, &method, &path, "x").await;
            assert_eq!(
                answer.error(),
                (401, "unauthorized".into(), None),
                "{method} {path}"
            );
        }
    }
}

#[tokio::test]
async fn no_route_shows_or_changes_another_tenants_thread() {
    let server = Server::new(&two_tenants()).await;
    let owner = server.with_key("llk_a");
    owner.say("secret", "the password is swordfish").await;
    let begun = owner.begin("secret", "slow 50ms say 200 words").await;
    let execution = begun["executionId"].as_str().unwrap();
    let thread_id = begun["threadId"].as_str().unwrap();
    for (method, path) in guarded_routes() {
        if path == "/api/v1/events" {
            // A stream without an end: `waiting` has its claim.
            continue;
        }
        // Another stranger each time, so that none finds what the one before has made.
        let stranger = server.with_key("llk_b");
        let answer = ask(&stranger, &method, &path, execution).await;
        let makes_its_own = matches!(
            (method.as_str(), path.as_str()),
            (
                "POST",
                "/api/v1/threads"
                    | "/api/v1/threads/{key}/messages"
                    | "/api/v1/import"
                    | "/api/chat"
                    | "/ag-ui"
                    | "/ag-ui/agents/{agent}"
            )
        );
        let lists = matches!(
            path.as_str(),
            "/api/v1/threads"
                | "/api/v1/waiting"
                | "/api/v1/agents"
                | "/api/v1/health"
                | "/metrics"
        );
        if path == "/api/chat/{id}/stream" {
            assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
        } else if makes_its_own {
            assert!(
                answer.status.is_success(),
                "{method} {path}: {}",
                answer.text
            );
            stranger
                .post_text("/api/v1/threads/secret/cancel", "")
                .await;
            assert_eq!(stranger.delete("/api/v1/threads/secret").await.status, 204);
        } else if path == "/api/v1/web/tokens" {
            assert_eq!(answer.error(), (404, "route_not_found".into(), None));
        } else if path == "/api/v1/steps/lease" {
            assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
        } else if path.starts_with("/api/v1/steps/") {
            assert_eq!(answer.error(), (409, "lease_ended".into(), None));
        } else if lists {
            assert_eq!(answer.status, 200, "{method} {path}");
        } else {
            assert_eq!(
                answer.error(),
                (404, "thread_not_found".into(), None),
                "{method} {path}"
            );
        }
        for told in ["swordfish", execution, thread_id] {
            assert!(!answer.text.contains(told), "{method} {path} tells {told}");
        }
    }
    // The thread's own id is no key either, and the owner's run was not touched.
    let by_id = server
        .with_key("llk_b")
        .get(&format!("/api/v1/threads/{thread_id}"))
        .await;
    assert_eq!(by_id.error().0, 404);
    let run = owner
        .get(&format!("/api/v1/threads/secret/runs/{execution}"))
        .await
        .json();
    assert_eq!(run["status"], "executing");
    let messages = owner.get("/api/v1/threads/secret/messages").await.json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 4);
    assert_eq!(
        owner.get("/api/v1/threads").await.json()["threads"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn the_same_key_is_another_thread_for_another_tenant() {
    let server = Server::new(&two_tenants()).await;
    let (a, b) = (server.with_key("llk_a"), server.with_key("llk_b"));
    a.say("t", "from a").await;
    b.say("t", "from b").await;
    assert!(
        a.get("/api/v1/threads/t/messages")
            .await
            .text
            .contains("from a")
    );
    assert!(
        !a.get("/api/v1/threads/t/messages")
            .await
            .text
            .contains("from b")
    );
    assert_eq!(b.delete("/api/v1/threads/t").await.status, 204);
    assert_eq!(a.get("/api/v1/threads/t").await.status, 200);
}
