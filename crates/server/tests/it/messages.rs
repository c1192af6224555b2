//! Messages: policies, repetitions, and what becomes of them.

#![expect(
    clippy::disallowed_methods,
    reason = "what was written before, or by another process, passed no gate"
)]

use crate::harness::{Server, names};
use axum::body::Body;
use http::header;
use interop::aitp::{ParticipantChange, read_actors};
use loomline_server::DEV_TENANT;
use serde_json::{Value, json};

const SLOW: &str = "slow 20ms say 25 words";
const MESSAGES: &str = "/api/v1/threads/t/messages";

async fn run_statuses(server: &Server) -> Vec<(String, Option<String>)> {
    let runs = server.get("/api/v1/threads/t/runs").await.json()["runs"].clone();
    let status = |run: &Value| {
        let reason = run["interruption"]["reason"].as_str().map(str::to_owned);
        (run["status"].as_str().unwrap().to_owned(), reason)
    };
    runs.as_array().unwrap().iter().map(status).collect()
}

#[tokio::test]
async fn a_message_is_answered_and_read_again() {
    let server = Server::new("").await;
    let events = server.say("t", "use compute 6 * 7").await.events();
    let names = names(&events);
    assert_eq!(
        (names.first(), names.last()),
        (Some(&"item.created"), Some(&"thread.finished"))
    );
    let list = server.get(MESSAGES).await.json();
    let messages = list["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(
        messages[0]["content"],
        json!([{ "type": "input_text", "text": "use compute 6 * 7" }])
    );
    assert_eq!(
        (&messages[1]["role"], &messages[1]["status"]),
        (&json!("assistant"), &json!("completed"))
    );
    let call = &messages[1]["content"][0];
    assert_eq!(
        (&call["type"], &call["state"], &call["output"]),
        (
            &json!("tool-compute"),
            &json!("output-available"),
            &json!(42)
        )
    );
    assert_eq!(list["seq"].as_u64(), Some(server.seq("t").await));
    let runs = server.get("/api/v1/threads/t/runs").await.json();
    let id = runs["runs"][0]["id"].as_str().unwrap();
    let run = server
        .get(&format!("/api/v1/threads/t/runs/{id}"))
        .await
        .json();
    assert_eq!(
        (
            run["nSteps"].as_u64(),
            run["steps"].as_array().unwrap().len()
        ),
        (Some(2), 2)
    );
    assert_eq!(run["steps"][0]["toolCalls"][0]["toolName"], "compute");
}

#[tokio::test]
async fn a_conversation_is_read_in_pieces_from_its_end() {
    let server = Server::new("").await;
    for n in 1..=5 {
        server.say("t", &format!("number {n}")).await;
    }
    let paths = [
        (MESSAGES, "messages", 2),
        ("/api/v1/threads/t/runs", "runs", 1),
        ("/api/chat/t/messages", "messages", 2),
        ("/ag-ui/threads/t/messages", "messages", 2),
    ];
    for (path, name, n_each) in paths {
        let whole = server.get(path).await.json();
        assert_eq!(whole.get("before"), None, "{path}");
        let (mut pieces, mut query) = (Vec::new(), "?limit=2".to_owned());
        loop {
            let piece = server.get(&format!("{path}{query}")).await.json();
            pieces.push(piece[name].as_array().unwrap().clone());
            let Some(before) = piece["before"].as_u64() else {
                break;
            };
            query = format!("?limit=2&before={before}");
        }
        let sizes: Vec<usize> = pieces.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2 * n_each, 2 * n_each, n_each], "{path}");
        let all: Vec<Value> = pieces.into_iter().rev().flatten().collect();
        assert_eq!(whole[name], Value::from(all), "{path}");
    }
    let last = server.get(&format!("{MESSAGES}?limit=1")).await.json();
    assert_eq!(last["seq"].as_u64(), Some(server.seq("t").await));
    let none = server.get(&format!("{MESSAGES}?limit=0")).await.json();
    assert_eq!(none["messages"], last["messages"], "one at least");
    let wrong = server.get(&format!("{MESSAGES}?before=x")).await;
    assert_eq!(
        (wrong.status.as_u16(), wrong.error().1),
        (400, "invalid_query".into())
    );
}

