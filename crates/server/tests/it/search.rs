//! Threads that are found by words, and filters of the list.

use crate::harness::Server;
use axum::body::Body;
use loomline_server::auth::hash_text;
use serde_json::{Value, json};

async fn list(server: &Server, query: &str) -> Value {
    let answer = server.get(&format!("/api/v1/threads?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    answer.json()
}

fn keys(list: &Value) -> Vec<&str> {
    let threads = list["threads"].as_array().unwrap();
    let keys = threads.iter().map(|thread| thread["key"].as_str().unwrap());
    keys.collect()
}

#[tokio::test]
async fn threads_are_found_by_words_with_snippets() {
    let server = Server::new("").await;
    server.begin("a", "Fly to Lima 🎉 in Märch").await;
    server.begin("b", "nothing of that").await;
    let titled = json!({"key": "c", "title": "Märchen"});
    server.post("/api/v1/threads", titled).await;

    let found = list(&server, "q=M%C3%84RCH").await;

    assert_eq!(keys(&found), ["c", "a"]);
    assert_eq!(found["next"], Value::Null);
    let title = json!([{"text": "Märchen", "matches": [[0, 7]]}]);
    assert_eq!(found["threads"][0]["snippets"], title);
    let snippets = found["threads"][1]["snippets"].as_array().unwrap();
    let user = snippets.iter().find(|it| it["role"] == "user").unwrap();
    assert_eq!(user["text"], "Fly to Lima 🎉 in Märch");
    assert_eq!(user["matches"], json!([[18, 23]]));
    let seq = user["seq"].as_u64().unwrap();
    let path = format!("/api/v1/threads/a/events?after={}&limit=1", seq - 1);
    let request = server
        .request("GET", &path)
        .header("accept", "application/json");
    let page = server
        .send(request.body(Body::empty()).unwrap())
        .await
        .json();
    assert_eq!(page["events"][0]["item"]["role"], "user", "{page}");
    for nothing in ["q=", "q=%22", "q=NEAR(", "q=lima+AND", "q=%F0%9F%8E%89"] {
        assert_eq!(
            list(&server, nothing).await,
            json!({"threads": []}),
            "{nothing}"
        );
    }
}

#[tokio::test]
async fn a_listed_thread_shows_its_agent_and_last_text() {
    let server = Server::new("").await;
    server.say("a", "Fly to Lima").await;
    let fork = json!({"key": "f"});
    server.post("/api/v1/threads/a/fork", fork).await;
    let all = list(&server, "").await;
    assert_eq!(keys(&all), ["f", "a"]);
    let [fork, parent] = [&all["threads"][0], &all["threads"][1]];
    assert_eq!(fork["forkedFrom"], "a");
    assert_eq!(
        (&fork["agent"], &fork["lastText"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(parent["agent"], "demo");
    assert!(parent["lastText"].as_str().unwrap().len() > 5, "{parent}");
    assert_eq!(parent["snippets"], Value::Null);
}

#[tokio::test]
async fn lists_and_searches_have_filters_and_pages() {
    let server = Server::new("").await;
    for key in ["a", "b", "c"] {
        server.begin(key, "word").await;
    }
    server.post("/api/v1/threads/b/close", json!({})).await;
    for q in ["", "q=word&"] {
        let listed = async |query: &str| list(&server, &format!("{q}{query}")).await;
        assert_eq!(keys(&listed("status=closed").await), ["b"]);
        assert_eq!(keys(&listed("status=open&limit=1").await), ["c"]);
        assert_eq!(keys(&listed("agent=demo&prefix=a").await), ["a"]);
        assert!(keys(&listed("agent=nobody").await).is_empty());
        assert_eq!(keys(&listed("since=2020-01-01T00:00:00Z").await).len(), 3);
        assert!(keys(&listed("since=2200-01-01T00:00:00Z").await).is_empty());
    }
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = list(&server, &format!("q=word&limit=1{cursor}")).await;
        paged.extend(keys(&page).into_iter().map(str::to_owned));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, ["c", "b", "a"]);
}

#[tokio::test]
async fn a_query_that_is_too_long_is_refused() {
    let server = Server::new("").await;
    let long = format!("q={}", "x".repeat(513));
    let many = format!("q={}", "w+".repeat(17));
    for query in [&long, &many, "status=odd", "since=yesterday", "words=x"] {
        let (status, code, _) = server
            .get(&format!("/api/v1/threads?{query}"))
            .await
            .error();
        assert_eq!((status, code.as_str()), (400, "invalid_query"), "{query}");
    }
}

#[tokio::test]
async fn a_restricted_key_finds_its_own_threads() {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    let config = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"mine-*\", \"one\"]\n"
    );
    let all = Server::new(&config).await.with_key("llk_all");
    let some = all.with_key("llk_some");
    for key in ["mine-1", "secret", "one", "once"] {
        all.begin(key, "word").await;
    }
    let fork = json!({"key": "mine-2"});
    all.post("/api/v1/threads/secret/fork", fork).await;
    assert_eq!(keys(&list(&all, "q=word").await).len(), 4);
    assert_eq!(keys(&list(&some, "q=word").await), ["one", "mine-1"]);
    assert_eq!(keys(&list(&some, "q=word&prefix=mine").await), ["mine-1"]);
    assert!(keys(&list(&some, "q=word&prefix=secret").await).is_empty());
    let forked = |list: &Value| list["threads"][0]["forkedFrom"].clone();
    assert_eq!(forked(&list(&all, "prefix=mine-2").await), "secret");
    assert_eq!(forked(&list(&some, "prefix=mine-2").await), Value::Null);
}
