//! Runs whose sub-agents ask, and runs that hand over.

use super::{last, says};
use crate::harness::{Answer, Server, TEAM};
use axum::body::Body;
use futures_util::StreamExt as _;
use http::header;
use serde_json::{Value, json};

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

/// The run that an answer is told of is over, and then both sub-agents were heard.
async fn both_are_heard(server: &Server, thread: &str, told: [Answer; 2]) {
    for answer in told {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let run = answer.json();
        let run = run["run_id"].as_str().unwrap();
        let path = format!("/threads/{thread}/runs/{run}/join");
        assert_eq!(server.get(&path).await.status, 200, "{run}");
    }
    server.at_rest(thread).await;
    let kept = server.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(kept["status"], "idle", "{kept}");
    let text = kept["values"].to_string();
    assert!(
        text.contains("gave 42.") && text.contains("gave 2."),
        "{text}"
    );
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

#[tokio::test]
async fn a_sub_agent_is_heard_that_goes_on_while_the_thread_goes_on_with_another_one() {
    let server = Server::new(TEAM).await;
    let queries = ["slow 50ms compute 6 * 7", "compute 1 + 1"];
    let (thread, [one, other]) = two_ask(&server, queries).await;
    let path = format!("/threads/{thread}/runs");
    let one = server.post(&path, one).await;
    let other = server.post(&path, other).await;
    both_are_heard(&server, &thread, [one, other]).await;
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
