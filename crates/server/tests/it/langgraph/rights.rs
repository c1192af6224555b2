//! Who may have which threads and runs.

use super::{CONFIG, has, last, says};
use crate::harness::{Server, two_tenants};
use crate::tenants::all_guarded_routes;
use axum::body::Body;
use http::header;
use loomline_server::auth::hash_text;
use serde_json::{Value, json};

fn routes() -> Vec<(String, String)> {
    let mut routes = all_guarded_routes();
    routes.retain(|(_, path)| has(path));
    assert!(routes.len() >= 40, "{routes:?}");
    routes
}

/// A path with a thread, a run and an agent in it.
fn filled(path: &str, thread: &str, run: &str) -> String {
    let run = if path.starts_with("/runs") {
        format!("{}{}", thread.replace('-', ""), run.replace('-', ""))
    } else {
        run.to_owned()
    };
    path.replace("{thread_id}", thread)
        .replace("{run_id}", &run)
        .replace("{checkpoint_id}", "c")
        .replace("{assistant_id}", "demo")
        .replace("{agent_id}", "demo")
}

#[tokio::test]
async fn no_route_is_open_without_a_key_and_a_key_may_stand_in_either_header() {
    let server = Server::new(&format!("{CONFIG}{}", two_tenants())).await;
    for (method, path) in routes() {
        let path = filled(&path, "t", "r");
        let answer = server.call(&method, &path, None).await;
        assert_eq!(answer.status, 401, "{method} {path}");
        assert_eq!(answer.json()["code"], "unauthorized", "{}", answer.text);
        assert!(answer.json()["detail"].is_string());
    }
    for (key, status) in [("llk_a", 200), ("llk_x", 401), ("", 401)] {
        let request = server.request("GET", "/info").header("x-api-key", key);
        let answer = server.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, status, "{key}");
    }
    let native = server
        .request("GET", "/api/v1/threads")
        .header("x-api-key", "llk_b");
    assert_eq!(
        server
            .send(native.body(Body::empty()).unwrap())
            .await
            .status,
        200
    );
    assert_eq!(server.get("/ok").await.json(), json!({"ok": true}));
}

#[tokio::test]
async fn the_threads_and_runs_of_another_tenant_are_not_there() {
    let server = Server::new(&format!("{CONFIG}{}", two_tenants())).await;
    let (a, b) = (server.with_key("llk_a"), server.with_key("llk_b"));
    let thread = a.lang_thread().await;
    a.lang_wait(&thread, says("demo", "the password is swordfish"))
        .await;
    let runs = a.get(&format!("/threads/{thread}/runs")).await.json();
    let run = runs[0]["run_id"].as_str().unwrap();
    for (method, path) in routes() {
        let is_named = path.contains("{thread_id}") || path.contains("{run_id}");
        let body = match path.rsplit('/').next().unwrap() {
            "checkpoint" => json!({"checkpoint": {"checkpoint_id": "c"}}),
            "state" => json!({"values": {"messages": ["mine"]}}),
            "search" if path.starts_with("/runs") => json!({"thread_id": thread}),
            "{thread_id}" => json!({"metadata": {"a": 1}}),
            "runs" | "wait" | "stream" => says("demo", "mine"),
            "events" => json!({"channels": ["values"]}),
            "commands" => {
                let answer = json!({"interrupt_id": "c", "response": true});
                json!({"id": 1, "method": "input.respond", "params": answer})
            }
            _ => json!({}),
        };
        let body = (method != "GET" && method != "DELETE").then_some(&body);
        let answer = b.call(&method, &filled(&path, &thread, run), body).await;
        assert!(!answer.text.contains("swordfish"), "{method} {path}");
        if is_named || path == "/runs/search" {
            assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text);
        }
    }
    let found = b
        .post("/threads/search", json!({"ids": [thread]}))
        .await
        .json();
    assert_eq!(found, json!([]));
    // Another tenant's thread of the same id is its own.
    let made = b.post("/threads", json!({"thread_id": thread})).await;
    assert_eq!(made.json()["values"], json!({"messages": []}));
    let kept = a.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(last(&kept["values"]), "You said: the password is swordfish");
}

#[tokio::test]
async fn a_key_for_some_threads_has_these_and_makes_none_whose_key_is_made_up() {
    let (mine, other) = (
        "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061",
        "1190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061",
    );
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    let tenants = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"0190*\"]\n"
    );
    let server = Server::new(&format!("{CONFIG}{tenants}")).await;
    let (all, some) = (server.with_key("llk_all"), server.with_key("llk_some"));
    for id in [mine, other] {
        assert_eq!(
            all.post("/threads", json!({"thread_id": id})).await.status,
            200
        );
    }
    let found = some.post("/threads/search", json!({})).await.json();
    let ids: Vec<&Value> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["thread_id"])
        .collect();
    assert_eq!(ids, [mine]);
    assert_eq!(some.post("/threads/count", json!({})).await.json(), 1);
    assert_eq!(
        last(&some.lang_wait(mine, says("demo", "hi")).await),
        "You said: hi"
    );
    let unseen = some.get(&format!("/threads/{other}")).await;
    assert_eq!(unseen.status, 404, "{}", unseen.text);
    for (path, body) in [
        ("/threads".to_owned(), json!({})),
        (
            "/threads".to_owned(),
            json!({"thread_id": other, "if_exists": "do_nothing"}),
        ),
        (format!("/threads/{mine}/copy"), json!({})),
        ("/runs/wait".to_owned(), says("demo", "hi")),
    ] {
        let refused = some.post(&path, body).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text);
        assert_eq!(refused.json()["code"], "forbidden_thread");
    }
}

