//! The log as a stream: live, replayed, resumed.

use crate::harness::{Served, Server, frames, names};
use axum::body::Body;
use futures_util::{FutureExt, StreamExt};
use http::header;
use serde_json::json;

#[tokio::test]
async fn sse_resumes_after_last_event_id() {
    let server = Server::new("").await;
    server.say("t", "use compute 2 + 3").await;
    let all = server.at_rest("t").await;
    assert_eq!(
        all.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        (1..=all.len() as u64).collect::<Vec<_>>()
    );
    assert!(
        all.iter()
            .all(|(id, event)| event["seq"] == json!(id) && event["at"].is_string())
    );
    for cut in [0, 1, 7, all.len() - 1, all.len()] {
        let request = server.request("GET", "/api/v1/threads/t/events?until=rest&after=3");
        let request = request.header("last-event-id", cut.to_string());
        let rest = server
            .send(request.body(Body::empty()).unwrap())
            .await
            .events();
        assert_eq!(rest, all[cut..], "after {cut}");
    }
}

#[tokio::test]
async fn a_place_beyond_the_end_is_refused_and_hides_nothing() {
    let server = Server::new("").await;
    server.say("t", "hi").await;
    let n_events = server.at_rest("t").await.len();
    let ask = async |id: usize, accept: &'static str| {
        let request = server.request("GET", "/api/v1/threads/t/events?until=rest");
        let request = request.header("last-event-id", id.to_string());
        let request = request.header(header::ACCEPT, accept);
        server.send(request.body(Body::empty()).unwrap()).await
    };
    for accept in ["text/event-stream", "application/json"] {
        assert_eq!(ask(n_events, accept).await.status, 200);
        let refused = ask(n_events + 1, accept).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "ahead_of_log");
        assert_eq!(error["details"], json!({ "tail": n_events }));
    }
    let path = "/api/v1/threads/t/events?subagents=true";
    let request = server
        .request("GET", path)
        .header(header::ACCEPT, "application/json");
    let refused = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(
        refused.status, 400,
        "a page has no sub-agents: {}",
        refused.text
    );
}

#[tokio::test]
async fn a_client_that_reconnects_again_and_again_misses_nothing_and_sees_nothing_twice() {
    let server = Server::new("").await;
    let host = Served::new(server.app.clone()).await;
    let client = upp::http_client_builder("test").unwrap().build().unwrap();
    server.begin("t", "slow 5ms say 120 words").await;
    let mut seen: Vec<(u64, serde_json::Value)> = Vec::new();
    let mut last = "0".to_owned();
    let url = host.url("/api/v1/threads/t/events?until=rest");
    loop {
        let mut response = client
            .get(&url)
            .header("last-event-id", &last)
            .send()
            .await
            .unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut text = String::new();
        let mut ended = false;
        // Each connection is dropped after its third piece.
        for _ in 0..3 {
            let Some(piece) = response.chunk().await.unwrap() else {
                ended = true;
                break;
            };
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        let whole = text.rfind("\n\n").map_or("", |end| &text[..end + 2]);
        seen.extend(frames(whole));
        if let Some(id) = ids(whole).last() {
            last = (*id).to_owned();
        }
        if ended {
            break;
        }
    }
    assert_eq!(seen, server.at_rest("t").await);
    assert_eq!(names(&seen).last(), Some(&"thread.finished"));
    host.stop().await;
}

#[tokio::test]
async fn a_page_of_json_has_the_same_events() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    let all = server.at_rest("t").await;
    let request = server
        .request("GET", "/api/v1/threads/t/events?after=2&limit=3")
        .header(header::ACCEPT, "application/json");
    let page = server
        .send(request.body(Body::empty()).unwrap())
        .await
        .json();
    let expected: Vec<_> = all[2..5].iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(page, json!({ "events": expected, "last": 5, "more": true }));
}

#[tokio::test]
async fn disconnecting_does_not_cancel() {
    let server = Server::new("").await;
    let request = server
        .request("POST", "/api/v1/threads/t/messages")
        .header(header::CONTENT_TYPE, "application/json");
    let body = json!({ "content": "slow 10ms say 30 words", "stream": true }).to_string();
    let (status, mut stream) = server.open(request.body(Body::from(body)).unwrap()).await;
    assert_eq!(status, 200);
    stream.next().await.unwrap().unwrap();
    drop(stream);
    server.at_rest("t").await;
    let run = server.get("/api/v1/threads/t/runs").await.json()["runs"][0].clone();
    assert_eq!(
        (&run["status"], &run["interruption"]),
        (&json!("completed"), &json!(null))
    );
}

#[tokio::test]
async fn only_so_many_streams_are_open_at_once() {
    let server = Server::new("[limits]\nstreams = 1").await;
    server.say("t", "hello").await;
    let follow = || {
        server
            .request("GET", "/api/v1/threads/t/events")
            .body(Body::empty())
            .unwrap()
    };
    let (_, first) = server.open(follow()).await;
    let seq = server.seq("t").await;
    assert_eq!(server.send(follow()).await.error().1, "limit_reached");
    let message = json!({ "content": "more", "stream": true });
    let answer = server.post("/api/v1/threads/t/messages", message).await;
    assert_eq!(
        (answer.error().1.as_str(), server.seq("t").await),
        ("limit_reached", seq)
    );
    drop(first);
    assert_eq!(server.at_rest("t").await.len() as u64, seq);
}

