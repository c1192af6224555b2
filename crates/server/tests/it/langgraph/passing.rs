//! Runs without a thread: found, awaited and cancelled by their ids while they work and a while after.

use super::CONFIG;
use crate::harness::{Server, two_tenants};
use serde_json::{Value, json};
use std::time::Duration;

const LONG: &str = "slow 50ms say 20000 words";

/// Begins a run without a thread, in the Agent Protocol's words.
async fn begin(server: &Server, text: &str) -> Value {
    let messages = json!([{"role": "user", "content": text}]);
    let body = json!({"agent_id": "demo", "input": {"messages": messages}});
    let begun = server.post("/runs", body).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    begun.json()
}

fn id(run: &Value) -> &str {
    run["run_id"].as_str().unwrap()
}

#[tokio::test]
async fn a_run_without_a_thread_is_found_and_cancelled_while_it_works() {
    let server = Server::new(CONFIG).await;
    let run = begin(&server, LONG).await;
    let path = format!("/runs/{}", id(&run));
    let found = server.get(&path).await;
    assert_eq!(found.status, 200, "{}", found.text);
    assert_eq!(found.json()["status"], "pending");
    let cancelled = server.call("POST", &format!("{path}/cancel"), None).await;
    assert_eq!(cancelled.status, 204, "{}", cancelled.text);
    let waited = server.get(&format!("{path}/wait")).await.json();
    assert_eq!(waited["run"]["status"], "interrupted", "{waited}");
}

#[tokio::test]
async fn a_run_without_a_thread_is_awaited_and_streamed_also_when_it_is_over() {
    let server = Server::new(CONFIG).await;
    let run = begin(&server, "Good morning").await;
    let path = format!("/runs/{}", id(&run));
    for _ in 0..2 {
        let waited = server.get(&format!("{path}/wait")).await;
        assert_eq!(waited.status, 200, "{}", waited.text);
        let messages = waited.json()["messages"].clone();
        assert_eq!(messages[1]["content"], "You said: Good morning");
    }
    let streamed = server.get(&format!("{path}/stream")).await;
    assert!(streamed.text.contains("event: values"), "{}", streamed.text);
    // Its thread is nobody's.
    let thread = run["thread_id"].as_str().unwrap();
    let found = server.get(&format!("/threads/{thread}")).await;
    assert_eq!(found.status, 404, "{}", found.text);
    let count = server.post("/threads/count", json!({})).await;
    assert_eq!(count.json(), 0);
}

#[tokio::test]
async fn langgraphs_paths_lead_to_a_run_without_a_thread_too() {
    let server = Server::new(CONFIG).await;
    let begun = server.post("/runs", super::says("demo", LONG)).await;
    let path = begun.headers["content-location"].to_str().unwrap();
    let run = server.get(path).await.json();
    assert_eq!(run["status"], "running", "{run}");
    let cancelled = server.call("POST", &format!("{path}/cancel"), None).await;
    assert_eq!(cancelled.status, 204, "{}", cancelled.text);
    let joined = server.get(&format!("{path}/join")).await;
    assert_eq!(joined.status, 200, "{}", joined.text);
}

#[tokio::test]
async fn a_run_without_a_thread_is_there_for_its_own_tenant_alone() {
    let server = Server::new(&format!("{CONFIG}{}", two_tenants())).await;
    let (a, b) = (server.with_key("llk_a"), server.with_key("llk_b"));
    let run = begin(&a, LONG).await;
    let path = format!("/runs/{}", id(&run));
    assert_eq!(b.get(&path).await.status, 404);
    let cancel = format!("{path}/cancel");
    assert_eq!(b.call("POST", &cancel, None).await.status, 404);
    assert_eq!(a.call("POST", &cancel, None).await.status, 204);
}

#[tokio::test]
async fn of_the_runs_that_are_over_only_the_last_ones_are_there() {
    let server = Server::new(CONFIG).await;
    let mut paths = Vec::new();
    for _ in 0..257 {
        let run = begin(&server, "x").await;
        paths.push(format!("/runs/{}", id(&run)));
    }
    let n_found = async || {
        let mut n_found = 0;
        for path in &paths {
            n_found += usize::from(server.get(path).await.status == 200);
        }
        n_found
    };
    let bounded = async {
        while n_found().await != 256 {
            tokio::task::yield_now().await;
        }
    };
    let bounded = tokio::time::timeout(Duration::from_mins(1), bounded).await;
    bounded.expect("the oldest one goes");
}

#[tokio::test]
async fn streams_without_a_thread_reach_the_end_of_a_slow_run() {
    let server = Server::new(CONFIG).await;
    let modes = ["values", "updates", "messages-tuple", "messages", "custom"];
    let text = "slow 20ms say 5 words";
    let stream = async |n: usize| {
        let mode = modes[n % modes.len()];
        let mut body = super::says("demo", text);
        if n % 2 == 1 {
            let messages = body["input"].take();
            body = json!({"agent_id": "demo", "input": messages});
        }
        body["stream_mode"] = mode.into();
        let streamed = server.post("/runs/stream", body).await;
        assert_eq!(streamed.status, 200, "{}", streamed.text);
        let failed = streamed.text.contains("event: error");
        assert!(!failed, "{mode}: {}", streamed.text);
        if mode == "values" {
            assert_eq!(streamed.text.matches("event: values").count(), 2);
        }
    };
    for round in 0..5 {
        futures_util::future::join_all((0..12).map(|n| stream(12 * round + n))).await;
    }
    let wait = server.post("/runs/wait", super::says("demo", text)).await;
    assert_eq!(wait.json()["messages"][1]["type"], "ai", "{}", wait.text);
}
