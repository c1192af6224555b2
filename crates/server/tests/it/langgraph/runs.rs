//! Runs: begun once, named while they wait, read by their ids.

use super::{CONFIG, last, says};
use crate::harness::Server;
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

const LONG: &str = "slow 50ms say 2000 words";

#[tokio::test]
async fn a_run_that_waits_for_its_turn_has_the_id_of_its_execution() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let path = format!("/threads/{thread}/runs");
    let first = server.post(&path, says("demo", LONG)).await.json();
    let second = server
        .post(&path, says("demo", "Good morning"))
        .await
        .json();
    assert_eq!(
        (&first["status"], &second["status"]),
        (&json!("running"), &json!("pending"))
    );
    let first = first["run_id"].as_str().unwrap();
    let second = second["run_id"].as_str().unwrap();
    let waits = server.get(&format!("{path}/{second}")).await.json();
    assert_eq!(waits["status"], "pending");
    let cancelled = server
        .call("POST", &format!("{path}/{first}/cancel?wait=1"), None)
        .await;
    assert_eq!(cancelled.status, 204, "{}", cancelled.text);
    let values = server.get(&format!("{path}/{second}/join")).await.json();
    assert_eq!(last(&values), "You said: Good morning");
    let native = server
        .get(&format!("/api/v1/threads/{thread}/runs"))
        .await
        .text;
    assert!(
        native.contains(first) && native.contains(second),
        "{native}"
    );
}

#[tokio::test]
async fn a_run_that_is_asked_for_again_under_its_token_is_the_same_run() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let send = || async {
        let request = server
            .request("POST", &format!("/threads/{thread}/runs"))
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", "once");
        let body = says("demo", "Good morning").to_string();
        server
            .send(request.body(Body::from(body)).unwrap())
            .await
            .json()
    };
    let (one, other) = (send().await, send().await);
    assert_eq!(one["run_id"], other["run_id"]);
    let run = one["run_id"].as_str().unwrap();
    let values = server
        .get(&format!("/threads/{thread}/runs/{run}/join"))
        .await
        .json();
    assert_eq!(values["messages"].as_array().unwrap().len(), 2);
    assert_eq!(
        server
            .get(&format!("/threads/{thread}/runs"))
            .await
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn an_answer_goes_on_under_a_run_of_its_own_and_keeps_what_the_first_one_noted() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let mut asks = says("clerk", "use compute 6 * 7");
    asks["metadata"] = json!({"n": 1});
    let values = server.lang_wait(&thread, asks).await;
    let id = values["__interrupt__"][0]["id"].as_str().unwrap();
    let resume = json!({"assistant_id": "clerk", "command": {"resume": {id: true}}});
    let run = server
        .post(&format!("/threads/{thread}/runs"), resume)
        .await
        .json();
    let run = run["run_id"].as_str().unwrap();
    let values = server
        .get(&format!("/threads/{thread}/runs/{run}/join"))
        .await
        .json();
    assert_eq!(last(&values), "compute gave 42.");
    let runs = server.get(&format!("/threads/{thread}/runs")).await.json();
    let noted: Vec<&Value> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["metadata"])
        .collect();
    assert_eq!(noted, [&json!({"n": 1}), &json!({"n": 1})]);
    assert_eq!(runs[0]["run_id"], run);
}

#[tokio::test]
async fn a_question_that_is_taken_back_is_no_run_and_leaves_its_thread_idle() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    server
        .lang_wait(&thread, says("clerk", "use compute 6 * 7"))
        .await;
    let runs = server.get(&format!("/threads/{thread}/runs")).await.json();
    let run = runs[0]["run_id"].as_str().unwrap();
    let path = format!("/threads/{thread}/runs/{run}/cancel");
    assert_eq!(server.call("POST", &path, None).await.status, 204);
    assert_eq!(server.call("POST", &path, None).await.status, 409);
    let kept = server.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(
        (&kept["status"], &kept["interrupts"]),
        (&json!("idle"), &json!({}))
    );
    assert_eq!(
        server
            .get(&format!("/threads/{thread}/runs"))
            .await
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let state = server.get(&format!("/threads/{thread}/state")).await.json();
    assert_eq!(
        (&state["next"], &state["interrupts"]),
        (&json!([]), &json!([]))
    );
}

