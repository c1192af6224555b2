//! The inbox, and what a page's stream tells beside its thread.

use crate::harness::{Answer, Server, TEAM};
use crate::html_form::{forms, plausible};
use crate::waiting::ask;
use axum::body::Body;
use futures_util::StreamExt as _;
use http::header;
use loomline_server::auth::hash_text;
use serde_json::json;
use std::time::Duration;

const CONFIG: &str = r#"
[models.s]
provider = "scripted"
[agents.a]
model = "s"
tools = ["compute"]
requires_approval = ["compute"]
"#;

async fn page(client: &Server, path: &str) -> String {
    let request = client.request("GET", path);
    let request = request.header(header::ACCEPT, "text/html");
    let answer = client.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.text
}

async fn submit(client: &Server, action: &str, fields: &[(String, String)]) -> Answer {
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let request = client
        .request("POST", action)
        .header(header::ACCEPT, "text/html")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    client.send(request.body(body.into()).unwrap()).await
}

/// The ids of the entries on a page of the inbox.
fn entries(html: &str) -> Vec<String> {
    let pieces = html.split("data-entry=\"").skip(1);
    let ids = pieces.map(|piece| piece.split('"').next().unwrap().to_owned());
    ids.collect()
}

fn location(answer: &Answer) -> &str {
    assert_eq!(answer.status, 303, "{}", answer.text);
    answer.headers[header::LOCATION].to_str().unwrap()
}

#[tokio::test]
async fn an_empty_inbox_says_what_belongs_there() {
    let server = Server::new(CONFIG).await;
    let html = page(&server, "/inbox").await;
    assert!(html.contains("No entries. Calls that need"), "{html}");
    assert!(html.contains("<title>Inbox ·"), "{html}");
    let html = page(&server, "/inbox?kind=request&agent=&age=day").await;
    assert!(
        html.contains("kind request, waits more than a day"),
        "{html}"
    );
    assert!(html.contains("Clear the filter"));
    let refused = server.get("/inbox?kind=nothing").await;
    assert_eq!(refused.status, 400, "{}", refused.text);
}

#[tokio::test]
async fn a_call_is_allowed_from_the_inbox_without_a_script() {
    let server = Server::new(CONFIG).await;
    server.say("t", "use compute 6 * 7").await;
    let html = page(&server, "/inbox?kind=approval").await;
    assert!(html.contains("<title>(1) Inbox ·"), "{html}");
    assert!(forms(&html, "/ui/answer").is_empty());
    let id = entries(&html).remove(0);
    let html = page(&server, &format!("/inbox?kind=approval&open={id}")).await;
    assert!(
        html.contains("Previous messages") && html.contains("use compute 6 * 7"),
        "{html}"
    );
    let form = forms(&html, "/ui/answer").remove(0);
    let mut fields = form.filled(|_| None);
    fields.retain(|(name, _)| name != "verdict");
    fields.push(("verdict".to_owned(), "allow".to_owned()));
    let sent = submit(&server, "/ui/answer", &fields).await;
    assert_eq!(location(&sent), "/inbox?kind=approval");
    server.at_rest("t").await;
    let html = page(&server, "/inbox?kind=approval").await;
    assert!(
        entries(&html).is_empty() && html.contains("<title>Inbox ·"),
        "{html}"
    );
    let html = page(&server, "/chat/t").await;
    assert!(html.contains("compute gave 42"), "{html}");
}

