//! Runs whose sub-agents ask, and runs that hand over.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at the threads of the runtime itself"
)]

use super::repeated::once;
use super::{last, says};
use crate::harness::{Answer, Server, TEAM};
use crate::held::Held;
use axum::body::Body;
use futures_util::StreamExt as _;
use http::header;
use loomline_server::DEV_TENANT;
use runtime::{Append, NewRecord, Ownership};
use serde_json::{Value, json};
use timeline::Command;

#[tokio::test]
async fn what_a_sub_agent_asks_interrupts_the_thread_above_and_is_answered_there() {
    let server = Server::new(TEAM).await;
    let thread = server.lang_thread().await;
    let asks = says("lead", "use find {\"query\": \"compute 6 * 7\"}");
    let values = server.lang_wait(&thread, asks).await;
    let asked = &values["__interrupt__"][0];
    assert_eq!(
        asked["value"]["action_requests"][0]["name"], "compute",
        "{values}"
    );
    let id = asked["id"].as_str().unwrap();
    assert!(id.contains(&format!("@{thread}/")), "{id}");
    let kept = server.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(kept["status"], "interrupted", "{kept}");
    let resume = json!({"assistant_id": "lead", "command": {"resume": {id: {"type": "approve"}}}});
    let values = server.lang_wait(&thread, resume).await;
    assert!(last(&values).contains("42"), "{values}");
    let kept = server.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(kept["status"], "idle", "{kept}");
}

/// A thread in which two sub-agents ask, and the two answers.
async fn two_ask(server: &Server, queries: [&str; 2]) -> (String, [Value; 2]) {
    let thread = server.lang_thread().await;
    let find = |query: &str| format!("find {}", json!({"query": query}));
    let [one, other] = queries.map(find);
    let text = format!("use {one} and {other}");
    let values = server.lang_wait(&thread, says("lead", &text)).await;
    let asked = values["__interrupt__"].as_array().unwrap();
    let [one, other] = asked.as_slice() else {
        panic!("{values}")
    };
    let resume = |asked: &Value| {
        let id = asked["id"].as_str().unwrap();
        json!({"assistant_id": "lead", "command": {"resume": {id: true}}})
    };
    (thread, [resume(one), resume(other)])
}

/// Both sub-agents were heard, each in the run that its answer was told of.
async fn both_are_heard(server: &Server, thread: &str, told: [Answer; 2]) {
    for (answer, said) in told.into_iter().zip(["gave 42.", "gave 2."]) {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let run = answer.json();
        let run = run["run_id"].as_str().unwrap();
        let path = format!("/threads/{thread}/runs/{run}/join");
        let joined = server.get(&path).await;
        assert_eq!(joined.status, 200, "{run}");
        assert!(joined.text.contains(said), "{}", joined.text);
    }
    server.at_rest(thread).await;
    let kept = server.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(kept["status"], "idle", "{kept}");
}

#[tokio::test]
async fn who_answers_one_sub_agent_holds_nobody_up_who_answers_the_next_one() {
    let server = Server::new(TEAM).await;
    let (thread, [one, other]) = two_ask(&server, ["compute 6 * 7", "compute 1 + 1"]).await;
    let path = format!("/threads/{thread}/runs");
    // The thread goes on with one of them or with both, and each answer is told of the run it is in.
    let (one, other) = tokio::join!(server.post(&path, one), server.post(&path, other));
    both_are_heard(&server, &thread, [one, other]).await;
}

/// What both calls came to is among the values, and nothing waits.
fn is_whole(values: &Value) {
    let text = values.to_string();
    assert!(
        text.contains("gave 2.") && text.contains("user_cancelled"),
        "{text}"
    );
    assert_eq!(values["__interrupt__"], Value::Null, "{text}");
}

#[tokio::test]
async fn who_waits_for_an_answer_is_told_of_the_run_that_hears_of_it() {
    let held = Held::new().await;
    held.answer_first().await;
    let waits = held.server.lang_wait(&held.thread, held.resume(1));
    let (values, ()) = tokio::join!(waits, held.let_go());
    is_whole(&values);
}

#[tokio::test]
async fn who_streams_an_answer_is_shown_the_run_that_hears_of_it() {
    let held = Held::new().await;
    held.answer_first().await;
    let path = format!("/threads/{}/runs/stream", held.thread);
    let streams = held.server.post(&path, held.resume(1));
    let (streamed, ()) = tokio::join!(streams, held.let_go());
    assert_eq!(streamed.status, 200, "{}", streamed.text);
    assert!(streamed.text.contains("gave 2."), "{}", streamed.text);
}

