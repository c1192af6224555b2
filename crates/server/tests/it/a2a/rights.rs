//! Who may have which tasks.

use super::{CONFIG, says};
use crate::harness::{Server, two_tenants};
use crate::tenants::all_guarded_routes;
use loomline_server::auth::hash_text;
use serde_json::{Value, json};

fn code(answer: &Value) -> &Value {
    &answer["error"]["code"]
}

#[tokio::test]
async fn no_binding_is_open_without_a_key() {
    let server = Server::new(&format!("{CONFIG}{}", two_tenants())).await;
    let mut routes = all_guarded_routes();
    routes.retain(|(_, path)| path.starts_with("/a2a"));
    assert!(routes.len() >= 9, "{routes:?}");
    for (method, path) in routes {
        for path in [path.clone(), path.replacen("/a2a", "/a2a/clerk", 1)] {
            let answer = server.a2a(&method, &path.replace("{id}", "x"), None).await;
            assert_eq!(answer.status, 401, "{method} {path}");
            assert!(answer.json()["error"]["message"].is_string());
        }
    }
}

#[tokio::test]
async fn the_tasks_of_another_tenant_are_not_there() {
    let server = Server::new(&format!("{CONFIG}{}", two_tenants())).await;
    let (a, b) = (server.with_key("llk_a"), server.with_key("llk_b"));
    let secret = json!({"contextId": "c", "parts": [{"text": "the password is swordfish"}]});
    let task = a.task("/a2a", secret).await;
    let id = json!({"id": task["id"]});
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(
            *code(&b.rpc("/a2a", method, id.clone()).await),
            -32001,
            "{method}"
        );
    }
    let more = says(json!({"taskId": task["id"], "parts": [{"text": "more"}]}));
    assert_eq!(*code(&b.rpc("/a2a", "SendMessage", more).await), -32001);
    let listed = b.rpc("/a2a", "ListTasks", json!({"contextId": "c"})).await;
    assert_eq!(listed["result"]["tasks"], json!([]));
    // The same name is another context, and the token of another's page leads nowhere.
    let own = b
        .task(
            "/a2a",
            json!({"contextId": "c", "parts": [{"text": "mine"}]}),
        )
        .await;
    assert!(!own.to_string().contains("swordfish"));
    a.task(
        "/a2a",
        json!({"contextId": "c", "messageId": "m2", "parts": [{"text": "x"}]}),
    )
    .await;
    let page = a.rpc("/a2a", "ListTasks", json!({"pageSize": 1})).await;
    let token = &page["result"]["nextPageToken"];
    assert_ne!(token, "");
    let listed = b
        .rpc("/a2a", "ListTasks", json!({"pageToken": token}))
        .await;
    assert!(!listed.to_string().contains("swordfish"), "{listed}");
}

#[tokio::test]
async fn a_key_for_some_threads_has_the_tasks_of_these() {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    let tenants = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"mine-*\"]\n"
    );
    let server = Server::new(&format!("{CONFIG}{tenants}")).await;
    let (all, some) = (server.with_key("llk_all"), server.with_key("llk_some"));
    let other = all
        .task(
            "/a2a",
            json!({"contextId": "other", "parts": [{"text": "hi"}]}),
        )
        .await;
    let mine = some
        .task(
            "/a2a",
            json!({"contextId": "mine-1", "parts": [{"text": "hi"}]}),
        )
        .await;
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        let answer = some.rpc("/a2a", method, json!({"id": other["id"]})).await;
        assert_eq!(*code(&answer), -32001, "{method}");
    }
    let listed = some.rpc("/a2a", "ListTasks", json!({})).await;
    let listed = listed["result"]["tasks"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["id"], mine["id"]);
    let listed = some
        .rpc("/a2a", "ListTasks", json!({"contextId": "other"}))
        .await;
    assert_eq!(listed["result"]["tasks"], json!([]));
    // Neither a thread of another name, nor one whose name the server makes up, which it could not read.
    for message in [
        json!({"contextId": "other", "parts": [{"text": "x"}]}),
        json!("x"),
    ] {
        let answer = some.rpc("/a2a", "SendMessage", says(message)).await;
        assert_eq!(
            answer["error"]["data"][0]["reason"], "FORBIDDEN_THREAD",
            "{answer}"
        );
    }
    let messages = all.get("/api/v1/threads/other/messages").await.json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
}