#[tokio::test]
async fn a_form_returns_to_pages_of_this_server_alone() {
    let server = Server::new(CONFIG).await;
    for (n, evil) in [
        "//evil.example/",
        "https://evil.example/",
        "/\\evil.example",
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("t{n}");
        server.say(&key, "use compute 6 * 7").await;
        let pending = server.get(&format!("/api/v1/threads/{key}/pending")).await;
        let call = pending.json()["calls"][0]["toolCallId"]
            .as_str()
            .unwrap()
            .to_owned();
        let fields = [
            ("thread", key.as_str()),
            ("call", call.as_str()),
            ("verdict", "deny"),
            ("to", evil),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let sent = submit(&server, "/ui/answer", &fields).await;
        assert_eq!(location(&sent), format!("/chat/{key}"), "{evil}");
    }
}

#[tokio::test]
async fn a_request_is_answered_and_declined_from_the_inbox() {
    let server = Server::new(CONFIG).await;
    for key in ["one", "two"] {
        server.say(key, "hello").await;
        ask(&server, key, "seat", None).await;
    }
    let ids = entries(&page(&server, "/inbox").await);
    assert_eq!(ids.len(), 2);
    for (id, action) in ids.iter().zip(["/ui/request", "/ui/decline"]) {
        let html = page(&server, &format!("/inbox?open={id}")).await;
        let form = forms(&html, action).remove(0);
        let sent = submit(&server, action, &form.filled(plausible)).await;
        assert_eq!(location(&sent), "/inbox");
    }
    let html = page(&server, "/inbox").await;
    assert!(entries(&html).is_empty(), "{html}");
}

#[tokio::test]
async fn a_sub_agents_call_is_answered_from_the_inbox() {
    let server = Server::new(TEAM).await;
    let query = json!({"query": "use compute 6 * 7"});
    server.say("t", &format!("find {query}")).await;
    server.at_rest("t").await;
    let id = entries(&page(&server, "/inbox").await).remove(0);
    let html = page(&server, &format!("/inbox?open={id}")).await;
    assert!(html.contains("href=\"/chat/t\""), "{html}");
    let form = forms(&html, "/ui/answer").remove(0);
    let mut fields = form.filled(|_| None);
    fields.retain(|(name, _)| name != "verdict");
    fields.push(("verdict".to_owned(), "deny".to_owned()));
    let sent = submit(&server, "/ui/answer", &fields).await;
    assert_eq!(location(&sent), "/inbox");
    assert!(entries(&page(&server, "/inbox").await).is_empty());
}

#[tokio::test]
async fn a_key_that_only_reads_gets_no_form() {
    let config = format!(
        "{CONFIG}[tenants.x]\nkey_hashes = [\"{}\"]\n[tenants.x.keys.r]\nhash = \"{}\"\nscopes = [\"read\"]\n",
        hash_text("llk_x"),
        hash_text("llk_r")
    );
    let server = Server::new(&config).await.with_key("llk_x");
    server.say("t", "hello").await;
    ask(&server, "t", "seat", None).await;
    server.say("u", "use compute 6 * 7").await;
    let reader = server.with_key("llk_r");
    for id in entries(&page(&reader, "/inbox").await) {
        let html = page(&reader, &format!("/inbox?open={id}")).await;
        assert!(html.contains("may only read"), "{html}");
        assert!(!html.contains("method=\"post\" action=\"/ui/"), "{html}");
    }
}

/// What a page's stream sends until `is_enough`.
async fn live(server: &Server, query: &str, is_enough: impl Fn(&str) -> bool) -> String {
    let request = server.request("GET", &format!("/ui/live?{query}"));
    let (status, mut body) = server.open(request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, 200);
    let read = async {
        let mut text = String::new();
        while !is_enough(&text) {
            let piece = body.next().await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        text
    };
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    read.unwrap_or_else(|_| panic!("the stream does not tell it: {query}"))
}

#[tokio::test]
async fn a_page_without_a_thread_hears_of_new_threads_and_entries() {
    let server = Server::new(CONFIG).await;
    let waits = |text: &str| text.contains("A new approval waits in t.");
    let (text, ()) = tokio::join!(live(&server, "list=1&inbox=", waits), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.say("t", "use compute 6 * 7").await;
    });
    assert!(
        text.contains("rail-threads") && text.contains("/chat/t"),
        "{text}"
    );
    assert!(text.contains("data-count=\\\"1\\\""), "{text}");
    let id = entries(&text.replace("\\\"", "\"")).remove(0);
    let answered = |text: &str| text.contains("An entry is done.");
    let query = format!("list=1&inbox={id}");
    let (text, ()) = tokio::join!(live(&server, &query, answered), async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        server.say("t", "hello").await;
    });
    assert!(!text.contains("A new approval"), "{text}");
}

#[tokio::test]
async fn the_stream_of_a_threads_page_has_the_list_too() {
    let server = Server::new(CONFIG).await;
    server.say("t", "hello").await;
    let query = format!("thread=t&after={}&list=1", server.seq("t").await);
    let has_both = |text: &str| text.contains("/chat/other") && text.contains("m-");
    let (text, ()) = tokio::join!(live(&server, &query, has_both), async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        server.say("other", "hello").await;
        server.say("t", "hello again").await;
    });
    assert!(text.contains("id: "), "{text}");
}