#[tokio::test]
async fn an_answer_that_waits_for_its_turn_has_a_run_of_its_own_that_waits() {
    let held = Held::new().await;
    let first = held.answer_first().await;
    let path = format!("/threads/{}/runs", held.thread);
    let send = || once(&held.server, &path, "once", held.resume(1));
    let run = send().await.json();
    assert_ne!(run["run_id"], first.as_str());
    assert_eq!(run["status"], "pending", "{run}");
    let id = run["run_id"].as_str().unwrap();
    let read = held.server.get(&format!("{path}/{id}")).await.json();
    assert_eq!(read["status"], "pending", "{read}");
    assert_eq!(send().await.json()["run_id"], id);
    held.let_go().await;
    is_whole(&held.server.get(&format!("{path}/{id}/join")).await.json());
    assert_eq!(send().await.json()["run_id"], id);
}

#[tokio::test]
async fn a_reader_of_an_answer_that_goes_away_stops_the_run_that_hears_of_it_alone() {
    let held = Held::beside("hold", "that").await;
    let first = held.answer_first().await;
    let mut body = held.resume(1);
    body["on_disconnect"] = "cancel".into();
    let path = format!("/threads/{}/runs", held.thread);
    let request = held
        .server
        .request("POST", &format!("{path}/stream"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    let (status, frames) = held.server.open(request).await;
    assert_eq!(status, 200);
    let runs = held.server.get(&path).await.json();
    let second = runs[0]["run_id"].as_str().unwrap().to_owned();
    drop(frames);
    held.let_go().await;
    // The other one is held as well: the thread rests once its run is stopped.
    held.server.at_rest(&held.thread).await;
    let join = async |run: &str| held.server.get(&format!("{path}/{run}/join")).await.json();
    let (first, second) = (join(&first).await, join(&second).await);
    assert_eq!(first["__error__"], Value::Null, "{first}");
    assert_eq!(second["__error__"]["error"], "UserInterrupt", "{second}");
}

/// Closes a thread, as nobody does while it waits.
async fn close(server: &Server, key: &str) {
    let (runtime, tenant) = (server.app.default_runtime(), DEV_TENANT.into());
    let row = runtime.find(&tenant, key).await.unwrap();
    let head = runtime.store().head(&row.thread.id).await.unwrap();
    let at = head.last_at;
    let events = head.state.decide(Command::Close, at).unwrap();
    let records = events
        .into_iter()
        .map(|event| NewRecord::new(at, event).unwrap());
    let append = Append {
        thread: row.thread.id,
        epoch: head.epoch,
        tail: head.tail,
        records: records.collect(),
        token: None,
        is_limited: true,
        ownership: Ownership::Keep,
        unmoved: Vec::new(),
    };
    runtime.store().append(append).await.unwrap();
}

#[tokio::test]
async fn who_answers_beneath_a_thread_that_is_closed_is_told_so() {
    let server = Server::new(TEAM).await;
    let (thread, [one, _]) = two_ask(&server, ["compute 6 * 7", "compute 1 + 1"]).await;
    close(&server, &thread).await;
    let path = format!("/threads/{thread}/runs");
    let refused = server.post(&path, one).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert!(refused.text.contains("closed"), "{}", refused.text);
}

#[tokio::test]
async fn a_reader_that_goes_away_stops_whom_the_run_was_handed_over_to() {
    let server = Server::new(TEAM).await;
    let thread = server.lang_thread().await;
    let text = "slow 20ms transfer_to_closer then say 5000 words";
    let mut body = says("lead", text);
    body["on_disconnect"] = "cancel".into();
    body["stream_mode"] = "messages-tuple".into();
    let path = format!("/threads/{thread}/runs/stream");
    let request = server
        .request("POST", &path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    let (status, mut frames) = server.open(request).await;
    assert_eq!(status, 200);
    let mut seen = String::new();
    while !seen.contains("\"langgraph_node\":\"closer\"") {
        let bytes = frames.next().await.unwrap().unwrap();
        seen.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    drop(frames);
    server.at_rest(&thread).await;
    let runs = server.get(&format!("/threads/{thread}/runs")).await.json();
    assert_eq!(runs[0]["status"], "interrupted", "{runs}");
}