#[tokio::test]
async fn a_key_with_one_scope_may_do_what_that_one_is_for_whatever_the_method() {
    let searches = [
        "/agents/search",
        "/assistants/count",
        "/assistants/search",
        "/runs/search",
        "/threads/count",
        "/threads/search",
        "/threads/{thread_id}/history",
        "/threads/{thread_id}/state/checkpoint",
        "/threads/{thread_id}/stream/events",
        "/store/items/search",
        "/store/namespaces",
    ];
    for scope in ["read", "write", "delete"] {
        let hash = hash_text("llk_one");
        let tenants = format!("[tenants.a.keys.one]\nhash = \"{hash}\"\nscopes = [\"{scope}\"]\n");
        let server = Server::new(&format!("{CONFIG}{tenants}")).await;
        let one = server.with_key("llk_one");
        let mut n_searches = 0;
        for (method, path) in routes() {
            let is_search = method == "POST" && searches.contains(&path.as_str());
            n_searches += usize::from(is_search);
            let needed = match method.as_str() {
                "GET" => "read",
                "DELETE" => "delete",
                _ if is_search => "read",
                _ => "write",
            };
            let id = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061";
            let path = filled(&path, id, id);
            let body = json!({});
            let body = (method != "GET" && method != "DELETE").then_some(&body);
            let answer = one.call(&method, &path, body).await;
            let is_refused = answer.status == 403 && answer.json()["code"] == "missing_scope";
            assert_eq!(is_refused, needed != scope, "{scope} {method} {path}");
        }
        assert_eq!(n_searches, searches.len());
    }
}

#[tokio::test]
async fn who_may_only_read_stops_no_run_by_going_away() {
    let (all, one) = (hash_text("llk_all"), hash_text("llk_one"));
    let tenants = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.one]\nhash = \"{one}\"\nscopes = [\"read\"]\n"
    );
    let server = Server::new(&format!("{CONFIG}{tenants}")).await;
    let (all, one) = (server.with_key("llk_all"), server.with_key("llk_one"));
    let thread = all.lang_thread().await;
    all.lang_wait(&thread, says("demo", "hi")).await;
    let runs = all.get(&format!("/threads/{thread}/runs")).await.json();
    let run = runs[0]["run_id"].as_str().unwrap();
    for path in [
        "/threads/{thread_id}/runs/{run_id}/stream",
        "/runs/{run_id}/stream",
    ] {
        let path = filled(path, &thread, run);
        assert_eq!(one.get(&path).await.status, 200, "{path}");
        let refused = one.get(&format!("{path}?cancel_on_disconnect=true")).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text);
        assert_eq!(refused.json()["code"], "missing_scope");
    }
}

#[tokio::test]
async fn a_page_of_another_origin_may_send_the_headers_of_these_clients() {
    let server = Server::new("[server]\ncors_origins = [\"https://a.example\"]\n").await;
    let asked = server
        .request("OPTIONS", "/threads/t")
        .header(header::ORIGIN, "https://a.example")
        .header(header::ACCESS_CONTROL_REQUEST_METHOD, "PATCH")
        .header(header::ACCESS_CONTROL_REQUEST_HEADERS, "x-api-key");
    let answer = server.send(asked.body(Body::empty()).unwrap()).await;
    let allowed = |name| {
        answer
            .headers
            .get(name)
            .unwrap()
            .to_str()
            .unwrap()
            .to_lowercase()
    };
    assert!(allowed(header::ACCESS_CONTROL_ALLOW_METHODS).contains("patch"));
    assert!(allowed(header::ACCESS_CONTROL_ALLOW_HEADERS).contains("x-api-key"));
}

#[tokio::test]
async fn a_key_makes_the_thread_that_it_may_touch_and_not_one_that_is_only_spelled_like_it() {
    let id = "0190A3C4-5B6D-7E8F-9A0B-1C2D3E4F5061";
    let key = |name: &str, threads: &str| {
        let hash = hash_text(&format!("llk_{name}"));
        format!("[tenants.a.keys.{name}]\nhash = \"{hash}\"\nthreads = [\"{threads}\"]\n")
    };
    let keys = format!(
        "{}{}",
        key("spelled", "0190A3C4*"),
        key("kept", "0190a3c4*")
    );
    let server = Server::new(&format!("{CONFIG}{keys}")).await;
    let path = format!("/threads/{id}/runs/wait");
    let mut body = says("demo", "hi");
    body["if_not_exists"] = "create".into();
    let refused = server
        .with_key("llk_spelled")
        .post(&path, body.clone())
        .await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    let made = server.with_key("llk_kept").post(&path, body).await;
    assert_eq!(made.status, 200, "{}", made.text);
}
