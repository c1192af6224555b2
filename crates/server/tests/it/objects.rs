//! Objects that clients store with a thread.

use crate::harness::{Answer, Server, two_tenants};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

const KIND: &str = "/api/v1/threads/t/objects/note";

async fn put(server: &Server, path: &str, body: &str) -> Answer {
    let request = server
        .request("PUT", path)
        .header(header::CONTENT_TYPE, "application/json");
    server
        .send(request.body(Body::from(body.to_owned())).unwrap())
        .await
}

async fn with_thread() -> Server {
    let server = Server::new("").await;
    server.post("/api/v1/threads", json!({"key": "t"})).await;
    server
}

fn ids(list: &Answer) -> Vec<String> {
    let list = list.json();
    let objects = list["objects"].as_array().unwrap().iter();
    objects
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn an_object_is_stored_replaced_read_and_deleted() {
    let server = with_thread().await;
    let path = format!("{KIND}/a%2Fb");
    let stored = put(
        &server,
        &path,
        r#"{"value":{"n":1.0,"big":12345678901234567890123}}"#,
    )
    .await;
    assert_eq!(stored.status, 200, "{}", stored.text);
    let read = server.get(&path).await;
    assert_eq!(read.text, stored.text);
    assert!(
        read.text
            .contains(r#""value":{"n":1.0,"big":12345678901234567890123}"#)
    );
    let replaced = put(&server, &path, r#"{"value":null}"#).await.json();
    assert_eq!(replaced["value"], Value::Null);
    assert_eq!(replaced["createdAt"], stored.json()["createdAt"]);
    assert_eq!(server.delete(&path).await.status, 204);
    for gone in [server.get(&path).await, server.delete(&path).await] {
        assert_eq!(gone.error().1, "object_not_found");
    }
}

#[tokio::test]
async fn objects_are_listed_in_pages_and_by_their_ids() {
    let server = with_thread().await;
    for n in 0..5 {
        put(
            &server,
            &format!("{KIND}/{n}"),
            &format!(r#"{{"value":{n}}}"#),
        )
        .await;
    }
    put(
        &server,
        "/api/v1/threads/t/objects/other/x",
        r#"{"value":0}"#,
    )
    .await;
    let first = server.get(&format!("{KIND}?limit=2")).await;
    assert_eq!(
        (ids(&first), first.json()["next"].clone()),
        (vec!["0".into(), "1".into()], json!("1"))
    );
    let rest = server.get(&format!("{KIND}?after=1")).await;
    assert_eq!(ids(&rest), ["2", "3", "4"]);
    assert!(rest.json().get("next").is_none());
    let newest = server.get(&format!("{KIND}?order=desc&limit=1")).await;
    assert_eq!(ids(&newest), ["4"]);
    let named = server.get(&format!("{KIND}?id=3&id=none&id=0")).await;
    assert_eq!(ids(&named), ["3", "0"]);
    for wrong in ["order=up", "limit=x", "ids=1"] {
        let refused = server.get(&format!("{KIND}?{wrong}")).await;
        assert_eq!(refused.error().1, "invalid_query", "{wrong}");
    }
    assert_eq!(
        server.get(&format!("{KIND}?after=none")).await.error().1,
        "object_not_found"
    );
}

#[tokio::test]
async fn a_page_of_objects_ends_at_its_size() {
    let server = with_thread().await;
    let big = format!(r#"{{"value":"{}"}}"#, "x".repeat(3 << 20));
    for n in 0..3 {
        assert_eq!(put(&server, &format!("{KIND}/{n}"), &big).await.status, 200);
    }
    let first = server.get(KIND).await;
    assert_eq!(
        (ids(&first), first.json()["next"].clone()),
        (vec!["0".into(), "1".into()], json!("1"))
    );
    let named = server.get(&format!("{KIND}?id=0&id=1&id=2")).await;
    assert_eq!(
        (ids(&named).len(), named.json()["next"].clone()),
        (2, json!("1"))
    );
}

#[tokio::test]
async fn wrong_objects_are_refused_with_their_place() {
    let server = with_thread().await;
    let big = format!(r#"{{"value":"{}"}}"#, "x".repeat(4 << 20));
    let long = format!("{KIND}/{}", "i".repeat(257));
    for (path, body, code) in [
        (format!("{KIND}/a"), big.as_str(), "object_too_large"),
        (format!("{KIND}/a"), r#"{"valu":1}"#, "invalid_field"),
        (format!("{KIND}/a"), "{}", "invalid_field"),
        (format!("{KIND}/a"), "1", "invalid_field"),
        (long, r#"{"value":1}"#, "invalid_path"),
        (format!("{KIND}/%0a"), r#"{"value":1}"#, "invalid_path"),
        (
            "/api/v1/threads/t/objects/Note/a".into(),
            r#"{"value":1}"#,
            "invalid_path",
        ),
        (
            "/api/v1/threads/none/objects/note/a".into(),
            r#"{"value":1}"#,
            "thread_not_found",
        ),
    ] {
        let refused = put(&server, &path, body).await;
        assert_eq!(refused.error().1, code, "{path}");
    }
    assert!(ids(&server.get(KIND).await).is_empty());
}

#[tokio::test]
async fn objects_belong_to_their_thread_and_tenant() {
    let all = Server::new(&two_tenants()).await;
    let (a, b) = (all.with_key("llk_a"), all.with_key("llk_b"));
    for server in [&a, &b] {
        server.post("/api/v1/threads", json!({"key": "t"})).await;
    }
    put(&a, &format!("{KIND}/x"), r#"{"value":"secret of a"}"#).await;
    assert_eq!(
        b.get(&format!("{KIND}/x")).await.error().1,
        "object_not_found"
    );
    assert!(ids(&b.get(KIND).await).is_empty());
    assert_eq!(a.delete("/api/v1/threads/t").await.status, 204);
    a.post("/api/v1/threads", json!({"key": "t"})).await;
    assert!(ids(&a.get(KIND).await).is_empty());
}

#[tokio::test]
async fn objects_are_refused_beyond_the_tenants_storage() {
    let hash = loomline_server::auth::hash_text("llk_a");
    let config = format!(
        "[limits.tenant]\nstored_bytes = 100000\nfiles = 1\n[tenants.a]\nkey_hashes = [\"{hash}\"]\n"
    );
    let server = Server::new(&config).await.with_key("llk_a");
    server.post("/api/v1/threads", json!({"key": "t"})).await;
    let body = format!(r#"{{"value":"{}"}}"#, "x".repeat(30_000));
    let mut statuses = Vec::new();
    for n in 0..4 {
        let stored = put(&server, &format!("{KIND}/{n}"), &body).await;
        statuses.push(stored.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 507]);
    assert_eq!(ids(&server.get(KIND).await), ["0", "1", "2"]);
}

#[tokio::test]
async fn objects_need_the_scope_of_their_method_and_the_thread() {
    let [read, write, other] = ["llk_r", "llk_w", "llk_o"].map(loomline_server::auth::hash_text);
    let config = format!(
        "[tenants.a.keys.r]\nhash = \"{read}\"\nscopes = [\"read\"]\n\
         [tenants.a.keys.w]\nhash = \"{write}\"\nscopes = [\"write\"]\n\
         [tenants.a.keys.o]\nhash = \"{other}\"\nthreads = [\"other-*\"]\n"
    );
    let all = Server::new(&config).await;
    let (read, write) = (all.with_key("llk_r"), all.with_key("llk_w"));
    write.post("/api/v1/threads", json!({"key": "t"})).await;
    let path = format!("{KIND}/x");
    let body = r#"{"value":1}"#;
    assert_eq!(put(&read, &path, body).await.error().1, "missing_scope");
    assert_eq!(put(&write, &path, body).await.status, 200);
    assert_eq!(write.get(&path).await.error().1, "missing_scope");
    assert_eq!(read.get(&path).await.status, 200);
    for server in [&read, &write] {
        assert_eq!(server.delete(&path).await.error().1, "missing_scope");
    }
    let other = all.with_key("llk_o");
    assert_eq!(other.get(&path).await.error().1, "forbidden_thread");
    assert_eq!(put(&other, &path, body).await.error().1, "forbidden_thread");
}