/// A tenant whose key `llk_all` may do everything, and `llk_one` only this.
fn scoped(scope: &str) -> String {
    let (all, one) = (hash_text("llk_all"), hash_text("llk_one"));
    format!(
        "{CONFIG}[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.one]\nhash = \"{one}\"\nscopes = [\"{scope}\"]\n"
    )
}

#[tokio::test]
async fn a_call_needs_the_scope_of_what_it_does_and_not_of_its_method() {
    for scope in ["read", "write", "delete"] {
        let server = Server::new(&scoped(scope)).await;
        let (all, one) = (server.with_key("llk_all"), server.with_key("llk_one"));
        let task = all.task("/a2a", json!("hi")).await;
        let id = json!({"id": task["id"]});
        for (method, params, needed) in [
            ("GetTask", id.clone(), "read"),
            ("ListTasks", json!({}), "read"),
            ("SubscribeToTask", id.clone(), "read"),
            ("GetExtendedAgentCard", json!({}), "read"),
            ("CancelTask", id.clone(), "write"),
            ("SendMessage", says(json!("one more")), "write"),
            ("SendStreamingMessage", says(json!("one more")), "write"),
            ("CreateTaskPushNotificationConfig", json!({}), "write"),
        ] {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            for path in ["/a2a", "/a2a/clerk"] {
                let answer = one.a2a("POST", path, Some(&call)).await;
                assert_eq!(answer.status, 200, "{scope} {method}");
                let is_refused = answer.text.contains("MISSING_SCOPE");
                assert_eq!(
                    is_refused,
                    needed != scope,
                    "{scope} {method}: {}",
                    answer.text
                );
                if is_refused {
                    let info = answer.json()["error"]["data"][0].clone();
                    assert_eq!(info["metadata"]["scope"], needed, "{info}");
                }
            }
        }
        let tasks = all.rpc("/a2a", "ListTasks", json!({})).await["result"]["tasks"].clone();
        let n_tasks = if scope == "write" { 5 } else { 1 };
        assert_eq!(
            tasks.as_array().unwrap().len(),
            n_tasks,
            "what is refused changes nothing"
        );
    }
}

#[tokio::test]
async fn a_path_needs_the_scope_of_what_stands_behind_its_colon() {
    for scope in ["read", "write"] {
        let server = Server::new(&scoped(scope)).await;
        let (all, one) = (server.with_key("llk_all"), server.with_key("llk_one"));
        let task = all.task("/a2a", json!("hi")).await;
        let path = format!("/a2a/v1/tasks/{}", task["id"].as_str().unwrap());
        let said = says(json!("one more"));
        for (method, path, body, needed) in [
            ("GET", path.clone(), None, "read"),
            ("GET", format!("{path}:subscribe"), None, "read"),
            ("POST", format!("{path}:subscribe"), None, "read"),
            ("POST", format!("{path}:cancel"), None, "write"),
            (
                "POST",
                "/a2a/v1/message:send".to_owned(),
                Some(&said),
                "write",
            ),
        ] {
            for path in [path.clone(), path.replacen("/a2a", "/a2a/clerk", 1)] {
                let answer = one.a2a(method, &path, body).await;
                let is_refused = answer.status == 403;
                assert_eq!(is_refused, needed != scope, "{scope} {method} {path}");
                if is_refused {
                    let info = answer.json()["error"]["details"][0].clone();
                    assert_eq!(info["reason"], "MISSING_SCOPE");
                    assert_eq!(info["metadata"]["scope"], needed);
                }
            }
        }
    }
}