#[tokio::test]
async fn a_thread_that_another_protocol_began_is_found_by_its_id_and_goes_on() {
    let server = Server::new(CONFIG).await;
    server.say("talk", "hello").await;
    let native = server.get("/api/v1/threads/talk").await.json();
    let found = server.post("/threads/search", json!({})).await.json();
    let id = found[0]["thread_id"].as_str().unwrap();
    assert_eq!(native["id"], id);
    let values = server.lang_wait(id, says("demo", "again")).await;
    assert_eq!(values["messages"].as_array().unwrap().len(), 4);
    let messages = server.get("/api/v1/threads/talk/messages").await.json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn what_is_refused_has_changed_nothing_and_says_where() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let before = server.seq(&thread).await;
    let runs = format!("/threads/{thread}/runs");
    let mut hooked = says("demo", "x");
    hooked["webhook"] = "https://hooks.example".into();
    for (path, body, status, pointer) in [
        (&runs, hooked, 422, Some("/webhook")),
        (&runs, says("nobody", "x"), 404, None),
        (
            &runs,
            json!({"assistant_id": "demo", "command": {"resume": true}}),
            409,
            Some("/command/resume"),
        ),
        (
            &runs,
            json!({"assistant_id": "demo", "input": {"messages": [{"role": "user", "content": [{"type": "file", "base64": "%"}]}]}}),
            422,
            Some("/input/messages/0/content/0"),
        ),
        (
            &format!("/threads/{thread}/state"),
            json!({"values": {"todos": []}}),
            422,
            Some("/values/todos"),
        ),
        (
            &"/threads".to_owned(),
            json!({"thread_id": thread}),
            409,
            None,
        ),
        (
            &"/threads/search".to_owned(),
            json!({"limit": 0}),
            422,
            Some("/limit"),
        ),
        (&"/runs/crons".to_owned(), json!({}), 405, None),
        (&"/runs/batch".to_owned(), json!([]), 405, None),
        (&"/runs/cancel".to_owned(), json!({}), 405, None),
        (&"/threads/prune".to_owned(), json!({}), 405, None),
        (
            &"/assistants/demo/versions".to_owned(),
            json!({}),
            405,
            None,
        ),
        (&"/assistants/demo/latest".to_owned(), json!({}), 405, None),
        (&format!("/threads/{thread}/stream"), json!({}), 405, None),
    ] {
        let answer = server.post(path, body).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        let told = answer.json();
        assert_eq!(told["detail"], told["message"]);
        assert_eq!(
            told["metadata"].get("pointer").and_then(Value::as_str),
            pointer,
            "{told}"
        );
    }
    let missing = server
        .get("/threads/0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061")
        .await;
    assert_eq!(
        (missing.status.as_u16(), missing.json()["code"].as_str()),
        (404, Some("not_found"))
    );
    assert_eq!(server.get("/threads/no-uuid").await.status, 422);
    assert_eq!(
        server.get("/runs/nothing/at/all").await.json()["code"],
        "route_not_found"
    );
    assert_eq!(server.seq(&thread).await, before);
}

#[tokio::test]
async fn a_run_whose_question_was_passed_over_can_not_be_stopped_and_stops_no_other_one() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let path = format!("/threads/{thread}/runs");
    server
        .lang_wait(&thread, says("clerk", "use compute 6 * 7"))
        .await;
    let runs = server.get(&path).await.json();
    let asks = runs[0]["run_id"].as_str().unwrap().to_owned();
    let next = server
        .post(&path, says("demo", "slow 3600s say 2 words"))
        .await;
    let next = next.json()["run_id"].as_str().unwrap().to_owned();
    let cancel = async |run: &str| {
        let path = format!("{path}/{run}/cancel");
        server.call("POST", &path, None).await.status
    };
    assert_eq!(cancel(&asks).await, 409);
    let runs = server.get(&format!("{path}/{next}")).await.json();
    assert_eq!(runs["status"], "running", "{runs}");
    assert_eq!(cancel(&next).await, 204);
}

#[tokio::test]
async fn a_run_that_would_go_on_from_a_state_makes_no_thread() {
    let server = Server::new(CONFIG).await;
    let id = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061";
    let mut body = says("demo", "x");
    body["if_not_exists"] = "create".into();
    body["checkpoint_id"] = id.into();
    let refused = server.post(&format!("/threads/{id}/runs"), body).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert_eq!(server.get(&format!("/threads/{id}")).await.status, 404);
}

#[tokio::test]
async fn a_busy_thread_is_refused_with_the_words_that_help() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let path = format!("/threads/{thread}/runs");
    server.post(&path, says("demo", LONG)).await;
    let mut second = says("demo", "x");
    second["multitask_strategy"] = "reject".into();
    let refused = server.post(&path, second).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let told = refused.json();
    assert_eq!(told["metadata"]["pointer"], "/multitask_strategy");
    assert!(
        told["detail"].as_str().unwrap().contains("enqueue"),
        "{told}"
    );
}
