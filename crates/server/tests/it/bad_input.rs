//! What a client does wrong changes nothing, and is told with a stable code.

use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

const MESSAGES: &str = "/api/v1/threads/t/messages";

async fn thread() -> Server {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    server
}

/// Does `ask`; the log must be what it was, and the server must go on.
async fn refused(
    server: &Server,
    ask: impl Future<Output = Answer>,
) -> (u16, String, Option<String>) {
    let before = server.seq("t").await;
    let answer = ask.await;
    assert_eq!(server.seq("t").await, before);
    assert_eq!(server.get("/healthz").await.status, 200);
    answer.error()
}

fn typed(status: u16, code: &str, pointer: Option<&str>) -> (u16, String, Option<String>) {
    (status, code.to_owned(), pointer.map(str::to_owned))
}

#[tokio::test]
async fn a_connection_that_ends_with_a_body_unread_says_so() {
    let server = Server::new("[server]\nmax_body_bytes = 1000\n").await;
    let large = format!("\"{}\"", "a".repeat(1000));
    for (path, body, connection) in [
        ("/nowhere", "{}", Some("close")),
        (MESSAGES, &large, Some("close")),
        ("/nowhere", "", None),
        (MESSAGES, "{", None),
        (MESSAGES, "{\"content\": \"hello\"}", None),
    ] {
        let answer = server.post_text(path, body.to_owned()).await;
        let told = answer.headers.get(header::CONNECTION);
        let told = told.map(|it| it.to_str().unwrap());
        assert_eq!(told, connection, "{path} {}", answer.text);
    }
}

#[tokio::test]
async fn malformed_json_is_refused_with_its_place() {
    let server = thread().await;
    for body in [
        "",
        "{",
        "{\"content\": }",
        "nul",
        "{\"content\":\"a\"} x",
        "{\"content\":\"a\",\"content\":\"b\"}",
    ] {
        assert_eq!(
            refused(&server, server.post_text(MESSAGES, body)).await,
            typed(400, "malformed_json", None),
            "{body}"
        );
    }
    assert_eq!(
        refused(&server, server.post_text(MESSAGES, &b"\"\xff\""[..])).await,
        typed(400, "malformed_json", None)
    );
    let answer = server
        .post_text(MESSAGES, "{\n  \"content\": }")
        .await
        .json();
    assert_eq!(
        answer["error"]["details"],
        json!({ "line": 2, "column": 14 })
    );
}

#[tokio::test]
async fn a_field_of_the_wrong_type_is_pointed_at() {
    let server = thread().await;
    for (body, pointer) in [
        (json!({ "content": 5 }), "/content"),
        (json!({ "content": [] }), "/content"),
        (json!({ "content": { "type": "input_text" } }), "/content"),
        (json!({ "content": ["a"] }), "/content/0"),
        (
            json!({ "content": [{ "type": "sparkle" }] }),
            "/content/0/type",
        ),
        (
            json!({ "content": [{ "type": "input_text", "text": "a" }, { "type": "input_text", "text": 1 }] }),
            "/content/1/text",
        ),
        (
            json!({ "content": [{ "type": "output_text", "text": "a" }] }),
            "/content/0/type",
        ),
        (
            json!({ "content": [{ "type": "input_text", "text": "a" }, { "type": "reasoning", "text": "b" }] }),
            "/content/1/type",
        ),
        (
            json!({ "content": [{ "type": "refusal", "refusal": "a" }] }),
            "/content/0/type",
        ),
        (
            json!({ "content": [{ "type": "tool-compute", "toolCallId": "c", "state": "output-available" }] }),
            "/content/0/type",
        ),
        (json!({ "content": "a", "agent": 7 }), "/agent"),
        (json!({ "content": "a", "policy": "maybe" }), "/policy"),
        (json!({ "content": "a", "maxSteps": 0 }), "/maxSteps"),
        (json!({ "content": "a", "timeoutMs": "soon" }), "/timeoutMs"),
        (json!({ "content": "a", "stream": 1 }), "/stream"),
        (json!({}), ""),
        (json!([]), ""),
        // What would be the fields in order.
        (json!(["a"]), ""),
    ] {
        let answer = refused(&server, server.post(MESSAGES, body.clone())).await;
        assert_eq!(answer, typed(422, "invalid_field", Some(pointer)), "{body}");
    }
    for path in ["", "/t/fork", "/t/cancel", "/t/answers", "/t/runs/x/cancel"] {
        let path = format!("/api/v1/threads{path}");
        let answer = refused(&server, server.post(&path, json!(["made"]))).await;
        assert_eq!(answer, typed(422, "invalid_field", Some("")), "{path}");
    }
    assert_eq!(
        server.get("/api/v1/threads/made").await.error().1,
        "thread_not_found"
    );
    let misspelt = refused(
        &server,
        server.post(MESSAGES, json!({ "content": "a", "contnet": 1 })),
    )
    .await;
    assert_eq!((misspelt.0, misspelt.1.as_str()), (422, "invalid_field"));
}

