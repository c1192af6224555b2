//! The console's pages of threads, runs and events.

use crate::harness::{Answer, Server, TEAM};
use crate::recorded::{log, server_with};
use futures_util::StreamExt as _;
use http::header;
use loomline_server::auth::hash_text;
use serde_json::{Value, json};
use std::time::Duration;

/// Asks for a page, as a browser does.
async fn ask(client: &Server, path: &str) -> Answer {
    let request = client.request("GET", path);
    let request = request.header(header::ACCEPT, "text/html");
    client.send(request.body("".into()).unwrap()).await
}

async fn page(client: &Server, path: &str) -> String {
    let answer = ask(client, path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    assert!(answer.headers.contains_key("content-security-policy"));
    answer.text
}

fn has(html: &str, parts: &[&str]) {
    for part in parts {
        assert!(html.contains(part), "{part} is missing: {html}");
    }
}

/// The ids of a thread's runs.
async fn runs(server: &Server, key: &str) -> Vec<String> {
    let runs = server.get(&format!("/api/v1/threads/{key}/runs")).await;
    let runs = runs.json()["runs"].clone();
    let id = |run: &Value| run["id"].as_str().unwrap().to_owned();
    runs.as_array().unwrap().iter().map(id).collect()
}

/// The numbers of the first events of the rows.
fn rows(html: &str) -> Vec<u64> {
    let pieces = html.split("<tr id=\"e-").skip(1);
    let number = |piece: &str| piece.split('"').next().unwrap().parse().unwrap();
    pieces.map(number).collect()
}

/// The address of a link with this text.
fn link(html: &str, text: &str) -> Option<String> {
    let before = html.split(&format!(">{text}</a>")).next()?;
    if before.len() == html.len() {
        return None;
    }
    let tag = before.rsplit("<a ").next()?;
    let address = tag.split("href=\"").nth(1)?.split('"').next()?;
    Some(address.replace("&amp;", "&"))
}

#[tokio::test]
async fn the_list_finds_threads_by_words_and_filters() {
    let server = Server::new("").await;
    let empty = page(&server, "/console").await;
    has(&empty, &["No threads yet", "href=\"/chat\""]);
    server.say("one", "Fly to Lima <b>now").await;
    server.say("two", "compute 1 + 1").await;
    server
        .post(
            "/api/v1/threads",
            json!({"key": "three", "title": "<i>Lima"}),
        )
        .await;
    server
        .post("/api/v1/threads/one/fork", json!({"key": "branch"}))
        .await;

    let all = page(&server, "/console?q=&status=&agent=&since=").await;
    has(
        &all,
        &[
            "href=\"/console/t/one\"",
            "fork of <bdi>one</bdi>",
            "demo",
            "compute gave 2.",
        ],
    );
    let found = page(&server, "/console?q=lima").await;
    has(
        &found,
        &[
            "&lt;i&gt;<mark>Lima</mark>",
            "Fly to <mark>Lima</mark> &lt;b&gt;now",
        ],
    );
    assert!(!found.contains("/console/t/two"), "{found}");
    let filtered = page(&server, "/console?agent=demo&status=open&since=2020-01-01").await;
    has(&filtered, &["/console/t/two", "value=\"2020-01-01\""]);
    let none = page(
        &server,
        "/console?q=lima&status=closed&agent=nobody&since=2200-01-01",
    )
    .await;
    has(
        &none,
        &[
            "“<bdi>lima</bdi>”",
            "status “closed”",
            "<bdi>nobody</bdi>",
            "Clear the filter",
        ],
    );
    crate::waiting::ask(&server, "three", "seat", None).await;
    let pending = page(&server, "/console?waits=true").await;
    has(&pending, &["/console/t/three", "data-state=\"waits\""]);
    assert!(!pending.contains("/console/t/two"), "{pending}");
    let wrong = server.get("/console?waits=often").await;
    assert_eq!(wrong.status, 400, "{}", wrong.text);
}

#[tokio::test]
async fn pages_of_the_list_have_each_thread_once() {
    let server = Server::new("").await;
    for n in 0..60 {
        let new = json!({"key": format!("t-{n}")});
        server.post("/api/v1/threads", new).await;
    }
    let first = page(&server, "/console?status=open").await;
    let next = link(&first, "Next page").expect("there is another page");
    assert!(next.starts_with("/console?status=open&cursor="), "{next}");
    let second = page(&server, &next).await;
    let n_threads = |html: &str| html.matches("href=\"/console/t/t-").count();
    assert_eq!((n_threads(&first), n_threads(&second)), (50, 10));
    assert_eq!(link(&second, "Next page"), None);
    assert_eq!(
        link(&second, "First page").as_deref(),
        Some("/console?status=open")
    );
}

#[tokio::test]
async fn a_bad_address_is_refused_with_the_reason() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    let run = format!("/console/t/t/run/{}", runs(&server, "t").await[0]);
    for (path, reason) in [
        ("/console?cursor=x", "cursor is not the"),
        ("/console?status=odd", "expected open, streaming"),
        ("/console?since=yesterday", "expected a day"),
        ("/console/t/t?before=x", "invalid digit"),
        (
            "/console/t/t/events?view=odd",
            "expected compact, full or raw",
        ),
        (
            "/console/t/t/events?type=odd",
            "expected the type of an event",
        ),
        ("/console/t/t/events?after=9999", "the last event is"),
        (
            "/console/t/t/events?after=1&before=3",
            "either after or before",
        ),
        (&format!("{run}?at=0"), "expected an event from 1 to"),
        (&format!("{run}?at=9999"), "expected an event from 1 to"),
    ] {
        let answer = ask(&server, path).await;
        assert_eq!(answer.status, 400, "{path}");
        has(&answer.text, &["invalid_query", reason]);
    }
}

