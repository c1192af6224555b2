//! Completions on durable threads.

use super::{ASKS, PATH, body, on, refusal, text_of, user, weather, with};
use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

fn assert_differs(answer: &Answer, index: usize) {
    let place = format!("messages[{index}]");
    let differs = (409, "history_differs".to_owned(), place);
    assert_eq!(refusal(answer), differs, "{}", answer.text);
    assert_eq!(answer.headers["x-should-retry"], "false");
}

fn and(messages: &Value, more: Value) -> Value {
    let mut messages = messages.clone();
    messages.as_array_mut().unwrap().push(more);
    messages
}

#[tokio::test]
async fn a_thread_takes_only_the_new_messages_of_a_history() {
    let server = Server::new("").await;
    let system = json!({"role": "system", "content": "Be brief."});
    let one = server
        .continued("t", json!([system, user("one")]), json!({}))
        .await;
    assert_eq!(server.message_count("t").await, 3);
    let two = server
        .continued("t", and(&one, user("two")), json!({}))
        .await;
    assert_eq!(server.message_count("t").await, 5);
    assert_eq!(two[4]["content"], "You said: two");
    let document = server.get("/api/v1/threads/t/document").await;
    assert_eq!(
        document.text.matches("You said: one").count(),
        1,
        "{}",
        document.text
    );
}

#[tokio::test]
async fn a_thread_takes_a_message_without_its_history() {
    let server = Server::new("").await;
    server.continued("t", json!([user("one")]), json!({})).await;
    let answer = server.post_on("t", body(json!([user("two")]))).await;
    assert_eq!(text_of(&answer.json()), "You said: two");
    assert_eq!(server.message_count("t").await, 4);
}

#[tokio::test]
async fn a_history_may_leave_out_what_the_thread_begins_with() {
    let server = Server::new("").await;
    let system = json!({"role": "system", "content": "Be brief."});
    let one = server
        .continued("t", json!([system, user("one")]), json!({}))
        .await;
    let two = server
        .continued("t", and(&one, user("two")), json!({}))
        .await;
    let late = json!([system, two[3], two[4], user("three")]);
    server.continued("t", late, json!({})).await;
    assert_eq!(server.message_count("t").await, 7);
}

#[tokio::test]
async fn a_history_that_differs_is_refused_with_the_message() {
    let server = Server::new("").await;
    let one = server.continued("t", json!([user("one")]), json!({})).await;
    let two = server
        .continued("t", and(&one, user("two")), json!({}))
        .await;
    for (at, text) in [(0, "other"), (1, "other"), (2, "other"), (3, "other")] {
        let mut changed = and(&two, user("three"));
        changed[at]["content"] = text.into();
        assert_differs(&server.post(PATH, on("t", changed)).await, at);
    }
    let behind = and(&one, user("instead"));
    assert_differs(&server.post(PATH, on("t", behind)).await, 2);
    let swapped = json!([two[2], two[3], two[0], two[1], user("three")]);
    assert_differs(&server.post(PATH, on("t", swapped)).await, 2);
    assert_differs(&server.post(PATH, on("new", and(&one, user("x")))).await, 0);
    assert_eq!(server.message_count("t").await, 4);
}

#[tokio::test]
async fn a_refusal_names_the_message_on_a_thread_longer_than_the_history() {
    let server = Server::new("").await;
    let system = json!({"role": "system", "content": "Be brief."});
    let mut all = server
        .continued("t", json!([system, user("one")]), json!({}))
        .await;
    for n in 0..12 {
        let next = user(&format!("message {n}"));
        all = server.continued("t", and(&all, next), json!({})).await;
    }
    let n_messages = server.message_count("t").await;
    // The client has the first two turns only, and changes the second or not.
    let mut old = json!([all[0], all[1], all[2], all[3], all[4], user("new")]);
    assert_differs(&server.post(PATH, on("t", old.clone())).await, 5);
    old[3]["content"] = "other".into();
    assert_differs(&server.post(PATH, on("t", old)).await, 3);
    // The client has the prompt and the last two turns, and changes the last answer or the prompt.
    let at = |back: usize| all[n_messages - back].clone();
    let window = json!([all[0], at(4), at(3), at(2), at(1), user("new")]);
    let mut changed = window.clone();
    changed[4]["content"] = "other".into();
    assert_differs(&server.post(PATH, on("t", changed)).await, 4);
    let mut changed = window.clone();
    changed[0]["content"] = "other".into();
    assert_differs(&server.post(PATH, on("t", changed)).await, 0);
    assert_eq!(server.message_count("t").await, n_messages);
    server.continued("t", window, json!({})).await;
    assert_eq!(server.message_count("t").await, n_messages + 2);
}

