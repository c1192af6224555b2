//! The threads around a thread, comparisons of documents, the bytes of files, and the process's health.

use crate::harness::{Server, TEAM, two_tenants};
use http_body_util::BodyExt;
use loomline_server::auth::hash_text;
use serde_json::{Value, json};
use tower::ServiceExt;

async fn tree(server: &Server, key: &str, query: &str) -> Value {
    let path = format!("/api/v1/threads/{}/tree{query}", key.replace('/', "%2F"));
    server.get(&path).await.json()
}

/// The keys of a tree's threads, each with its parent's.
fn keys(tree: &Value) -> Vec<(&str, Option<&str>)> {
    let threads = tree["threads"].as_array().unwrap().iter();
    threads
        .map(|it| (it["key"].as_str().unwrap(), it["parent"].as_str()))
        .collect()
}

async fn fork(server: &Server, from: &str, key: &str) {
    let path = format!("/api/v1/threads/{from}/fork");
    let made = server.post(&path, json!({"key": key})).await;
    assert_eq!(made.status, 201, "{}", made.text);
}

#[tokio::test]
async fn a_tree_has_the_path_the_forks_and_the_sub_agents() {
    let server = Server::new(TEAM).await;
    server.say("t", r#"use find {"query": "hello"}"#).await;
    server.at_rest("t").await;
    fork(&server, "t", "a").await;
    fork(&server, "a", "b").await;
    fork(&server, "t", "c").await;
    let whole = tree(&server, "a", "").await;
    let found = keys(&whole);
    assert_eq!(
        found[..3],
        [("t", None), ("a", Some("t")), ("b", Some("a"))]
    );
    assert_eq!(found[3], ("c", Some("t")));
    let (child, parent) = found[4];
    assert!(child.starts_with("t/"), "{whole}");
    assert_eq!(parent, Some("t"));
    assert_eq!(whole["more"], false);
    let threads = whole["threads"].as_array().unwrap();
    assert_eq!(
        (&threads[1]["current"], &threads[0]["current"]),
        (&json!(true), &json!(false))
    );
    assert!(threads[1]["forkedAt"].is_u64());
    assert!(threads[4]["toolCallId"].is_string() && threads[4]["status"] == "open");
    let part = tree(&server, "a", "?limit=2").await;
    assert_eq!(keys(&part), [("t", None), ("a", Some("t"))]);
    assert_eq!(part["more"], true);
    let below = tree(&server, child, "").await;
    assert_eq!(keys(&below)[..2], [("t", None), (child, Some("t"))]);
}

#[tokio::test]
async fn a_restricted_key_sees_no_other_threads_in_a_tree() {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    let config = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"mine\", \"mine-*\"]\n"
    );
    let server = Server::new(&config).await.with_key("llk_all");
    server.say("secret", "hello").await;
    fork(&server, "secret", "mine").await;
    fork(&server, "mine", "mine-2").await;
    fork(&server, "mine", "other").await;
    let some = server.with_key("llk_some");
    let seen = tree(&some, "mine", "").await;
    assert_eq!(keys(&seen), [("mine", None), ("mine-2", Some("mine"))]);
    let refused = some.get("/api/v1/threads/mine/diff?with=secret").await;
    assert_eq!(refused.error().1, "forbidden_thread");
    let refused = some.get("/api/v1/health").await;
    assert_eq!(refused.error().0, 403);
}

#[tokio::test]
async fn a_diff_tells_what_only_one_of_two_threads_has() {
    let server = Server::new("").await;
    server.say("t", "one").await;
    fork(&server, "t", "f").await;
    let changes = async |with: &str| {
        let path = format!("/api/v1/threads/t/diff?with={with}");
        server.get(&path).await.json()["changes"].clone()
    };
    assert_eq!(changes("t").await, json!([]));
    server.say("f", "two").await;
    let found = changes("f").await;
    let added = found.as_array().unwrap().iter();
    let added = added.filter(|it| it["level"] == "turn" && it["kind"] == "added");
    assert_eq!(added.count(), 2, "{found}");
    let none = server.get("/api/v1/threads/t/diff?with=none").await;
    assert_eq!(none.error().1, "thread_not_found");
}

#[tokio::test]
async fn a_checked_document_has_a_verdict_and_its_losses() {
    let server = Server::new("").await;
    server.say("t", "use compute 6 * 7").await;
    let path = "/api/v1/threads/t/document";
    let usual = server.get(path).await;
    let strict = server.get(&format!("{path}?check=strict")).await.json();
    assert_eq!(strict["verdict"], "valid", "{strict}");
    assert_eq!(strict["document"], usual.json());
    assert_eq!(
        strict["hash"],
        usual.headers["loomline-content-hash"].to_str().unwrap()
    );
    assert_eq!(strict["losses"], json!([]));
    let old = server.get(&format!("{path}?version=2.0.0")).await.json();
    assert_eq!(old["version"], "2.0.0");
    assert_eq!(old.get("verdict"), None);
    assert!(!old["losses"].as_array().unwrap().is_empty(), "{old}");
    for query in [
        "version=9.9.9",
        "version=1.0.0",
        "check=strict&format=archive",
        "check=odd",
    ] {
        let refused = server.get(&format!("{path}?{query}")).await;
        assert_eq!(refused.error().1, "invalid_query", "{query}");
    }
}

#[tokio::test]
async fn the_bytes_of_a_part_are_downloaded_and_never_run() {
    let server = Server::new("").await;
    let content = json!([
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/svg+xml;base64,PHN2Zy8+"},
        {"type": "input_file", "file_data": "aGk=", "media_type": "text/html"},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
    ]);
    let body = json!({"content": content});
    let said = server.post("/api/v1/threads/t/messages", body).await;
    assert_eq!(said.status, 202, "{}", said.text);
    let id = said.json()["itemId"].as_str().unwrap().to_owned();
    let path = |index: usize| format!("/api/v1/threads/t/messages/{id}/parts/{index}/content");
    for (index, kind, bytes) in [(1, "image/svg+xml", "<svg/>"), (2, "text/html", "hi")] {
        let request = server
            .request("GET", &path(index))
            .body(axum::body::Body::empty());
        let answer = server
            .router
            .clone()
            .oneshot(request.unwrap())
            .await
            .unwrap();
        let headers = answer.headers().clone();
        assert_eq!(headers["content-type"], kind);
        assert_eq!(headers["content-disposition"], "attachment");
        assert_eq!(
            headers["content-security-policy"],
            "sandbox; default-src 'none'"
        );
        assert_eq!(headers["x-content-type-options"], "nosniff");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, bytes);
    }
    for index in [0, 3, 4] {
        let refused = server.get(&path(index)).await;
        assert_eq!(refused.error().1, "invalid_path", "{index}");
    }
}

#[tokio::test]
async fn operators_read_the_health_of_the_process() {
    let keyless = Server::new(&two_tenants()).await;
    let server = keyless.with_key("llk_a");
    server.say("t", "hello").await;
    let health = server.get("/api/v1/health").await.json();
    assert_eq!(health["ready"], true, "{health}");
    assert_eq!(health["store"]["health"], "healthy");
    let bytes = |name: &str| health["store"][name].as_u64().unwrap();
    assert!(bytes("fileBytes") + bytes("walBytes") > 0);
    assert_eq!(health["runs"]["count"], 1);
    assert!(health["runs"]["p50Seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(health["queuedMessages"], 0);
}