#[tokio::test]
async fn a_stream_shows_what_comes_while_it_is_open() {
    let server = Server::new("").await;
    server.post("/api/v1/threads", json!({ "key": "t" })).await;
    let request = server
        .request("GET", "/api/v1/threads/t/events?after=2&limit=5")
        .body(Body::empty())
        .unwrap();
    let (_, mut stream) = server.open(request).await;
    assert!(stream.next().now_or_never().is_none(), "it waits");
    server.begin("t", "hello").await;
    let pieces: Vec<_> = stream.map(|piece| piece.unwrap()).collect().await;
    let text = String::from_utf8(pieces.concat()).unwrap();
    assert_eq!(
        frames(&text).iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [3, 4, 5, 6, 7]
    );
}

#[tokio::test]
async fn a_shutdown_ends_streams_and_the_run_goes_on_at_the_next_start() {
    let first = Server::new("").await;
    let host = Served::new(first.app.clone()).await;
    first.begin("t", "slow 20ms say 40 words").await;
    let client = upp::http_client_builder("test").unwrap().build().unwrap();
    let mut response = client
        .get(host.url("/api/v1/threads/t/events"))
        .send()
        .await
        .unwrap();
    response.chunk().await.unwrap().unwrap();
    host.stop().await;
    while response.chunk().await.unwrap().is_some() {}
    let Server {
        app,
        router,
        directory,
        ..
    } = first;
    drop((app, router));
    let second = Server::at(directory, "").await;
    let events = second.at_rest("t").await;
    assert_eq!(names(&events).last(), Some(&"thread.finished"));
    let messages = second.get("/api/v1/threads/t/messages").await.json();
    let said = messages["messages"][1]["content"][0]["text"]
        .as_str()
        .unwrap();
    assert_eq!(said.split_whitespace().count(), 40);
}

/// The ids of the frames of a stream, as they came.
fn ids(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter_map(|line| line.strip_prefix("id: ")).collect()
}

async fn resumed(server: &Server, query: &str, id: &str) -> crate::harness::Answer {
    let path = format!("/api/v1/threads/t/events?until=rest{query}");
    let request = server.request("GET", &path).header("last-event-id", id);
    server.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn an_event_id_names_its_thread_and_resumes_after_it() {
    let server = Server::new("").await;
    let live = server.say("t", "slow 40ms say 5 words").await.text;
    let path = "/api/v1/threads/t/events?until=rest";
    let all = server.get(path).await.text;
    let all = ids(&all);
    let live = ids(&live);
    // Chunks that are not stored yet have ids with a counter.
    let (unstored, stored): (Vec<&str>, Vec<&str>) =
        live.iter().partition(|id| id.split('.').count() == 3);
    assert!(!unstored.is_empty() && stored.iter().all(|id| all.contains(id)));
    let (position, incarnation) = all[4].split_once('.').unwrap();
    assert_eq!(position, "5");
    assert_eq!(incarnation.len(), 8, "{incarnation}");
    assert!(all.iter().all(|id| id.ends_with(incarnation)), "{all:?}");
    for query in ["", "&subagents=true"] {
        for id in &live {
            let mut parts = id.split('.');
            let seq: usize = parts.next().unwrap().parse().unwrap();
            let n_ahead: usize = parts.nth(1).map_or(0, |part| part.parse().unwrap());
            let rest = resumed(&server, query, id).await;
            assert_eq!(ids(&rest.text), all[seq + n_ahead..], "{query} {id}");
        }
        // A position alone is of any thread.
        for id in [all[4], "5"] {
            let rest = resumed(&server, query, id).await;
            assert_eq!(ids(&rest.text), all[5..], "{query} {id}");
        }
    }
    let after = server.get(&format!("{path}&after={}", all[4])).await;
    assert_eq!(ids(&after.text), all[5..]);
    let other = server.say("u", "hello").await.text;
    assert!(!ids(&other)[0].ends_with(incarnation));
}

#[tokio::test]
async fn an_event_id_of_a_deleted_and_recreated_thread_is_refused() {
    let server = Server::new("").await;
    let first = server.say("t", "hello").await.text;
    let old = ids(&first)[3].to_owned();
    assert_eq!(server.delete("/api/v1/threads/t").await.status, 204);
    let second = server.say("t", "hello again").await.text;
    let new = ids(&second)[3].to_owned();
    for query in ["", "&subagents=true"] {
        let refused = resumed(&server, query, &old).await;
        let error = refused.error();
        assert_eq!(error, (409, "foreign_event_id".into(), None), "{query}");
        assert_eq!(resumed(&server, query, &new).await.status, 200);
    }
    let path = format!("/api/v1/threads/t/events?after={old}");
    let request = server.request("GET", &path);
    let request = request.header(header::ACCEPT, "application/json");
    let refused = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(refused.error().1, "foreign_event_id");
    let longer = resumed(&server, "", &format!("{new}.1.1")).await;
    assert_eq!(longer.error().1, "invalid_header");
}