#[tokio::test]
async fn an_unknown_thread_or_run_has_an_error_page() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    for path in [
        "/console/t/none",
        "/console/t/none/events",
        "/console/t/none/run/none",
        "/console/t/t/run/none",
        "/console/none",
    ] {
        let answer = ask(&server, path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        has(&answer.text, &["Not found"]);
    }
}

#[tokio::test]
async fn a_key_for_some_threads_sees_no_others() {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    let config = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"mine-*\"]\nscopes = [\"read\", \"inspect\"]\n"
    );
    let all = Server::new(&config).await.with_key("llk_all");
    let some = all.with_key("llk_some");
    all.say("mine-1", "word").await;
    all.say("secret", "word").await;
    let run = runs(&all, "secret").await.remove(0);
    for path in [
        "/console/t/secret".to_owned(),
        "/console/t/secret/events".to_owned(),
        format!("/console/t/secret/run/{run}"),
        "/ui/events?thread=secret&after=0".to_owned(),
        format!("/console/t/mine-1/run/{run}"),
    ] {
        let answer = ask(&some, &path).await;
        assert!([403, 404].contains(&answer.status.as_u16()), "{path}");
        assert!(!answer.text.contains("You said"), "{path}");
    }
    for path in ["/console", "/console?q=word"] {
        let list = page(&some, path).await;
        assert!(
            list.contains("mine-1") && !list.contains("secret"),
            "{list}"
        );
    }
    let own = runs(&all, "mine-1").await.remove(0);
    let own = page(&some, &format!("/console/t/mine-1/run/{own}")).await;
    assert!(
        !own.contains("/ui/fork"),
        "a key that reads can't fork: {own}"
    );
}

#[tokio::test]
async fn a_timeline_has_each_run_with_its_agent_and_tools() {
    let server = Server::new("").await;
    server.post("/api/v1/threads", json!({"key": "t"})).await;
    let empty = page(&server, "/console/t/t").await;
    has(&empty, &["This thread has none yet"]);
    server
        .say("t", "compute 1 + 1 then compute 2 + 2 <b>")
        .await;
    server.say("t", "Good morning").await;
    let html = page(&server, "/console/t/t").await;
    let ids = runs(&server, "t").await;
    has(
        &html,
        &[
            &format!("/console/t/t/run/{}", ids[0]),
            "compute 1 + 1 then compute 2 + 2 &lt;b&gt;",
            "<code>compute</code> ×2",
            "Good morning",
            "/chat/t?at=",
        ],
    );
    let (first, second) = (html.find(&ids[0]).unwrap(), html.find(&ids[1]).unwrap());
    assert!(first < second, "oldest first");
    assert_eq!(link(&html, "Earlier runs"), None);
    let earlier = page(&server, "/console/t/t?before=12").await;
    assert!(link(&earlier, "Newest runs").is_some());
}

