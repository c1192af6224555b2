//! The branches of a conversation, over HTTP.

use crate::harness::Server;
use loomline_server::auth::hash_text;
use serde_json::json;

#[tokio::test]
async fn branches_are_listed_with_their_parents_to_keys_that_see_all_of_them() {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    let config = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"k\"]\n"
    );
    let all = Server::new(&config).await.with_key("llk_all");
    let some = all.with_key("llk_some");
    all.post("/api/v1/threads", json!({ "key": "k" })).await;
    let alone = some.get("/api/v1/threads/k/branches").await;
    assert_eq!(alone.status, 200, "{}", alone.text);
    all.post("/api/v1/threads/k/fork", json!({ "key": "f" }))
        .await;
    let listed = all.get("/api/v1/threads/f/branches").await.json();
    let branches = listed["branches"].as_array().unwrap();
    let seen: Vec<_> = branches
        .iter()
        .map(|branch| json!([branch["key"], branch["parent"]]))
        .collect();
    assert_eq!(seen, [json!(["k", null]), json!(["f", "k"])]);
    let refused = some.get("/api/v1/threads/k/branches").await.error();
    assert_eq!((refused.0, refused.1.as_str()), (403, "forbidden_thread"));
}