#[tokio::test]
async fn a_piece_of_a_fork_leads_to_the_forks_own_events() {
    let server = Server::new("").await;
    for n in 1..=3 {
        server.say("t", &format!("number {n}")).await;
    }
    let made = server.post("/api/v1/threads/t/fork", json!({ "key": "f" }));
    assert_eq!(made.await.status, 201);
    let piece = async |query: &str| {
        let path = format!("/api/v1/threads/f/messages{query}");
        server.get(&path).await.json()
    };
    // What it tells is all its parent's.
    let own = server.seq("f").await;
    assert!(own < server.seq("t").await);
    assert_eq!(piece("").await["seq"].as_u64(), Some(own));
    assert_eq!(piece("?limit=1").await["seq"].as_u64(), Some(own));
    server.say("f", "number 4").await;
    let own = server.seq("f").await;
    let mut query = "?limit=1".to_owned();
    for n in (1..=4).rev() {
        let piece = piece(&query).await;
        let said = &piece["messages"][0]["content"][0]["text"];
        assert_eq!(said, &format!("number {n}"));
        assert_eq!(piece["seq"].as_u64(), Some(own), "number {n}");
        query = format!("?limit=1&before={}", piece["before"]);
    }
}

#[tokio::test]
async fn two_clients_queue() {
    let server = Server::new("").await;
    let body = |content: &str| json!({ "content": content, "stream": true });
    let (one, two) = tokio::join!(
        server.post(MESSAGES, body(SLOW)),
        server.post(MESSAGES, body("second"))
    );
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));
    let mut streams = [one.events(), two.events()];
    streams.sort_by_key(|events| events.last().map(|(id, _)| *id));
    let [first, second] = &streams;
    // The stream of the one that waits has its item, then only its own run.
    assert_eq!(names(second)[..2], ["item.created", "execution.created"]);
    assert!(first.last().unwrap().0 < second[1].0);
    assert_eq!(
        run_statuses(&server).await,
        [
            ("completed".to_owned(), None),
            ("completed".to_owned(), None)
        ]
    );
}

#[tokio::test]
async fn a_second_client_is_rejected_if_it_asks_for_that() {
    let server = Server::new("").await;
    let first = server.begin("t", SLOW).await;
    let answer = server
        .post(MESSAGES, json!({ "content": "second", "policy": "reject" }))
        .await;
    assert_eq!(answer.error(), (409, "thread_busy".into(), None));
    assert_eq!(
        answer.json()["error"]["details"]["executionId"],
        first["executionId"]
    );
    server.at_rest("t").await;
    assert_eq!(
        run_statuses(&server).await,
        [("completed".to_owned(), None)]
    );
}

#[tokio::test]
async fn a_second_client_interrupts_if_it_asks_for_that() {
    let server = Server::new("").await;
    server.begin("t", SLOW).await;
    let body = json!({ "content": "second", "policy": "interrupt", "stream": true });
    let events = server.post(MESSAGES, body).await.events();
    assert_eq!(names(&events).last(), Some(&"thread.finished"));
    let expected = [
        ("failed".to_owned(), Some("user_cancelled".to_owned())),
        ("completed".to_owned(), None),
    ];
    assert_eq!(run_statuses(&server).await, expected);
}

