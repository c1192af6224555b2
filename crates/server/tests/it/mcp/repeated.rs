//! Calls that are made again under the same name: they get what their run has come to.

use super::{CONFIG, Client, connect, lifecycles, served, structured};
use crate::harness::{Served, Server};
use serde_json::{Value, json};

async fn connected() -> (Server, Served, Client) {
    let (server, socket) = served(CONFIG).await;
    let [lifecycle, _] = lifecycles();
    let client = connect(&socket, None, lifecycle).await;
    (server, socket, client)
}

async fn run(client: &Client, content: &str, agent: &str, name: &str) -> Value {
    let asked = json!({"key": "t", "content": content, "agent": agent, "idempotencyKey": name});
    structured(client, "run", asked).await
}

#[tokio::test]
async fn what_another_run_asks_is_none_of_a_repeated_run() {
    let (_server, _socket, client) = connected().await;
    let first = run(&client, "hello", "demo", "one").await;
    assert_eq!(first["status"], "completed");
    let waits = run(&client, "compute 6*7", "clerk", "two").await;
    assert_eq!(waits["status"], "waiting");
    assert_eq!(run(&client, "hello", "demo", "one").await, first);
    assert_eq!(run(&client, "compute 6*7", "clerk", "two").await, waits);
}

#[tokio::test]
async fn a_repeated_run_that_was_answered_since_says_what_came_of_it() {
    let (_server, _socket, client) = connected().await;
    let waits = run(&client, "compute 6*7", "clerk", "one").await;
    let call = &waits["pending"][0]["toolCallId"];
    let answers = json!([{"toolCallId": call, "approved": true}]);
    let answer = json!({"key": "t", "answers": answers, "idempotencyKey": "two"});
    let done = structured(&client, "answer", answer.clone()).await;
    assert!(done["text"].as_str().unwrap().contains("42"), "{done}");
    run(&client, "hello", "demo", "three").await;
    assert_eq!(structured(&client, "answer", answer).await, done);
    let again = run(&client, "compute 6*7", "clerk", "one").await;
    for field in ["status", "text", "pending", "executionId"] {
        assert_eq!(again[field], done[field], "{field}");
    }
}

#[tokio::test]
async fn a_repeated_run_whose_question_was_passed_over_says_so() {
    let (_server, _socket, client) = connected().await;
    run(&client, "compute 6*7", "clerk", "one").await;
    run(&client, "hello", "demo", "two").await;
    let again = run(&client, "compute 6*7", "clerk", "one").await;
    assert_eq!(
        (&again["status"], &again["pending"]),
        (&json!("completed"), &json!([]))
    );
    let text = again["text"].as_str().unwrap();
    assert!(text.contains("left without an answer"), "{text}");
}

#[tokio::test]
async fn a_repeated_answer_to_one_of_two_calls_says_what_the_other_one_led_to() {
    let (_server, _socket, client) = connected().await;
    let both = "use ask_user {\"question\": \"Why?\"} and compute 6*7";
    let waits = run(&client, both, "clerk", "one").await;
    let calls = waits["pending"].as_array().unwrap();
    let call = |name: &str| {
        let call = calls.iter().find(|it| it["toolName"] == name);
        call.unwrap()["toolCallId"].clone()
    };
    let answer = |answers: Value, name: &str| json!({"key": "t", "answers": [answers], "idempotencyKey": name});
    let first = answer(
        json!({"toolCallId": call("compute"), "approved": true}),
        "two",
    );
    let waits = structured(&client, "answer", first.clone()).await;
    assert_eq!(waits["status"], "waiting", "{waits}");
    let second = answer(
        json!({"toolCallId": call("ask_user"), "output": "because"}),
        "three",
    );
    let done = structured(&client, "answer", second).await;
    assert_eq!(done["status"], "completed", "{done}");
    let again = structured(&client, "answer", first).await;
    for field in ["status", "text", "pending", "executionId"] {
        assert_eq!(again[field], done[field], "{field}");
    }
}

#[tokio::test]
async fn a_repeated_run_that_goes_on_since_it_was_answered_is_waited_for() {
    let (server, _socket, client) = connected().await;
    let asks = "slow 20ms compute 6*7";
    let waits = run(&client, asks, "clerk", "one").await;
    let call = &waits["pending"][0]["toolCallId"];
    let answers = json!({"answers": [{"toolCallId": call, "approved": true}]});
    let taken = server.post("/api/v1/threads/t/answers", answers).await;
    assert_eq!(taken.status, 202, "{}", taken.text);
    let again = run(&client, asks, "clerk", "one").await;
    assert_eq!(again["status"], "completed", "{again}");
    assert!(again["text"].as_str().unwrap().contains("42"), "{again}");
}
