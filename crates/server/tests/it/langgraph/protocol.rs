//! The streaming protocol: what its clients can't see of themselves.

use super::{CONFIG, last, says};
use crate::harness::{Server, frames};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::time::Duration;

/// Sends a command; what it is answered.
async fn command(server: &Server, thread: &str, method: &str, params: Value) -> Value {
    let body = json!({"id": 1, "method": method, "params": params});
    let path = format!("/threads/{thread}/commands");
    let answer = server.post(&path, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["id"], 1);
    answer.json()
}

/// The events of a thread after one of them, until so many runs have ended.
async fn heard(server: &Server, thread: &str, since: u64, n_ends: usize) -> Vec<Value> {
    let body = json!({
        "channels": ["lifecycle", "messages", "tools", "updates", "values", "checkpoints", "input"], "since": since,
    });
    let request = server
        .request("POST", &format!("/threads/{thread}/stream/events"))
        .header("content-type", "application/json");
    let request = request.body(body.to_string().into()).unwrap();
    let (status, mut pieces) = server.open(request).await;
    assert_eq!(status, 200);
    let mut text = String::new();
    loop {
        let piece = tokio::time::timeout(Duration::from_secs(20), pieces.next()).await;
        let piece = piece.expect("more comes").unwrap().unwrap();
        text.push_str(std::str::from_utf8(&piece).unwrap());
        let events = frames(&text);
        assert!(events.iter().all(|(id, event)| event["seq"] == *id));
        let mut events: Vec<Value> = events.into_iter().map(|(_, event)| event).collect();
        let ends = |event: &Value| {
            event["method"] == "lifecycle" && event["params"]["data"]["event"] != "started"
        };
        let mut places = (0..events.len()).filter(|n| ends(&events[*n]));
        if let Some(end) = places.nth(n_ends - 1) {
            events.truncate(end + 1);
            return events;
        }
    }
}

/// What events say: the channel, and what of it.
fn told(events: &[Value]) -> Vec<String> {
    let told = events.iter().map(|event| {
        let what = event["params"]["data"]["event"]
            .as_str()
            .unwrap_or_default();
        format!("{} {what}", event["method"].as_str().unwrap())
    });
    told.collect()
}

#[tokio::test]
async fn a_thread_is_heard_run_after_run_and_again_from_any_event() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    for text in ["one", "two"] {
        server.lang_wait(&thread, says("demo", text)).await;
    }
    let all = heard(&server, &thread, 0, 2).await;
    let run = [
        "lifecycle started",
        "values ",
        "messages message-start",
        "messages content-block-start",
        "messages content-block-delta",
        "messages content-block-finish",
        "messages message-finish",
        "updates ",
        "values ",
        "checkpoints ",
        "lifecycle completed",
    ];
    assert_eq!(told(&all), [run, run].concat());
    let says = |n: usize| &all[n]["params"]["data"]["content"]["text"];
    assert_eq!(
        (says(5), says(16)),
        (&json!("You said: one"), &json!("You said: two"))
    );
    for (place, event) in all.iter().enumerate().take(all.len() - 1) {
        let n_ends = if place < run.len() - 1 { 2 } else { 1 };
        let rest = heard(&server, &thread, event["seq"].as_u64().unwrap(), n_ends).await;
        assert_eq!(rest, all[place + 1..], "after {place}");
    }
}

/// A thread whose agent asks whether it may compute, and the interrupt's id.
async fn questioned() -> (Server, String, Value) {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let says = says("clerk", "compute 6*7");
    let mut waits = server.lang_wait(&thread, says).await;
    (server, thread, waits["__interrupt__"][0]["id"].take())
}

#[tokio::test]
async fn a_question_is_told_as_it_was_asked_also_once_it_is_answered() {
    let (server, thread, id) = questioned().await;
    let asked = heard(&server, &thread, 0, 1).await;
    let [.., question, end] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(question["method"], "input.requested");
    assert_eq!(question["params"]["data"]["interrupt_id"], id);
    assert_eq!(end["params"]["data"]["event"], "interrupted");
    assert!(!told(&asked).iter().any(|it| it.starts_with("tools")));
    let answer = json!({"namespace": [], "interrupt_id": id, "response": true});
    command(&server, &thread, "input.respond", answer).await;
    let all = heard(&server, &thread, 0, 2).await;
    assert_eq!(all[..asked.len()], asked);
    let rest = told(&all[asked.len()..]);
    let tools: Vec<&String> = rest.iter().filter(|it| it.starts_with("tools")).collect();
    assert_eq!(tools, ["tools tool-started", "tools tool-finished"]);
    assert_eq!(rest.last().unwrap(), "lifecycle completed");
}

