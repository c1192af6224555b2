//! The list of all that waits for a person, and the feed of the threads' changes.

use crate::harness::{Server, TEAM};
use axum::body::Body;
use loomline_server::auth::hash_text;
use serde_json::{Value, json};
use std::time::Duration;

const CONFIG: &str = r#"
[models.s]
provider = "scripted"
[agents.a]
model = "s"
tools = ["compute"]
requires_approval = ["compute"]
[agents.client]
model = "s"
[[agents.client.external]]
name = "get_weather"
description = "The weather of a city."
parameters = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }
"#;

/// Records a request for a decision in a thread.
pub(crate) async fn ask(server: &Server, key: &str, id: &str, expires_at: Option<&str>) {
    let mut asked =
        json!({"id": id, "title": "Which seat?", "options": [{"id": "window"}, {"id": "aisle"}]});
    if let Some(end) = expires_at {
        asked["expires_at"] = end.into();
    }
    let schema = "https://aitp.dev/v1/decisions/schema.json";
    let text = json!({"$schema": schema, "request_decision": asked}).to_string();
    let body = json!({"role": "assistant", "content": text});
    let path = format!("/v1/threads/{key}/messages");
    let answer = server.post(&path, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

async fn waiting(server: &Server, query: &str) -> Vec<Value> {
    let answer = server.get(&format!("/api/v1/waiting{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["entries"].as_array().unwrap().clone()
}

/// The thread and the kind of each entry.
async fn listed(server: &Server, query: &str) -> Vec<(String, String)> {
    let entries = waiting(server, query).await.into_iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries
        .map(|entry| (text(&entry["threadKey"]), text(&entry["kind"])))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = expected.iter();
    pairs
        .map(|(key, kind)| ((*key).to_owned(), (*kind).to_owned()))
        .collect()
}

async fn say_to(server: &Server, key: &str, agent: &str, content: &str) {
    let path = format!("/api/v1/threads/{key}/messages");
    let body = json!({"content": content, "agent": agent, "stream": true});
    let answer = server.post(&path, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// A server with a call that needs approval, a request, and a call that a client runs.
async fn three() -> Server {
    let server = Server::new(CONFIG).await;
    say_to(&server, "one", "a", "use compute 6 * 7").await;
    say_to(&server, "quiet", "a", "hello").await;
    say_to(&server, "two", "a", "hello").await;
    ask(&server, "two", "seat", Some("2050-01-01T00:00:00Z")).await;
    say_to(&server, "three", "client", "get_weather Oslo").await;
    server
}

#[tokio::test]
async fn calls_and_requests_of_all_threads_are_in_one_list() {
    let server = three().await;
    let all = [
        ("one", "approval"),
        ("two", "request"),
        ("three", "external"),
    ];
    assert_eq!(listed(&server, "").await, pairs(&all));
    let entries = waiting(&server, "").await;
    let pending = server.get("/api/v1/threads/one/pending").await.json();
    let call = &pending["calls"][0];
    for (member, expected) in [
        ("toolName", &json!("compute")),
        ("toolCallId", &call["toolCallId"]),
        ("callThreadKey", &json!("one")),
        ("agent", &json!("a")),
        ("summary", &json!("expression: 6 * 7")),
        ("mayAnswer", &json!(true)),
    ] {
        assert_eq!(&entries[0][member], expected, "{member}");
    }
    for (member, expected) in [
        ("requestId", json!("decision:seat")),
        ("topic", json!("decision")),
        ("summary", json!("Which seat?")),
        ("expiresAt", json!("2050-01-01T00:00:00Z")),
    ] {
        assert_eq!(entries[1][member], expected, "{member}");
    }
    assert_eq!(waiting(&server, "").await, entries, "the list is stable");
}

#[tokio::test]
async fn filters_and_pages_of_what_waits() {
    let server = three().await;
    let entries = waiting(&server, "").await;
    let since = entries[1]["since"].as_str().unwrap();
    for (query, expected) in [
        ("?kind=request".to_owned(), &[("two", "request")][..]),
        ("?agent=client".to_owned(), &[("three", "external")]),
        (
            "?prefix=t".to_owned(),
            &[("two", "request"), ("three", "external")],
        ),
        (
            format!("?since={since}"),
            &[("two", "request"), ("three", "external")],
        ),
        (
            format!("?until={since}"),
            &[("one", "approval"), ("two", "request")],
        ),
        ("?agent=nobody".to_owned(), &[]),
    ] {
        assert_eq!(listed(&server, &query).await, pairs(expected), "{query}");
    }
    let mut paged = Vec::new();
    let mut query = "?limit=1".to_owned();
    loop {
        let page = server.get(&format!("/api/v1/waiting{query}")).await.json();
        paged.extend(page["entries"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else {
            break;
        };
        query = format!("?limit=1&cursor={next}");
    }
    assert_eq!(paged, entries);
    let refused = server.get("/api/v1/waiting?cursor=x").await;
    assert_eq!(refused.error().1, "invalid_query");
    let refused = server.get("/api/v1/waiting?kind=all").await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn what_is_answered_waits_no_longer() {
    let server = three().await;
    let entries = waiting(&server, "").await;
    let allow = json!({"toolCallId": entries[0]["toolCallId"], "approved": true});
    let body = json!({"answers": [allow], "stream": true});
    server.post("/api/v1/threads/one/answers", body).await;
    let path = "/api/v1/threads/two/requests/decision:seat/answer";
    let answer = server
        .post(path, json!({"value": {"option": "aisle"}}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(listed(&server, "").await, pairs(&[("three", "external")]));
    // Another message takes the place of the answer.
    say_to(&server, "three", "client", "hello").await;
    assert_eq!(listed(&server, "").await, []);
    ask(&server, "two", "later", None).await;
    assert_eq!(listed(&server, "").await, pairs(&[("two", "request")]));
    let closed = server.post("/api/v1/threads/two/close", json!({})).await;
    assert_eq!(closed.status, 200, "{}", closed.text);
    assert_eq!(listed(&server, "").await, []);
}

#[tokio::test]
async fn lists_of_threads_tell_whether_something_waits() {
    let server = three().await;
    let threads = async |query: &str| {
        let list = server.get(&format!("/api/v1/threads{query}")).await.json();
        let threads = list["threads"].as_array().unwrap().iter();
        let pair = |it: &Value| (it["key"].as_str().unwrap().to_owned(), it["waits"] == true);
        threads.map(pair).collect::<Vec<_>>()
    };
    let waits = |key: &str| (key.to_owned(), true);
    let all = threads("").await;
    assert_eq!(
        all,
        [
            waits("three"),
            waits("two"),
            ("quiet".to_owned(), false),
            waits("one")
        ]
    );
    let only = [waits("three"), waits("two"), waits("one")];
    assert_eq!(threads("?waits=true").await, only);
    assert_eq!(threads("?waits=true&q=hello").await, [waits("two")]);
}

#[tokio::test]
async fn an_expired_request_waits_no_longer() {
    let server = Server::new(CONFIG).await;
    server.say("t", "hello").await;
    let end = jiff::Timestamp::now() + Duration::from_millis(600);
    ask(&server, "t", "soon", Some(&end.to_string())).await;
    assert_eq!(listed(&server, "").await, pairs(&[("t", "request")]));
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(listed(&server, "").await, []);
}

#[tokio::test]
async fn a_sub_agents_call_is_listed_once_on_the_thread_that_began_it() {
    let server = Server::new(TEAM).await;
    let query = json!({"query": "use compute 6 * 7"});
    server.say("t", &format!("find {query}")).await;
    server.at_rest("t").await;
    let entries = waiting(&server, "").await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    assert_eq!(
        (&entry["threadKey"], &entry["kind"]),
        (&json!("t"), &json!("approval"))
    );
    assert_eq!(entry["agent"], "finder");
    let call_thread = entry["callThreadKey"].as_str().unwrap();
    assert!(call_thread.starts_with("t/"), "{entry}");
    let answer =
        json!({"toolCallId": entry["toolCallId"], "threadKey": call_thread, "approved": false});
    let body = json!({"answers": [answer], "stream": true});
    let answered = server.post("/api/v1/threads/t/answers", body).await;
    assert_eq!(answered.status, 200, "{}", answered.text);
    assert_eq!(listed(&server, "").await, []);
}

#[tokio::test]
async fn a_fork_waits_with_the_calls_and_requests_that_it_inherits() {
    let server = Server::new(CONFIG).await;
    say_to(&server, "t", "a", "hello").await;
    ask(&server, "t", "seat", None).await;
    say_to(&server, "t", "a", "use compute 6 * 7").await;
    let made = server
        .post("/api/v1/threads/t/fork", json!({"key": "f"}))
        .await;
    assert_eq!(made.status, 201, "{}", made.text);
    let both = |key| [(key, "request"), (key, "approval")];
    let mut all = listed(&server, "").await;
    all.sort();
    let mut expected = pairs(&[both("f"), both("t")].concat());
    expected.sort();
    assert_eq!(all, expected);
}

/// Two tenants; of the first, a key that may only read, and one for some threads.
fn keys() -> String {
    let hash = hash_text;
    format!(
        "{CONFIG}\n[tenants.x]\nkey_hashes = [\"{}\"]\n[tenants.y]\nkey_hashes = [\"{}\"]\n\
         [tenants.x.keys.reader]\nhash = \"{}\"\nscopes = [\"read\"]\n\
         [tenants.x.keys.some]\nhash = \"{}\"\nthreads = [\"mine-*\", \"mine-1\", \"own\"]\n",
        hash("llk_x"),
        hash("llk_y"),
        hash("llk_reader"),
        hash("llk_some")
    )
}

#[tokio::test]
async fn a_key_sees_what_waits_in_its_threads_alone() {
    let server = Server::new(&keys()).await.with_key("llk_x");
    for key in ["secret", "mine-1", "mine-2", "own"] {
        say_to(&server, key, "a", "use compute 6 * 7").await;
    }
    say_to(&server, "secret-2", "a", "hello").await;
    ask(&server, "secret-2", "seat", None).await;
    assert_eq!(waiting(&server, "").await.len(), 5);
    let some = server.with_key("llk_some");
    let own = [
        ("mine-1", "approval"),
        ("mine-2", "approval"),
        ("own", "approval"),
    ];
    assert_eq!(listed(&some, "").await, pairs(&own));
    assert_eq!(listed(&some, "?prefix=mine").await, pairs(&own[..2]));
    assert_eq!(listed(&some, "?prefix=sec").await, []);
    assert_eq!(listed(&server.with_key("llk_y"), "").await, []);
    for entry in waiting(&server.with_key("llk_reader"), "").await {
        assert_eq!(entry["mayAnswer"], false, "{entry}");
    }
}

/// The frames of the feed until `is_enough`.
async fn feed(server: &Server, last: Option<&str>, is_enough: impl Fn(&str) -> bool) -> String {
    let mut request = server.request("GET", "/api/v1/events");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let request = request.body(Body::empty()).unwrap();
    server.read_until(request, is_enough).await
}

fn news(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let data = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
    data.filter(|data| data.get("thread").is_some()).collect()
}

#[tokio::test]
async fn the_feed_tells_the_changes_of_all_threads_and_resumes() {
    let server = Server::new(CONFIG).await;
    let waits = |text: &str| {
        news(text)
            .iter()
            .any(|it| it["thread"] == "t" && it["waits"] == true)
    };
    let (text, ()) = tokio::join!(feed(&server, None, waits), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        say_to(&server, "t", "a", "use compute 6 * 7").await;
    });
    assert!(text.lines().nth(1) == Some("event: ready"), "{text}");
    let last = news(&text).pop().unwrap();
    assert_eq!(last["status"], "open");
    assert_eq!(last["seq"], server.seq("t").await);
    let id = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("id: "));
    let id = id.unwrap().to_owned();
    say_to(&server, "u", "a", "hello").await;
    let has_u = |text: &str| news(text).iter().any(|it| it["thread"] == "u");
    let resumed = feed(&server, Some(&id), has_u).await;
    let told = news(&resumed);
    assert_eq!(told.last().unwrap()["waits"], false);
    let reset = |text: &str| text.contains("event: reset");
    // Another process has made this id.
    feed(&server, Some("1-0-1"), reset).await;
    let later = resumed
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("id: "));
    let later = later.unwrap().to_owned();
    assert_eq!(server.delete("/api/v1/threads/u").await.status, 204);
    say_to(&server, "v", "a", "hello").await;
    feed(&server, Some(&later), reset).await;
    let request = server.request("GET", "/api/v1/events");
    let request = request.header("last-event-id", "x").body(Body::empty());
    assert_eq!(server.send(request.unwrap()).await.status, 400);
}

#[tokio::test]
async fn the_feed_tells_a_key_of_its_threads_alone() {
    let server = Server::new(&keys()).await.with_key("llk_x");
    let some = server.with_key("llk_some");
    let has_own = |text: &str| news(text).iter().any(|it| it["thread"] == "own");
    let (text, ()) = tokio::join!(feed(&some, None, has_own), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        say_to(&server, "secret", "a", "hello").await;
        say_to(&server, "own", "a", "hello").await;
    });
    assert!(!text.contains("secret"), "{text}");
}
