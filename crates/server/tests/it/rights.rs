//! What a key may do.

use crate::harness::{Answer, Server};
use crate::tenants::{ask, guarded_routes};
use axum::body::Body;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use loomline_server::Config;
use loomline_server::auth::hash_text;
use serde_json::json;
use tower::ServiceExt;

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
        &["work"],
        &[],
    ] {
        let (all, some) = restricted(&format!("scopes = {}", json!(scopes))).await;
        all.say("secret", "hello").await;
        for (method, path) in guarded_routes() {
            let needed = match method.as_str() {
                "GET" if ["/metrics", "/api/v1/health"].contains(&path.as_str()) => "operator",
                "GET" => "read",
                // It deletes nothing: what was compacted is read again.
                "DELETE" if path.contains("/compactions/") => "write",
                "DELETE" => "delete",
                _ if path.starts_with("/api/v1/steps/") => "work",
                _ => "write",
            };
            // Where it is allowed it is a stream without an end.
            if path.ends_with("/events") && scopes.contains(&needed) {
                continue;
            }
            let answer = ask(&some, &method, &path, "x").await;
            if scopes.contains(&needed) {
                // Once it has joined a thread it has to say so.
                if answer.status == 403 {
                    let refused = answer.error().1;
                    assert_eq!(refused, "forbidden_actor", "{scopes:?} {method} {path}");
                }
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
        if path == "/api/v1/events" {
            // A stream without an end: `waiting` has its claim.
            continue;
        }
        let answer = ask(&some, &method, &path, "x").await;
        assert!(!answer.text.contains("swordfish"), "{method} {path}");
        if path == "/api/v1/agents" {
            assert_eq!(answer.status, 200);
        } else if (method.as_str(), path.as_str()) == ("GET", "/api/v1/threads") {
            assert_eq!(answer.json()["threads"], json!([]));
        } else if path == "/api/v1/waiting" {
            assert_eq!(answer.json()["entries"], json!([]));
        } else if path == "/api/v1/steps/lease" {
            assert_eq!(answer.status, 204);
        } else if path.starts_with("/api/v1/steps/") {
            assert_eq!(refusal(&answer), (409, "lease_ended".to_owned()));
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
    let wait = refused.retry_after();
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
    all.app.replace_tenants(&config.tenants).unwrap();
    for gone in [&all, &some] {
        assert_eq!(gone.get("/api/v1/threads").await.status, 401);
    }
    assert_eq!(
        all.with_key("llk_new").get("/api/v1/threads").await.status,
        200
    );
}

/// A model that asks whether it may compute, and a tenant.
fn asking(rights: &str) -> String {
    let agent = "[models.s]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"s\"\ntools = [\"compute\"]\nrequires_approval = [\"compute\"]\n";
    format!("{agent}{}", tenant(rights))
}

#[tokio::test]
async fn a_key_speaks_only_as_its_actors() {
    let server = Server::new(&asking("actors = [\"ada\"]")).await;
    let (all, some) = (server.with_key("llk_all"), server.with_key("llk_some"));
    all.say("t", "use compute 6 * 7").await;
    let call = all.get("/api/v1/threads/t/pending").await.json()["calls"][0]["toolCallId"].clone();
    let answers = |actor: &str| {
        let answer = json!({"toolCallId": call, "approved": true});
        let body = json!({"answers": [answer], "actor": actor});
        some.post("/api/v1/threads/t/answers", body)
    };
    let refused = |pointer: &str| (403, "forbidden_actor".to_owned(), Some(pointer.to_owned()));
    assert_eq!(answers("bob").await.error(), refused("/actor"));
    assert_eq!(answers("ada").await.status, 202);
    all.at_rest("t").await;
    // What is said names who says it in its metadata.
    let says = |actor: &str| {
        let body = json!({"content": "hello", "metadata": {"actor": actor}});
        some.post("/api/v1/threads/t/messages", body)
    };
    assert_eq!(says("bob").await.error(), refused("/metadata/actor"));
    assert_eq!(says("ada").await.status, 202);
    let message = json!({
        "id": "m", "role": "user", "metadata": {"actor": "bob"}, "parts": [{"type": "text", "text": "hello"}],
    });
    let chat = json!({"id": "c", "trigger": "submit-message", "messages": [message]});
    // What a chat keeps beside a message is the page's own, and names nobody.
    assert_eq!(some.post("/api/chat", chat).await.status, 200);
    let kept = all.get("/api/v1/threads/c/messages").await.json();
    let metadata = &kept["messages"][0]["metadata"];
    assert_eq!(
        (&metadata["actor"], &metadata["ai_sdk"]["actor"]),
        (&json!(null), &json!("bob"))
    );
}

#[tokio::test]
async fn a_list_has_pages_of_what_the_key_may_see_alone() {
    let (all, some) =
        restricted("threads = [\"support-*\", \"support-1\", \"one\", \"none\"]").await;
    let create = |key: String| all.post("/api/v1/threads", json!({ "key": key }));
    let mut hidden = Vec::new();
    for n in 0..5 {
        create(format!("support-{n}")).await;
        let made = create(format!("secret-{n}")).await.json();
        hidden.push(made["id"].as_str().unwrap().to_owned());
        if n == 2 {
            create("one".to_owned()).await;
        }
    }
    let pages = |query: &'static str| {
        let some = &some;
        let hidden = &hidden;
        async move {
            let mut found: Vec<Vec<String>> = Vec::new();
            let mut cursor = String::new();
            loop {
                let path = format!("/api/v1/threads?limit=2{query}{cursor}");
                let page = some.get(&path).await.json();
                let threads = page["threads"].as_array().unwrap();
                let keys = threads
                    .iter()
                    .map(|it| it["key"].as_str().unwrap().to_owned());
                found.push(keys.collect());
                let Some(next) = page["next"].as_str() else {
                    return found;
                };
                assert!(!hidden.iter().any(|id| next.contains(id)), "{next}");
                cursor = format!("&cursor={next}");
            }
        }
    };
    let whole = [
        vec!["support-4", "support-3"],
        vec!["one", "support-2"],
        vec!["support-1", "support-0"],
    ];
    assert_eq!(pages("").await, whole);
    assert_eq!(
        pages("&prefix=support-").await,
        [
            vec!["support-4", "support-3"],
            vec!["support-2", "support-1"],
            vec!["support-0"],
        ]
    );
    assert_eq!(pages("&prefix=on").await, [vec!["one"]]);
    assert_eq!(pages("&prefix=secret").await, [Vec::<String>::new()]);
}

#[tokio::test]
async fn a_stream_ends_with_the_key_that_opened_it_and_says_so() {
    let (all, some) = restricted("").await;
    all.say("t", "hello").await;
    let path = "/api/v1/threads/t/events";
    let open = |client: &Server| {
        let request = client.request("GET", path).body(Body::empty()).unwrap();
        let router = client.router.clone();
        async move { router.oneshot(request).await.unwrap().into_body() }
    };
    let (stays, ends) = (open(&all).await, open(&some).await);
    let key = hash_text("llk_all");
    let text = format!("[tenants.a]\nkey_hashes = [\"{key}\"]\n");
    let config = Config::parse(&text, &|_| None).unwrap();
    assert_eq!(all.app.replace_tenants(&config.tenants).unwrap(), 1);
    let ended = ends.collect().await.unwrap().to_bytes();
    let ended = String::from_utf8(ended.into()).unwrap();
    let last = ended.split_terminator("\n\n").last().unwrap();
    let data = last.strip_prefix("event: error\ndata: ").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["error"]["code"], "key_revoked");
    // The other one sees what comes.
    let mut stays = stays.into_data_stream();
    all.say("t", "once more").await;
    let mut seen = String::new();
    while !seen.contains("once more") {
        let piece = stays.next().await.unwrap().unwrap();
        seen.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert_eq!(some.get(path).await.error().1, "unauthorized");
}