#[tokio::test]
async fn results_of_client_tools_continue_a_run_on_a_thread() {
    let server = Server::new("").await;
    let tools = json!({"tools": [weather()]});
    let asked = server
        .continued("t", json!([user(ASKS)]), tools.clone())
        .await;
    let call = &asked[1]["tool_calls"][0]["id"];
    let result =
        |call: &Value| json!({"role": "tool", "tool_call_id": call, "content": "18 degrees"});
    let other = and(&asked, result(&json!("other")));
    let (status, _, place) = refusal(&server.post(PATH, with(on("t", other), tools.clone())).await);
    assert_eq!((status, place.as_str()), (400, "messages"));
    let answered = server
        .continued("t", and(&asked, result(call)), tools.clone())
        .await;
    assert!(
        answered[3]["content"]
            .as_str()
            .unwrap()
            .contains("18 degrees"),
        "{answered}"
    );
    // Clients write the arguments of a call anew.
    let mut again = and(&answered, user("thanks"));
    again[1]["tool_calls"][0]["function"]["arguments"] = "{ \"location\":\"Paris\" }".into();
    let last = server.continued("t", again, tools).await;
    assert_eq!(last[5]["content"], "You said: thanks");
}

#[tokio::test]
async fn a_request_after_a_failure_says_nothing_twice() {
    let server = Server::new("").await;
    let one = server.continued("t", json!([user("one")]), json!({})).await;
    let failing = and(&one, user("fail auth"));
    for _ in 0..2 {
        let answer = server.post(PATH, on("t", failing.clone())).await;
        assert_eq!(answer.status, 500, "{}", answer.text);
    }
    assert_eq!(server.message_count("t").await, 3);
    assert_differs(&server.post(PATH, on("t", and(&one, user("x")))).await, 2);
    server
        .continued("t", and(&failing, user("two")), json!({}))
        .await;
    assert_eq!(server.message_count("t").await, 5);
}

#[tokio::test]
async fn a_thread_is_named_by_metadata_or_by_a_header() {
    let server = Server::new("").await;
    let both = server.post_on("t", on("t", json!([user("one")]))).await;
    assert_eq!(both.status, 200, "{}", both.text);
    let differs = server.post_on("u", on("t", json!([user("one")]))).await;
    let wrong = (
        400,
        "invalid_value".to_owned(),
        "metadata.thread".to_owned(),
    );
    assert_eq!(refusal(&differs), wrong);
}

#[tokio::test]
async fn a_repeated_request_is_answered_once() {
    let server = Server::new("").await;
    let post = async || {
        let request = server
            .request("POST", PATH)
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", "k");
        let body = on("t", json!([user("one")])).to_string();
        server.send(request.body(Body::from(body)).unwrap()).await
    };
    let (first, again) = (post().await, post().await);
    assert_eq!(first.json(), again.json());
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(server.message_count("t").await, 2);
}

#[tokio::test]
async fn a_busy_thread_refuses_a_completion() {
    let server = Server::new("").await;
    let slow = with(
        on("t", json!([user("slow 200ms say 30 words")])),
        json!({"stream": true}),
    );
    let running = server
        .request("POST", PATH)
        .header(header::CONTENT_TYPE, "application/json");
    let running = running.body(Body::from(slow.to_string())).unwrap();
    let _open = server.open(running).await;
    let answer = server.post(PATH, on("t", json!([user("two")]))).await;
    assert_eq!(refusal(&answer).1, "conversation_locked");
}
