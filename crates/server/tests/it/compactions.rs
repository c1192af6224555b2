//! Summaries that replace older runs when a model reads a thread.

use crate::harness::{Answer, Server, two_tenants};
use serde_json::{Value, json};

const COMPACTIONS: &str = "/api/v1/threads/t/compactions";

async fn said(server: &Server, texts: &[&str]) {
    for text in texts {
        server.say("t", text).await;
    }
}

async fn compact(server: &Server, body: Value) -> Answer {
    server.post(COMPACTIONS, body).await
}

async fn list(server: &Server) -> Vec<Value> {
    let list = server.get(COMPACTIONS).await.json();
    list["compactions"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_compaction_is_made_listed_shown_and_withdrawn() {
    let server = Server::new("").await;
    said(&server, &["one", "two", "three"]).await;
    let made = compact(&server, json!({"summary": "They count.", "keepRuns": 1})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let made = made.json();
    let runs = server.get("/api/v1/threads/t/runs").await.json();
    assert_eq!(made["executionId"], runs["runs"][1]["id"]);
    assert_eq!(made["replaced"]["executions"], 2);
    assert_eq!(made["replaced"]["messages"], 4);
    assert_eq!(
        (&made["counts"], &made["withdrawn"]),
        (&json!(true), &json!(false))
    );
    assert!(made["author"]["client"].is_string());
    let again = json!({"summary": "They count.", "executionId": made["executionId"]});
    assert_eq!(compact(&server, again).await.json()["id"], made["id"]);
    assert_eq!(list(&server).await, std::slice::from_ref(&made));
    let shown = server.get("/api/v1/threads/t").await.json()["compaction"].clone();
    assert_eq!(
        shown,
        json!({"id": made["id"], "executionId": made["executionId"], "event": made["event"]})
    );
    let id = made["id"].as_str().unwrap();
    let gone = server.delete(&format!("{COMPACTIONS}/{id}")).await;
    assert_eq!(gone.status, 200, "{}", gone.text);
    assert!(gone.json()["seq"].as_u64() > made["seq"].as_u64());
    assert_eq!(list(&server).await[0]["withdrawn"], true);
    let thread = server.get("/api/v1/threads/t").await.json();
    assert!(thread.get("compaction").is_none());
    let again = server.delete(&format!("{COMPACTIONS}/{id}")).await;
    assert_eq!(again.error(), (404, "compaction_not_found".into(), None));
}

#[tokio::test]
async fn compactions_are_read_in_pages() {
    let server = Server::new("").await;
    said(&server, &["one", "two", "three"]).await;
    for (n, keep_runs) in [(1, 2), (2, 1), (3, 0)] {
        let body = json!({"summary": format!("s{n}"), "keepRuns": keep_runs});
        assert_eq!(compact(&server, body).await.status, 201);
    }
    let mut pages = Vec::new();
    let mut query = "limit=2".to_owned();
    loop {
        let page = server.get(&format!("{COMPACTIONS}?{query}")).await.json();
        let all = page["compactions"].as_array().unwrap();
        let all = all
            .iter()
            .map(|it| (it["summary"].clone(), it["counts"].clone()));
        pages.push(all.collect::<Vec<_>>());
        let Some(before) = page.get("before") else {
            break;
        };
        query = format!("limit=2&before={before}");
    }
    let entry = |summary: &str, counts: bool| (json!(summary), json!(counts));
    let expected = [
        vec![entry("s3", true), entry("s2", false)],
        vec![entry("s1", false)],
    ];
    assert_eq!(pages, expected);
    let one = server.get(&format!("{COMPACTIONS}?limit=0")).await.json();
    assert_eq!(one["compactions"].as_array().unwrap().len(), 1);
    let refused = server.get(&format!("{COMPACTIONS}?before=x")).await;
    assert_eq!(refused.error().1, "invalid_query");
}

#[tokio::test]
async fn a_cut_that_is_not_possible_names_the_next_one() {
    let server = Server::new("").await;
    said(&server, &["one", "two"]).await;
    let refused = compact(&server, json!({"summary": "s", "event": 3})).await;
    assert_eq!(refused.error().0, 409);
    let error = refused.json()["error"].clone();
    assert_eq!(error["code"], "illegal_cut");
    let runs = server.get("/api/v1/threads/t/runs").await.json();
    let next = &error["details"]["next"];
    assert_eq!(next["executionId"], runs["runs"][0]["id"]);
    let made = compact(&server, json!({"summary": "s", "event": next["event"]})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let none = compact(&server, json!({"summary": "s", "keepRuns": 9})).await;
    let details = none.json()["error"]["details"].clone();
    assert_eq!(
        (none.error().1, details),
        ("illegal_cut".into(), json!({"next": null}))
    );
    let unknown = compact(&server, json!({"summary": "s", "executionId": "no"})).await;
    assert_eq!(unknown.error().1, "run_not_found");
}

#[tokio::test]
async fn a_compaction_has_one_end_and_a_summary() {
    let server = Server::new("").await;
    said(&server, &["one"]).await;
    for (body, pointer) in [
        (json!({"summary": "s"}), ""),
        (json!({"summary": "s", "event": 1, "keepRuns": 0}), ""),
        (json!({"summary": " ", "keepRuns": 0}), "/summary"),
        (json!({"summary": "s", "keepRuns": -1}), "/keepRuns"),
        (json!({"keepRuns": 0}), ""),
        (json!({"summary": "s", "keepRuns": 0, "more": 1}), "/more"),
    ] {
        let refused = compact(&server, body.clone()).await;
        assert_eq!(refused.status, 422, "{body}: {}", refused.text);
        assert_eq!(refused.error().2.unwrap_or_default(), pointer, "{body}");
    }
    assert_eq!(list(&server).await, Vec::<Value>::new());
    let nowhere = server.get("/api/v1/threads/none/compactions").await;
    assert_eq!(nowhere.error().1, "thread_not_found");
}

#[tokio::test]
async fn a_summary_is_at_most_as_large_as_a_message() {
    let server = Server::new("[limits]\nmessage_bytes = 2000\n").await;
    said(&server, &["one"]).await;
    let summary = "x".repeat(2001);
    let refused = compact(&server, json!({"summary": summary, "keepRuns": 0})).await;
    let at = Some("/summary".to_owned());
    assert_eq!(refused.error(), (422, "invalid_field".into(), at));
    assert!(list(&server).await.is_empty());
}

#[tokio::test]
async fn a_key_reads_and_writes_compactions_as_its_scopes_say() {
    let server = Server::new(&two_tenants()).await;
    let owner = server.with_key("llk_a");
    said(&owner, &["one"]).await;
    let made = compact(&owner, json!({"summary": "s", "keepRuns": 0}))
        .await
        .json();
    assert!(!made["author"]["client"].as_str().unwrap().is_empty());
    let path = format!("{COMPACTIONS}/{}", made["id"].as_str().unwrap());
    let stranger = server.with_key("llk_b");
    assert_eq!(stranger.delete(&path).await.error().1, "thread_not_found");
    assert_eq!(
        stranger.get(COMPACTIONS).await.error().1,
        "thread_not_found"
    );
    assert_eq!(owner.delete(&path).await.status, 200);
}

const COMPACTING: &str = "
default_agent = \"assistant\"
[models.m]
provider = \"scripted\"
[agents.assistant]
model = \"m\"
[agents.assistant.compaction]
at_tokens = 200
keep_runs = 1
";

#[tokio::test]
async fn an_agents_configuration_compacts_long_threads() {
    let server = Server::new(COMPACTING).await;
    let texts: Vec<String> = (0..8).map(|n| format!("message {n}")).collect();
    for text in &texts {
        server.say("t", text).await;
    }
    let all = list(&server).await;
    assert!(!all.is_empty());
    assert_eq!(all[0]["author"]["agent"], "assistant");
    assert!(all[0]["author"]["model"].is_string());
    assert!(all[0]["author"]["tokens"]["input"].as_u64() > Some(0));
    let messages = server.get("/api/v1/threads/t/messages").await.json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 16);
}

#[cfg(feature = "web")]
#[tokio::test]
async fn pages_show_where_a_compaction_ends() {
    let server = Server::new("").await;
    said(&server, &["one", "two", "three"]).await;
    let page = async || server.get("/chat/t").await.text;
    assert!(!page().await.contains("a summary replaces"));
    let made = compact(&server, json!({"summary": "They count.", "keepRuns": 1}))
        .await
        .json();
    let note = format!(
        "a summary replaces the first 2 runs, up to event {}",
        made["event"]
    );
    let shown = page().await;
    assert!(shown.contains(&note) && shown.contains("You said: one"));
    let events = server.get("/console/t/t/events").await.text;
    assert!(events.contains("a summary replaces older runs"));
    let id = made["id"].as_str().unwrap();
    server.delete(&format!("{COMPACTIONS}/{id}")).await;
    assert!(!page().await.contains("a summary replaces"));
    let events = server.get("/console/t/t/events").await.text;
    assert!(events.contains("a compaction is withdrawn"));
}