#[tokio::test]
async fn a_body_of_100_mb_is_refused() {
    let server = thread().await;
    let huge = vec![b' '; 100 << 20];
    assert_eq!(
        refused(&server, server.post_text(MESSAGES, huge)).await,
        typed(413, "body_too_large", None)
    );
}

#[tokio::test]
async fn a_body_of_100_mb_that_does_not_say_so_is_refused_when_it_has_gone_too_far() {
    let server = thread().await;
    let piece = bytes::Bytes::from(vec![b' '; 1 << 20]);
    let pieces =
        futures_util::stream::iter((0..100).map(move |_| Ok::<_, std::io::Error>(piece.clone())));
    let request = server
        .request("POST", MESSAGES)
        .header(header::CONTENT_TYPE, "application/json");
    let ask = server.send(request.body(Body::from_stream(pieces)).unwrap());
    assert_eq!(
        refused(&server, ask).await,
        typed(413, "body_too_large", None)
    );
}

#[tokio::test]
async fn nesting_of_10_000_levels_is_refused_with_its_place() {
    let server = thread().await;
    let deep = format!(
        "{{\"content\":\"a\",\"metadata\":{}{}}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let (status, code, pointer) = refused(&server, server.post_text(MESSAGES, deep)).await;
    assert_eq!((status, code.as_str()), (400, "too_deep"));
    assert!(pointer.unwrap().starts_with("/metadata/0/0"));
}

#[tokio::test]
async fn nesting_at_the_limit_is_told_or_taken_but_never_breaks() {
    let server = thread().await;
    for n_levels in 120..140 {
        let deep = format!(
            "{{\"content\":\"a\",\"metadata\":{}{}}}",
            "[".repeat(n_levels),
            "]".repeat(n_levels)
        );
        let answer = server.post_text(MESSAGES, deep).await;
        let expected = if n_levels < 127 { 202 } else { 400 };
        assert!(
            answer.status == expected || n_levels == 127,
            "{n_levels}: {}",
            answer.text
        );
    }
    server.at_rest("t").await;
    assert_eq!(server.get(MESSAGES).await.status, 200);
}

#[tokio::test]
async fn what_is_noted_on_a_thread_is_an_object_without_the_servers_own_names() {
    let server = thread().await;
    for metadata in [json!(true), json!([null]), json!("note"), json!(1)] {
        let new = json!({"key": "new", "metadata": metadata});
        assert_eq!(
            refused(&server, server.post("/api/v1/threads", new)).await,
            typed(422, "invalid_field", Some("/metadata")),
        );
    }
    for own in ["threadprotocol", "uap", "loomline", "responses", "threads"] {
        let new = json!({"key": "new", "metadata": {"topic": "a", own: {}}});
        let pointer = format!("/metadata/{own}");
        assert_eq!(
            refused(&server, server.post("/api/v1/threads", new)).await,
            typed(422, "invalid_field", Some(&pointer)),
        );
    }
    assert_eq!(server.get("/api/v1/threads/new").await.status, 404);
    let new = json!({"key": "new", "metadata": {"topic": {"of": ["any", 1]}}});
    let made = server.post("/api/v1/threads", new).await.json();
    assert_eq!(made["metadata"], json!({"topic": {"of": ["any", 1]}}));
}

#[tokio::test]
async fn a_thread_that_is_not_there_is_not_found() {
    let server = thread().await;
    for path in ["", "/messages", "/runs", "/runs/x", "/events", "/document"] {
        let full = format!("/api/v1/threads/none{path}");
        assert_eq!(
            refused(&server, server.get(&full)).await,
            typed(404, "thread_not_found", None),
            "{path}"
        );
    }
    for path in ["/fork", "/close", "/reopen", "/cancel", "/runs/x/cancel"] {
        let path = format!("/api/v1/threads/none{path}");
        assert_eq!(
            refused(&server, server.post(&path, json!({}))).await,
            typed(404, "thread_not_found", None),
            "{path}"
        );
    }
    assert_eq!(
        refused(&server, server.delete("/api/v1/threads/none")).await,
        typed(404, "thread_not_found", None)
    );
    assert_eq!(
        refused(&server, server.get("/api/v1/threads/t/runs/x")).await,
        typed(404, "run_not_found", None)
    );
    let cancel = server.post("/api/v1/threads/t/runs/x/cancel", json!({}));
    assert_eq!(
        refused(&server, cancel).await,
        typed(404, "run_not_found", None)
    );
}

#[tokio::test]
async fn an_illegal_transition_is_told_with_the_states() {
    let server = thread().await;
    assert_eq!(
        refused(&server, server.post("/api/v1/threads/t/reopen", json!({}))).await,
        typed(409, "illegal_transition", None)
    );
    assert_eq!(
        server
            .post("/api/v1/threads/t/close", json!({}))
            .await
            .status,
        200
    );
    for (path, body) in [
        ("close", json!({})),
        ("reopen", json!({})),
        ("messages", json!({ "content": "a" })),
    ] {
        let path = format!("/api/v1/threads/t/{path}");
        assert_eq!(
            refused(&server, server.post(&path, body)).await,
            typed(409, "illegal_transition", None),
            "{path}"
        );
    }
    let again = server.post("/api/v1/threads/t/close", json!({})).await;
    let error = &again.json()["error"];
    assert_eq!(error["message"], "the thread is closed already");
    let details = json!({ "entity": "thread", "from": "closed", "to": "closed" });
    assert_eq!(error["details"], details);
    let answer = server
        .post("/api/v1/threads/t/reopen", json!({}))
        .await
        .json();
    assert_eq!(
        answer["error"]["details"],
        json!({ "entity": "thread", "from": "closed", "to": "open" })
    );
}

#[tokio::test]
async fn what_is_asked_in_the_wrong_place_or_way_is_refused() {
    let server = thread().await;
    let plain = server
        .request("POST", MESSAGES)
        .header(header::CONTENT_TYPE, "text/plain");
    let plain = server.send(plain.body(Body::from("{\"content\":\"a\"}")).unwrap());
    assert_eq!(
        refused(&server, plain).await,
        typed(415, "unsupported_media_type", None)
    );
    assert_eq!(
        refused(&server, server.get("/api/v1/nothing")).await,
        typed(404, "route_not_found", None)
    );
    assert_eq!(
        refused(&server, server.delete("/api/v1/agents")).await,
        typed(405, "method_not_allowed", None)
    );
    let agent = server.post(MESSAGES, json!({ "content": "a", "agent": "nobody" }));
    assert_eq!(
        refused(&server, agent).await,
        typed(422, "unknown_agent", Some("/agent"))
    );
    for query in ["after=x", "until=dawn", "untill=rest"] {
        let path = format!("/api/v1/threads/t/events?{query}");
        assert_eq!(
            refused(&server, server.get(&path)).await,
            typed(400, "invalid_query", None),
            "{query}"
        );
    }
    assert_eq!(
        refused(&server, server.get("/api/v1/threads?cursor=x")).await,
        typed(400, "invalid_query", None)
    );
    let resume = server
        .request("GET", "/api/v1/threads/t/events")
        .header("last-event-id", "x");
    let resume = server.send(resume.body(Body::empty()).unwrap());
    assert_eq!(
        refused(&server, resume).await,
        typed(400, "invalid_header", None)
    );
    for key in [String::new(), "a".repeat(513), "a\nb".into(), "..".into()] {
        let ask = server.post("/api/v1/threads", json!({ "key": key }));
        assert_eq!(
            refused(&server, ask).await,
            typed(422, "invalid_field", Some("/key")),
            "{key:?}"
        );
    }
}

#[tokio::test]
async fn a_thread_that_runs_or_has_forks_is_not_deleted() {
    let server = thread().await;
    server
        .post("/api/v1/threads/t/fork", json!({ "key": "child" }))
        .await;
    assert_eq!(
        refused(&server, server.delete("/api/v1/threads/t")).await,
        typed(409, "has_forks", None)
    );
    server.begin("u", "slow 50ms say 20 words").await;
    let busy = server.delete("/api/v1/threads/u").await;
    assert_eq!(busy.error().1, "thread_busy");
    let message = busy.json()["error"]["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.ends_with("; wait until it ends, or cancel it"),
        "{message}"
    );
    assert_eq!(server.delete("/api/v1/threads/child").await.status, 204);
    assert_eq!(server.delete("/api/v1/threads/t").await.status, 204);
    assert_eq!(
        server.get("/api/v1/threads/t").await.error().1,
        "thread_not_found"
    );
}

#[tokio::test]
async fn a_key_that_is_taken_is_not_forked_into() {
    let server = thread().await;
    let ask = server.post("/api/v1/threads/t/fork", json!({ "key": "t" }));
    assert_eq!(
        refused(&server, ask).await,
        typed(409, "key_taken", Some("/key"))
    );
    let ask = server.post("/api/v1/threads/t/fork", json!({ "at": "x" }));
    assert_eq!(
        refused(&server, ask).await,
        typed(422, "invalid_field", Some("/at"))
    );
}

#[tokio::test]
async fn a_place_beyond_the_end_is_not_forked_at() {
    let server = thread().await;
    let end = server.seq("t").await;
    let fork = |at: u64| server.post("/api/v1/threads/t/fork", json!({ "key": "f", "at": at }));
    let beyond = fork(end + 1).await;
    assert_eq!(beyond.error(), typed(422, "invalid_field", Some("/at")));
    assert_eq!(
        beyond.json()["error"]["message"],
        format!("the thread has no event {}: it ends at {end}", end + 1)
    );
    assert_eq!(server.get("/api/v1/threads/f").await.status, 404);
    assert_eq!(fork(end).await.json()["fork"]["seq"], end);
}

#[tokio::test]
async fn a_file_that_is_no_conversation_is_refused() {
    let server = thread().await;
    for (from, body) in [
        ("threadprotocol", json!([])),
        ("threadprotocol", json!({ "version": "9.9.9" })),
        ("threadprotocol", json!({ "version": "0.0.4" })),
        ("pydantic-ai", json!({})),
        ("pydantic-ai", json!([{ "kind": "gift" }])),
    ] {
        let path = format!("/api/v1/import?from={from}");
        let (status, code, _) = refused(&server, server.post(&path, body.clone())).await;
        assert_eq!((status, code.as_str()), (422, "invalid_document"), "{body}");
    }
    let taken = server.post(
        "/api/v1/import?from=pydantic-ai&key=t",
        Value::Array(Vec::new()),
    );
    assert_eq!(refused(&server, taken).await, typed(409, "not_empty", None));
    let unknown = server.post("/api/v1/import?from=csv", json!([]));
    assert_eq!(
        refused(&server, unknown).await,
        typed(400, "invalid_query", None)
    );
}
