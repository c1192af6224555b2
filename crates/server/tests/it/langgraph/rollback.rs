//! Runs that are taken out of their threads, and runs that are deleted.

use super::{CONFIG, last, says};
use crate::harness::Server;
use serde_json::{Value, json};

const LONG: &str = "slow 50ms say 20000 words";

async fn messages(server: &Server, thread: &str) -> Vec<Value> {
    let thread = server.get(&format!("/threads/{thread}")).await.json();
    thread["values"]["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_run_that_rolls_back_takes_the_place_of_the_one_at_work() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    server.lang_wait(&thread, says("demo", "first")).await;
    let runs = format!("/threads/{thread}/runs");
    let begun = server.post(&runs, says("demo", LONG)).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    let mut body = says("demo", "second");
    body["multitask_strategy"] = "rollback".into();
    let values = server.lang_wait(&thread, body.clone()).await;
    let texts = values["messages"].as_array().unwrap().iter();
    let texts: Vec<&str> = texts.map(|it| it["content"].as_str().unwrap()).collect();
    assert_eq!(
        texts,
        ["first", "You said: first", "second", "You said: second"]
    );
    // Where nothing is at work, nothing goes.
    let values = server.lang_wait(&thread, body).await;
    assert_eq!(values["messages"].as_array().unwrap().len(), 6);
    assert_eq!(last(&values), "You said: second");
}

#[tokio::test]
async fn a_cancel_that_rolls_back_takes_the_run_and_its_input_out() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let runs = format!("/threads/{thread}/runs");
    let mut body = says("demo", LONG);
    let list = body["input"]["messages"].as_array_mut().unwrap();
    list.insert(0, json!({"role": "user", "content": "before it"}));
    let begun = server.post(&runs, body).await.json();
    let run = begun["run_id"].as_str().unwrap();
    let path = format!("{runs}/{run}/cancel?action=rollback&wait=true");
    let cancelled = server.call("POST", &path, None).await;
    assert_eq!(cancelled.status, 204, "{}", cancelled.text);
    assert_eq!(messages(&server, &thread).await, [Value::Null; 0]);
    let values = server.lang_wait(&thread, says("demo", "and now?")).await;
    assert_eq!(last(&values), "You said: and now?");
}

#[tokio::test]
async fn a_deleted_run_is_found_no_longer_and_its_words_stay() {
    let server = Server::new(CONFIG).await;
    let thread = server.lang_thread().await;
    let runs = format!("/threads/{thread}/runs");
    server.lang_wait(&thread, says("demo", "hi")).await;
    let listed = server.get(&runs).await.json();
    let run = listed[0]["run_id"].as_str().unwrap();
    let path = format!("{runs}/{run}");
    let deleted = server.delete(&path).await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    for answer in [server.get(&path).await, server.delete(&path).await] {
        assert_eq!(answer.status, 404, "{}", answer.text);
    }
    assert_eq!(server.get(&runs).await.json(), json!([]));
    assert_eq!(messages(&server, &thread).await.len(), 2);
    let begun = server.post(&runs, says("demo", LONG)).await.json();
    let running = format!("{runs}/{}", begun["run_id"].as_str().unwrap());
    assert_eq!(server.delete(&running).await.status, 409);
    let cancel = format!("{running}/cancel");
    assert_eq!(server.call("POST", &cancel, None).await.status, 204);
    assert_eq!(server.delete(&running).await.status, 204);
}
