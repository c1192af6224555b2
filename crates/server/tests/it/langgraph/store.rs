//! The store of items beside the threads.

use super::CONFIG;
use crate::harness::{Server, two_tenants};
use serde_json::{Value, json};

const ITEMS: &str = "/store/items";

async fn put(server: &Server, namespace: Value, key: &str, value: Value) {
    let body = json!({"namespace": namespace, "key": key, "value": value});
    let answer = server.call("PUT", ITEMS, Some(&body)).await;
    assert_eq!(answer.status, 204, "{}", answer.text);
}

async fn keys(server: &Server, search: Value) -> Vec<Value> {
    let found = server.post("/store/items/search", search).await;
    assert_eq!(found.status, 200, "{}", found.text);
    let found = found.json()["items"].clone();
    let found = found.as_array().unwrap().iter();
    found.map(|item| item["key"].clone()).collect()
}

#[tokio::test]
async fn an_item_is_kept_read_replaced_and_deleted() {
    let server = Server::new(CONFIG).await;
    put(&server, json!(["users", "ada"]), "color", json!({"v": 1})).await;
    let path = format!("{ITEMS}?namespace=users.ada&key=color");
    let first = server.get(&path).await.json();
    assert_eq!(first["namespace"], json!(["users", "ada"]));
    assert_eq!(
        (&first["key"], &first["value"]),
        (&json!("color"), &json!({"v": 1}))
    );
    put(&server, json!(["users", "ada"]), "color", json!({"v": 2})).await;
    let second = server.get(&path).await.json();
    assert_eq!(second["value"], json!({"v": 2}));
    assert_eq!(second["created_at"], first["created_at"]);
    let body = json!({"namespace": ["users", "ada"], "key": "color"});
    for _ in 0..2 {
        let deleted = server.call("DELETE", ITEMS, Some(&body)).await;
        assert_eq!(deleted.status, 204, "{}", deleted.text);
    }
    // LangGraph's clients join the namespace, those of the Agent Protocol repeat it.
    let missing = server.get(&path).await;
    assert_eq!(
        (missing.status.as_u16(), missing.json()),
        (200, Value::Null)
    );
    let repeated = format!("{ITEMS}?namespace=users&namespace=ada&key=color");
    assert_eq!(server.get(&repeated).await.status, 404);
}

#[tokio::test]
async fn items_and_namespaces_are_searched() {
    let server = Server::new(CONFIG).await;
    put(
        &server,
        json!(["users", "ada"]),
        "a",
        json!({"color": "green"}),
    )
    .await;
    put(
        &server,
        json!(["users", "bob"]),
        "b",
        json!({"color": "red"}),
    )
    .await;
    put(&server, json!(["teams"]), "c", json!({"color": "green"})).await;
    assert_eq!(keys(&server, json!({})).await, ["c", "b", "a"]);
    assert_eq!(
        keys(&server, json!({"namespace_prefix": ["users"]})).await,
        ["b", "a"]
    );
    assert_eq!(
        keys(&server, json!({"filter": {"color": "green"}})).await,
        ["c", "a"]
    );
    assert_eq!(keys(&server, json!({"limit": 1, "offset": 1})).await, ["b"]);
    for (search, found) in [
        (
            json!({}),
            json!([["teams"], ["users", "ada"], ["users", "bob"]]),
        ),
        (json!({"max_depth": 1}), json!([["teams"], ["users"]])),
        (json!({"suffix": ["bob"]}), json!([["users", "bob"]])),
    ] {
        let listed = server
            .post("/store/namespaces", search.clone())
            .await
            .json();
        assert_eq!(listed["namespaces"], found, "{search}");
    }
    let refused = server
        .post("/store/items/search", json!({"query": "green"}))
        .await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert_eq!(server.get("/info").await.json()["flags"]["store"], true);
}

#[tokio::test]
async fn a_store_is_its_tenants_and_no_key_s_for_some_threads() {
    let some = loomline_server::auth::hash_text("llk_some");
    let keys_of_a = format!("[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"t\"]\n");
    let server = Server::new(&format!("{CONFIG}{}{keys_of_a}", two_tenants())).await;
    let (a, b) = (server.with_key("llk_a"), server.with_key("llk_b"));
    put(&a, json!(["n"]), "k", json!({"secret": 1})).await;
    let path = format!("{ITEMS}?namespace=n&key=k");
    assert_eq!(b.get(&path).await.json(), Value::Null);
    assert!(keys(&b, json!({})).await.is_empty());
    let restricted = server.with_key("llk_some");
    assert_eq!(restricted.get(&path).await.status, 403);
    let search = restricted.post("/store/items/search", json!({})).await;
    assert_eq!(search.status, 403, "{}", search.text);
}

#[tokio::test]
async fn a_page_of_large_items_is_refused_beyond_its_bytes() {
    let server = Server::new(CONFIG).await;
    for n in 0..34 {
        let value = json!({"text": "x".repeat(250 << 10)});
        put(&server, json!(["large"]), &n.to_string(), value).await;
    }
    let answer = server
        .post("/store/items/search", json!({"limit": 34}))
        .await;
    assert!(answer.status.is_client_error(), "{}", answer.status);
    assert!(answer.text.contains("a smaller limit"), "{}", answer.text);
    let first = keys(&server, json!({"limit": 2})).await;
    assert_eq!(first, [json!("33"), json!("32")]);
}