#[tokio::test]
async fn a_long_timeline_has_pages() {
    let server = Server::new("").await;
    for n in 0..30 {
        server.begin("t", &format!("message {n}.")).await;
    }
    server.at_rest("t").await;
    let newest = page(&server, "/console/t/t").await;
    let earlier = link(&newest, "Earlier runs").expect("there are earlier runs");
    let earlier = page(&server, &earlier).await;
    for id in runs(&server, "t").await {
        let n = [&newest, &earlier]
            .iter()
            .filter(|html| html.contains(&id))
            .count();
        assert!(n >= 1, "{id} is on no page");
    }
}

#[tokio::test]
async fn a_run_has_its_times_steps_and_places_in_the_thread() {
    let server = Server::new("").await;
    server.say("t", "compute 6 * 7").await;
    let id = runs(&server, "t").await.remove(0);
    let html = page(&server, &format!("/console/t/t/run/{id}")).await;
    has(
        &html,
        &[
            "Run of <bdi>demo</bdi>",
            "table class=\"waterfall\"",
            "<code>compute</code> <span class=\"first\" dir=\"auto\">expression: 6 * 7</span>",
            "first token after",
            "id=\"step-0\"",
            "id=\"step-1\"",
            "Stop reason",
            "Result of <code>compute</code>",
            "compute gave 42.",
            "action=\"/ui/fork\"",
            "/chat/t?at=",
        ],
    );
    let tail = server.seq("t").await;
    let last = page(&server, &format!("/console/t/t/run/{id}?at={tail}")).await;
    has(&last, &["thread.finished"]);
    assert_eq!(link(&last, "Event after"), None);
    let before = link(&last, "Event before").unwrap();
    assert_eq!(
        before,
        format!("/console/t/t/run/{id}?at={}#replay", tail - 1)
    );
}