#[tokio::test]
async fn a_tool_that_is_denied_has_not_started() {
    let (server, thread, id) = questioned().await;
    let answer = json!({"namespace": [], "interrupt_id": id, "response": false});
    command(&server, &thread, "input.respond", answer).await;
    let all = told(&heard(&server, &thread, 0, 2).await);
    assert!(!all.iter().any(|it| it.starts_with("tools")), "{all:?}");
    assert_eq!(all.last().unwrap(), "lifecycle completed");
}

#[tokio::test]
async fn a_command_that_is_repeated_under_its_key_begins_one_run() {
    let server = Server::new(CONFIG).await;
    let id = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061";
    let mut answers = Vec::new();
    for _ in 0..2 {
        let body = json!({"id": 1, "method": "run.start", "params": says("demo", "hello")});
        let request = server
            .request("POST", &format!("/threads/{id}/commands"))
            .header("content-type", "application/json")
            .header("idempotency-key", "k");
        let request = request.body(body.to_string().into()).unwrap();
        answers.push(server.send(request).await.json());
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0]["type"], "success");
    let runs = server.get(&format!("/threads/{id}/runs")).await.json();
    assert_eq!(runs.as_array().unwrap().len(), 1);
    assert_eq!(runs[0]["run_id"], answers[0]["result"]["run_id"]);
}

#[tokio::test]
async fn an_answer_goes_to_the_call_that_it_names_and_its_agent_stays() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let waits = server
        .lang_wait(&thread, says("clerk", "compute 6*7"))
        .await;
    let id = &waits["__interrupt__"][0]["id"];
    let answer = |id: &Value, response: Value| json!({"namespace": [], "interrupt_id": id, "response": response});
    let unknown = answer(&json!("nobody"), json!(true));
    let refused = command(&server, &thread, "input.respond", unknown).await;
    assert_eq!(
        (&refused["type"], &refused["error"]),
        (&json!("error"), &json!("no_such_interrupt"))
    );
    let words = command(&server, &thread, "input.respond", answer(id, json!("yes"))).await;
    assert_eq!(words["error"], "invalid_argument");
    let many = json!({"responses": [answer(id, json!(true))]});
    let taken = command(&server, &thread, "input.respond", many).await;
    let run = taken["result"]["run_id"].as_str().unwrap();
    let path = format!("/threads/{thread}/runs/{run}/join");
    assert_eq!(last(&server.get(&path).await.json()), "compute gave 42.");
    let run = server
        .get(&format!("/threads/{thread}/runs/{run}"))
        .await
        .json();
    assert_eq!(run["assistant_id"], "clerk");
    let over = command(&server, &thread, "input.respond", answer(id, json!(true))).await;
    assert_eq!(over["error"], "no_such_interrupt");
}

#[tokio::test]
async fn a_command_that_can_not_be_taken_says_why_and_changes_nothing() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let path = format!("/threads/{thread}/commands");
    for body in [
        json!([]),
        json!({"method": "run.start"}),
        json!({"id": -1, "method": "run.start"}),
    ] {
        let refused = server.post(&path, body).await;
        assert_eq!(refused.status, 422, "{}", refused.text);
    }
    let input =
        json!({"assistant_id": "demo", "input": {"messages": [{"role": "user", "content": 7}]}});
    let refused = command(&server, &thread, "run.start", input).await;
    assert_eq!(refused["pointer"], "/params/input/messages/0/content");
    let nobody = command(&server, &thread, "run.start", says("nobody", "hello")).await;
    assert_eq!(nobody["error"], "no_such_run");
    let elsewhere = command(&server, &thread, "state.get", json!({})).await;
    assert_eq!(elsewhere["error"], "not_supported");
    let runs = server.get(&format!("/threads/{thread}/runs")).await.json();
    assert_eq!(runs, json!([]));
}

#[tokio::test]
async fn a_stream_that_lies_too_far_back_is_refused_with_what_to_do() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    for n in 0..65 {
        server
            .lang_wait(&thread, says("demo", &format!("{n}")))
            .await;
    }
    let body = json!({"channels": ["lifecycle"], "since": 1});
    let path = format!("/threads/{thread}/stream/events");
    let refused = server.post(&path, body).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert_eq!(refused.json()["metadata"]["pointer"], "/since");
    // It is no event of this thread's.
    let later = json!({"channels": ["lifecycle"], "since": (1_u64 << 53) - 1});
    let refused = server.post(&path, later).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert_eq!(refused.json()["metadata"]["pointer"], "/since");
}
