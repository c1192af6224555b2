//! What a key may do.

use crate::harness::{Answer, Server};
use crate::tenants::{ask, guarded_routes};
use loomline_server::Config;
use loomline_server::auth::hash_text;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;

/// A tenant whose key `llk_all` may do everything, and `llk_some` what `rights` says.
fn tenant(rights: &str) -> String {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\n{rights}\n"
    )
}

async fn restricted(rights: &str) -> (Server, Server) {
    let all = Server::new(&tenant(rights)).await.with_key("llk_all");
    let some = all.with_key("llk_some");
    (all, some)
}

fn refusal(answer: &Answer) -> (u16, String) {
    let (status, code, _) = answer.error();
    (status, code)
}

fn missing() -> (u16, String) {
    (403, "missing_scope".to_owned())
}

fn forbidden() -> (u16, String) {
    (403, "forbidden_thread".to_owned())
}

#[tokio::test]
async fn each_kind_of_request_needs_its_scope() {
    for scopes in [
        &["read"] as &[&str],
        &["write"],
        &["delete"],
        &["read", "write"],
        &[],
    ] {
        let (all, some) = restricted(&format!("scopes = {}", json!(scopes))).await;
        all.say("secret", "hello").await;
        for (method, path) in guarded_routes() {
            let needed = match method.as_str() {
                "GET" => "read",
                "DELETE" => "delete",
                _ => "write",
            };
            // Where it is allowed it is a stream without an end.
            if path.ends_with("/events") && scopes.contains(&needed) {
                continue;
            }
            let answer = ask(&some, &method, &path, "x").await;
            if scopes.contains(&needed) {
                assert_ne!(answer.status, 403, "{scopes:?} {method} {path}");
            } else {
                assert_eq!(refusal(&answer), missing(), "{scopes:?} {method} {path}");
                assert_eq!(answer.json()["error"]["details"]["scope"], needed);
            }
        }
    }
}

#[tokio::test]
async fn a_key_for_some_threads_reaches_no_other_by_any_route() {
    let (all, some) = restricted("threads = [\"support-*\", \"one\"]").await;
    all.say("secret", "the password is swordfish").await;
    for (method, path) in guarded_routes() {
        let answer = ask(&some, &method, &path, "x").await;
        assert!(!answer.text.contains("swordfish"), "{method} {path}");
        if path == "/api/v1/agents" {
            assert_eq!(answer.status, 200);
        } else if (method.as_str(), path.as_str()) == ("GET", "/api/v1/threads") {
            assert_eq!(answer.json()["threads"], json!([]));
        } else {
            assert_eq!(refusal(&answer), forbidden(), "{method} {path}");
        }
    }
    assert_eq!(all.get("/api/v1/threads/secret").await.status, 200);
}

#[tokio::test]
async fn a_key_for_some_threads_works_on_these() {
    let (all, some) = restricted("threads = [\"support-*\", \"one\"]").await;
    all.say("secret", "hello").await;
    for key in ["support-7", "one"] {
        some.say(key, "hello").await;
        assert_eq!(
            some.get(&format!("/api/v1/threads/{key}/document"))
                .await
                .status,
            200
        );
    }
    let listed = some.get("/api/v1/threads").await.json();
    assert_eq!(listed["threads"].as_array().unwrap().len(), 2);
    let fork = |key: &str| some.post("/api/v1/threads/one/fork", json!({ "key": key }));
    assert_eq!(refusal(&fork("elsewhere").await), forbidden());
    assert_eq!(fork("support-8").await.status, 201);
    // One whose key the server makes up would be out of its reach.
    for path in ["/api/v1/threads", "/api/v1/threads/one/fork"] {
        assert_eq!(refusal(&some.post(path, json!({})).await), forbidden());
    }
    // Neither is another one reached by a name that only decodes to it.
    assert_eq!(
        refusal(&some.get("/api/v1/threads/%73ecret").await),
        forbidden()
    );
}

#[tokio::test]
async fn a_key_that_has_expired_is_told_so() {
    let (_, some) = restricted("expires = 2020-01-01T00:00:00Z").await;
    let refused = some.get("/api/v1/threads").await;
    assert_eq!(refusal(&refused), (401, "key_expired".to_owned()));
    let (_, some) = restricted("expires = 9000-01-01T00:00:00Z").await;
    assert_eq!(some.get("/api/v1/threads").await.status, 200);
}

#[tokio::test]
async fn too_many_requests_are_refused_and_said_when_to_come_again() {
    let (all, some) = restricted("requests_per_minute = 2").await;
    for _ in 0..2 {
        assert_eq!(some.get("/api/v1/threads").await.status, 200);
    }
    let refused = some.get("/api/v1/threads").await;
    assert_eq!(refusal(&refused), (429, "rate_limited".to_owned()));
    let wait: u64 = refused.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=31).contains(&wait), "{wait}");
    assert_eq!(all.get("/api/v1/threads").await.status, 200);
}

#[tokio::test]
async fn keys_come_and_go_without_a_restart() {
    let (all, some) = restricted("").await;
    assert_eq!(some.get("/api/v1/threads").await.status, 200);
    let new = hash_text("llk_new");
    let text = format!("[tenants.a]\nkey_hashes = [\"{new}\"]\n");
    let config = Config::parse(&text, &|_| None).unwrap();
    all.app.replace_keys(&config.tenants);
    for gone in [&all, &some] {
        assert_eq!(gone.get("/api/v1/threads").await.status, 401);
    }
    assert_eq!(
        all.with_key("llk_new").get("/api/v1/threads").await.status,
        200
    );
}

/// Where log lines go.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn who_changes_something_or_is_refused_is_noted_and_the_key_is_not() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_ansi(false)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let (_, some) = restricted("threads = [\"mine\"]").await;
    some.post("/api/v1/threads", json!({ "key": "mine" })).await;
    some.get("/api/v1/threads/mine").await;
    some.get("/api/v1/threads/theirs").await;
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let noted: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(" audit: "))
        .collect();
    assert_eq!(noted.len(), 2, "{text}");
    for (line, expected) in noted.iter().zip([
        "path=\"/api/v1/threads\" status=201",
        "path=\"/api/v1/threads/theirs\" status=403",
    ]) {
        assert!(
            line.contains("tenant=a key=some") && line.contains(expected),
            "{line}"
        );
    }
    assert!(!text.contains("llk_"), "{text}");
}