#[tokio::test]
async fn a_run_that_waits_names_the_call_and_its_answer_follows() {
    let server = Server::new(TEAM).await;
    let asked = "find {\"query\": \"use compute 6 * 7\"}";
    server.say("t", asked).await;
    let id = runs(&server, "t").await.remove(0);
    let path = format!("/console/t/t/run/{id}");
    let html = page(&server, &path).await;
    has(
        &html,
        &[
            "waits for a sub-agent",
            "sub-agent <a href=\"/ui/console/",
            "<bdi>find</bdi>",
            "left open",
        ],
    );
    let timeline = page(&server, "/console/t/t").await;
    has(&timeline, &["waits for 1 answer"]);
    let child = html.split("href=\"/ui/console/").nth(1).unwrap();
    let child = child.split('"').next().unwrap();
    let answer = ask(&server, &format!("/ui/console/{child}")).await;
    assert_eq!(answer.status, 303);
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let child = page(&server, &location).await;
    has(&child, &["finder", "waits for 1 answer"]);
    let child_run = link_to_run(&child);
    let child_run = page(&server, &child_run).await;
    has(
        &child_run,
        &["waits for a person: approve", "needs approval"],
    );

    let pending = server.get("/api/v1/threads/t/pending").await.json();
    let calls = pending["calls"].as_array().unwrap();
    let call = calls.iter().find(|call| call["kind"] == "approval");
    let call = call.unwrap_or_else(|| panic!("{pending}"));
    let answers = json!({"answers": [{"toolCallId": call["toolCallId"], "threadKey": call["threadKey"], "approved": true}]});
    let answered = server.post("/api/v1/threads/t/answers", answers).await;
    assert!(answered.status.is_success(), "{}", answered.text);
    for _ in 0..100 {
        if runs(&server, "t").await.len() > 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.at_rest("t").await;
    let html = page(&server, &path).await;
    let next = runs(&server, "t").await.remove(1);
    has(&html, &["answered", "in the next run", &next]);
}

/// The first link to a run.
fn link_to_run(html: &str) -> String {
    let address = html.split("href=\"").skip(1);
    let mut runs = address.filter(|link| link.split('"').next().unwrap().contains("/run/"));
    runs.next().unwrap().split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_fork_shows_the_runs_it_shares_without_replay() {
    let server = Server::new("").await;
    server.say("t", "Good morning").await;
    server
        .post("/api/v1/threads/t/fork", json!({"key": "f"}))
        .await;
    server.say("f", "Good evening").await;
    let ids = runs(&server, "f").await;
    let timeline = page(&server, "/console/t/f").await;
    has(&timeline, &["in the parent", "at event"]);
    let shared = page(&server, &format!("/console/t/f/run/{}", ids[0])).await;
    has(&shared, &["Replay it there"]);
    assert!(!shared.contains("/chat/f?at="), "{shared}");
    let own = page(&server, &format!("/console/t/f/run/{}", ids[1])).await;
    has(&own, &["/chat/f?at=", "Fork after the run"]);
    let seq = own.split("from event ").nth(1).unwrap();
    let seq: u64 = seq.split('<').next().unwrap().parse().unwrap();
    let events = page(
        &server,
        &format!("/console/t/f/events?view=full&after={}", seq - 1),
    )
    .await;
    assert!(events.contains(&format!(
        "<tr id=\"e-{seq}\" data-type=\"execution.created\""
    )));
}

#[tokio::test]
async fn the_page_of_a_crashed_run_shows_the_voided_attempt() {
    let records = log("crashed_in_its_text").unwrap();
    let server = server_with("crashed_in_its_text", &records).await;
    let id = runs(&server, "k").await.remove(0);
    let html = page(&server, &format!("/console/t/k/run/{id}")).await;
    has(
        &html,
        &[
            "⚠ server crashed and restarted",
            "attempt voided · kept: 0 steps, 0 results · resumed at event <a",
            "step 0 · attempt voided",
            "the process stopped · void: events 11…17, 6 chunks",
            "(again)",
            "1 attempt voided",
            "voided: the process stopped",
        ],
    );
    let events = page(&server, "/console/t/k/events").await;
    has(
        &events,
        &[
            "⚠ data-execution-resumed · another process resumes the run",
            "⚠ data-step-reset · the attempt is void",
            "×2",
        ],
    );
}

#[tokio::test]
async fn every_recorded_thread_has_console_pages() {
    for name in [
        "crashed_again_and_again",
        "crashed_while_tools_run",
        "chunks_of_every_kind",
        "handoff_then_approval",
        "tools_in_parallel",
        "cancelled_in_its_text",
        "removed_and_renamed",
        "rewound",
        "subagent_answered",
        "model_fails_in_its_text",
    ] {
        let records = log(name).unwrap_or_else(|| panic!("there is no log {name}"));
        let server = server_with(name, &records).await;
        page(&server, "/console/t/k").await;
        for view in ["compact", "full", "raw"] {
            page(&server, &format!("/console/t/k/events?view={view}")).await;
        }
        for id in runs(&server, "k").await {
            let html = page(&server, &format!("/console/t/k/run/{id}")).await;
            assert!(html.contains("table class=\"waterfall\""), "{name}: {html}");
        }
    }
}

#[tokio::test]
async fn pages_of_a_log_have_each_event_once_in_both_directions() {
    let server = Server::new("").await;
    for n in 0..20 {
        server.begin("t", &format!("message {n}.")).await;
    }
    server.begin("t", "slow 40ms say 10 words").await;
    server.at_rest("t").await;
    let tail = server.seq("t").await;
    assert!(tail > 250, "{tail}");
    let all: Vec<u64> = (1..=tail).collect();
    for (start, step) in [
        ("/console/t/t/events?view=full", "Older events"),
        ("/console/t/t/events?view=full&after=0", "Newer events"),
    ] {
        let mut seen = Vec::new();
        let mut path = Some(start.to_owned());
        while let Some(at) = path {
            let html = page(&server, &at).await;
            let rows = rows(&html);
            assert!(rows.len() <= 200, "{at}");
            seen.extend(rows);
            path = link(&html, step);
        }
        seen.sort_unstable();
        assert_eq!(seen, all, "{step}");
    }
    let compact = page(&server, "/console/t/t/events").await;
    let n_rows = rows(&compact).len();
    assert!(compact.contains(" ×") && n_rows <= 200);
    let typed = page(&server, "/console/t/t/events?type=execution.created").await;
    assert_eq!(rows(&typed).len(), 21);
    let none = page(&server, "/console/t/t/events?type=part.updated").await;
    has(
        &none,
        &["No event <code>part.updated</code>", "Show all types"],
    );
    let raw = page(&server, "/console/t/t/events?view=raw").await;
    has(&raw, &["&quot;type&quot;: &quot;thread.finished&quot;"]);
}

#[tokio::test]
async fn a_log_page_is_live_only_at_the_end() {
    let server = Server::new("").await;
    for n in 0..20 {
        server.begin("t", &format!("message {n}.")).await;
    }
    server.at_rest("t").await;
    let newest = page(&server, "/console/t/t/events?view=full").await;
    has(
        &newest,
        &[&format!("data-after=\"{}.", server.seq("t").await)],
    );
    let oldest = page(&server, "/console/t/t/events?view=full&after=0").await;
    assert!(!oldest.contains("data-after"), "{oldest}");
}

#[tokio::test]
async fn a_live_log_sends_the_rows_of_new_events() {
    let server = Server::new("").await;
    server.say("t", "Good morning").await;
    let html = page(&server, "/console/t/t/events").await;
    let after = html.split("data-after=\"").nth(1).unwrap();
    let after = after.split('"').next().unwrap();
    let path = format!("/ui/events?thread=t&after={after}&view=compact&type=");
    let request = server.request("GET", &path).body("".into()).unwrap();
    let (status, mut stream) = server.open(request).await;
    assert_eq!(status, 200);
    server.begin("t", "slow 40ms say 20 words <b>").await;
    let mut text = String::new();
    while !text.contains("thread.finished") {
        let next = tokio::time::timeout(Duration::from_secs(20), stream.next());
        let bytes = next.await.expect("the stream has more").unwrap().unwrap();
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    has(
        &text,
        &[
            "event: patch",
            "\"op\":\"append\",\"id\":\"events\"",
            "\"op\":\"put\"",
            "&lt;b&gt;",
        ],
    );
    let path = format!(
        "/ui/events?thread=t&after={}&view=full",
        after.replace('.', ".0")
    );
    let refused = ask(&server, &path).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let foreign = ask(&server, "/ui/events?thread=t&after=1.00000000").await;
    has(&foreign.text, &["\"op\":\"reload\""]);
}

#[tokio::test]
async fn hostile_titles_keys_and_tools_are_only_text() {
    let server = Server::new("").await;
    let key = "<script>k&\"'";
    let title = "</title><script>alert(1)</script>\u{202e}";
    server
        .post("/api/v1/threads", json!({"key": key, "title": title}))
        .await;
    let path = format!("/{}", "%3Cscript%3Ek%26%22%27");
    let said = server
        .say(&path[1..], "compute <script>alert(2)</script>")
        .await;
    assert_eq!(said.status, 200);
    let listed = server
        .get(&format!("/api/v1/threads{path}/runs"))
        .await
        .json();
    let id = listed["runs"][0]["id"].as_str().unwrap().to_owned();
    for path in [
        "/console".to_owned(),
        "/console?q=%3Cscript%3E&agent=%3Cscript%3E".to_owned(),
        format!("/console/t{path}"),
        format!("/console/t{path}/run/{id}"),
        format!("/console/t{path}/events?view=full"),
        format!("/console/t{path}/events?view=raw"),
    ] {
        let html = page(&server, &path).await;
        let own = html
            .matches("<script type=\"module\" src=\"/assets/")
            .count();
        assert_eq!(html.matches("<script").count(), own, "{path}: {html}");
        assert!(!html.contains('\u{202e}'), "{path}");
    }
}