#[tokio::test]
async fn more_than_a_hundred_may_not_wait() {
    let server = Server::new("").await;
    server.begin("t", "slow 100ms say 100 words").await;
    for _ in 0..100 {
        server.begin("t", "next").await;
    }
    let answer = server
        .post(MESSAGES, json!({ "content": "one too many" }))
        .await;
    assert_eq!(answer.error(), (429, "queue_full".into(), None));
    assert!(answer.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn a_repeated_idempotency_key_gets_the_first_answer() {
    let server = Server::new("").await;
    let ask = |token: &'static str| {
        let request = server
            .request("POST", MESSAGES)
            .header(header::CONTENT_TYPE, "application/json");
        server.send(
            request
                .header("idempotency-key", token)
                .body(Body::from("{\"content\":\"hello\"}"))
                .unwrap(),
        )
    };
    let first = ask("k1").await;
    server.at_rest("t").await;
    let seq = server.seq("t").await;
    let again = ask("k1").await;
    assert_eq!(
        (again.status.as_u16(), again.json(), server.seq("t").await),
        (202, first.json(), seq)
    );
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert!(!first.headers.contains_key("idempotent-replayed"));
    assert_ne!(ask("k2").await.json(), first.json());
}

#[tokio::test]
async fn a_repeated_request_streams_the_first_answer_again() {
    let server = Server::new("").await;
    let ask = || {
        let request = server
            .request("POST", MESSAGES)
            .header(header::CONTENT_TYPE, "application/json");
        let request = request
            .header("idempotency-key", "k")
            .header(header::ACCEPT, "text/event-stream");
        server.send(request.body(Body::from("{\"content\":\"hello\"}")).unwrap())
    };
    let first = ask().await.events();
    assert_eq!(ask().await.events(), first);
}

#[tokio::test]
async fn a_cancel_stops_the_run_and_is_recorded() {
    let server = Server::new("").await;
    let begun = server.begin("t", "slow 50ms say 100 words").await;
    let id = begun["executionId"].as_str().unwrap();
    let other = server
        .post("/api/v1/threads/t/cancel", json!({ "executionId": "x" }))
        .await;
    assert_eq!(other.error(), (409, "not_running".into(), None));
    let answer = server
        .post(
            &format!("/api/v1/threads/t/runs/{id}/cancel"),
            json!({ "reason": "enough" }),
        )
        .await;
    assert_eq!(answer.json()["executionId"], id);
    assert_eq!(
        run_statuses(&server).await,
        [("failed".to_owned(), Some("enough".to_owned()))]
    );
    let again = server
        .post(&format!("/api/v1/threads/t/runs/{id}/cancel"), json!({}))
        .await;
    assert_eq!(again.error(), (409, "not_running".into(), None));
    let idle = server
        .post_text("/api/v1/threads/t/cancel", "")
        .await
        .json();
    assert_eq!(idle["executionId"], Value::Null);
}

#[tokio::test]
async fn a_run_may_be_given_a_limit_of_time_and_of_steps() {
    let server = Server::new("").await;
    server
        .post(
            MESSAGES,
            json!({ "content": "slow 50ms say 100 words", "timeoutMs": 60, "stream": true }),
        )
        .await;
    server
        .post(
            MESSAGES,
            json!({ "content": "use compute 1 + 1", "maxSteps": 1, "stream": true }),
        )
        .await;
    let statuses = run_statuses(&server).await;
    assert_eq!(
        statuses[0],
        ("failed".to_owned(), Some("timeout".to_owned()))
    );
    assert_eq!(statuses.len(), 2);
}

#[tokio::test]
async fn content_and_metadata_are_kept_as_they_came() {
    let server = Server::new("").await;
    let body = "{\"content\":[{\"type\":\"input_text\",\"text\":\"hi\",\n \"n\":1.0}],\"metadata\":{\"big\":12345678901234567890123},\"channel\":\"web\"}";
    server.post_text(MESSAGES, body).await;
    server.at_rest("t").await;
    let text = server.get(MESSAGES).await.text;
    assert!(
        text.contains("{\"type\":\"input_text\",\"text\":\"hi\",\n \"n\":1.0}"),
        "{text}"
    );
    assert!(text.contains("12345678901234567890123") && text.contains("\"channel\":\"web\""));
}

#[tokio::test]
async fn threads_are_listed_page_by_page_the_last_changed_first() {
    let server = Server::new("").await;
    for key in ["a1", "a2", "a3", "b1"] {
        let made = server
            .post(
                "/api/v1/threads",
                json!({ "key": key, "title": "T", "metadata": { "k": 1 } }),
            )
            .await;
        assert_eq!(made.status, 201);
    }
    let found = server.post("/api/v1/threads", json!({ "key": "a1" })).await;
    assert_eq!(
        (found.status.as_u16(), &found.json()["title"]),
        (200, &json!("T"))
    );
    let mut keys = Vec::new();
    let mut path = "/api/v1/threads?prefix=a&limit=2".to_owned();
    loop {
        let page = server.get(&path).await.json();
        keys.extend(
            page["threads"]
                .as_array()
                .unwrap()
                .iter()
                .map(|thread| thread["key"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = format!("/api/v1/threads?prefix=a&limit=2&cursor={next}");
    }
    assert_eq!(keys, ["a3", "a2", "a1"]);
}

#[tokio::test]
async fn a_key_with_any_letters_is_reached() {
    let server = Server::new("").await;
    let made = server
        .post("/api/v1/threads", json!({ "key": "käse/brot 100%" }))
        .await;
    assert_eq!(made.status, 201);
    let read = server
        .get("/api/v1/threads/k%C3%A4se%2Fbrot%20100%25")
        .await;
    assert_eq!(read.json()["key"], "käse/brot 100%");
}

#[tokio::test]
async fn a_fork_goes_on_from_where_it_was_taken() {
    let server = Server::new("").await;
    server.say("t", "one").await;
    let at = server.seq("t").await;
    server.say("t", "two").await;
    let fork = server
        .post("/api/v1/threads/t/fork", json!({ "key": "f", "at": at }))
        .await;
    assert_eq!(
        (fork.status.as_u16(), &fork.json()["fork"]["seq"]),
        (201, &json!(at))
    );
    server.say("f", "three").await;
    let said = async |key: &str| {
        let list = server
            .get(&format!("/api/v1/threads/{key}/messages"))
            .await
            .json();
        let texts = list["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "user");
        texts
            .map(|message| message["content"][0]["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(said("t").await, ["one", "two"]);
    assert_eq!(said("f").await, ["one", "three"]);
    server.begin("t", SLOW).await;
    assert_eq!(
        server
            .post("/api/v1/threads/t/fork", json!({}))
            .await
            .error()
            .1,
        "not_at_rest"
    );
}

#[tokio::test]
async fn the_credential_that_an_actor_is_bound_to_is_shown_to_nobody() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    let actor = json!({"id": "ada", "capabilities": []});
    let joined = ParticipantChange::Join {
        actor: read_actors(&json!([actor]), "").unwrap().remove(0),
        principal: Some("the-credential".to_owned()),
        initiator: false,
    };
    let item = joined.into_item("joined").unwrap();
    let tenant = DEV_TENANT.into();
    server
        .app
        .default_runtime()
        .record(&tenant, "t", item)
        .await
        .unwrap();
    // What a client says of itself under that name is its own.
    let body = json!({"content": "hello", "metadata": {"principal": "mine"}, "stream": true});
    server.post("/api/v1/threads/t/messages", body).await;
    for path in [
        "/api/v1/threads/t/messages",
        "/api/v1/threads/t/events?until=rest",
        "/api/v1/threads/t/events?until=rest&subagents=true",
        "/api/v1/threads/t/runs",
        "/api/v1/threads/t/document",
        "/api/chat/t/messages",
    ] {
        let text = server.get(path).await.text;
        assert!(!text.contains("the-credential"), "{path}: {text}");
    }
    let request = server.request("GET", "/api/v1/threads/t/events");
    let request = request.header(header::ACCEPT, "application/json");
    let page = server.send(request.body(Body::empty()).unwrap()).await;
    assert!(!page.text.contains("the-credential"), "{}", page.text);
    assert!(page.text.contains("data-app-actor_join"), "{}", page.text);
    let list = server.get("/api/v1/threads/t/messages").await.json();
    let messages = list["messages"].as_array().unwrap();
    let own: Vec<_> = messages
        .iter()
        .filter_map(|it| it.get("metadata"))
        .collect();
    assert_eq!(own, [&json!({"principal": "mine"})]);
}

#[tokio::test]
async fn a_run_that_waits_for_answers_is_stopped_by_its_id() {
    let config = "default_agent = \"clerk\"\n[models.s]\nprovider = \"scripted\"\n[agents.clerk]\nmodel = \"s\"\ntools = [\"compute\"]\nrequires_approval = [\"compute\"]\n";
    let server = Server::new(config).await;
    server.say("t", "compute 1 + 2").await;
    let pending = server.get("/api/v1/threads/t/pending").await.json();
    let id = pending["calls"][0]["executionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let cancel = json!({ "executionId": "x" });
    let other = server.post("/api/v1/threads/t/cancel", cancel).await;
    assert_eq!(other.error(), (409, "not_running".into(), None));
    let path = format!("/api/v1/threads/t/runs/{id}/cancel");
    let stopped = server.post(&path, json!({})).await;
    assert_eq!(stopped.status, 200, "{}", stopped.text);
    let pending = server.get("/api/v1/threads/t/pending").await.json();
    assert_eq!(pending["calls"], json!([]));
    let again = server.post(&path, json!({})).await;
    assert_eq!(again.error(), (409, "not_running".into(), None));
}
