//! Concurrent runs and queued messages, over HTTP.

use crate::harness::{Answer, Server, two_tenants};
use serde_json::json;
use std::time::Duration;

const AGENTS: &str = r#"
[models.m]
provider = "scripted"
[models.small]
provider = "scripted"
concurrent_runs = 1
[agents.lead]
model = "small"
[[agents.lead.subagents]]
agent = "finder"
name = "find"
description = "Finds something."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "{query}"
[agents.finder]
model = "small"
[agents.plain]
model = "m"
"#;
const SLOW: &str = "slow 20ms say 500 words";

async fn limited(limits: &str) -> Server {
    let config = format!(
        "default_agent = \"plain\"\n{limits}\n{AGENTS}{}",
        two_tenants()
    );
    Server::new(&config).await
}

async fn say(server: &Server, key: &str, agent: &str, content: &str) -> Answer {
    let path = format!("/api/v1/threads/{key}/messages");
    server
        .post(&path, json!({"content": content, "agent": agent}))
        .await
}

/// The limit that a refusal names.
fn limit(answer: &Answer) -> (u16, String) {
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], "limit_reached", "{error}");
    assert!(answer.retry_after() > 0);
    (
        answer.status.as_u16(),
        error["details"]["limit"].as_str().unwrap().to_owned(),
    )
}

async fn cancelled(server: &Server, key: &str) {
    let answer = server
        .post(&format!("/api/v1/threads/{key}/cancel"), json!({}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    server.at_rest(key).await;
}

#[tokio::test]
async fn a_run_beyond_the_limit_of_its_tenant_is_answered_with_429() {
    let server = limited("[limits.tenant]\nconcurrent_runs = 1").await;
    let (a, b) = (server.with_key("llk_a"), server.with_key("llk_b"));
    assert_eq!(say(&a, "one", "plain", SLOW).await.status, 202);
    let refused = say(&a, "two", "plain", "hello").await;
    assert_eq!(limit(&refused), (429, "tenant.concurrent_runs".into()));
    assert_eq!(a.get("/api/v1/threads/two").await.status, 404);
    assert_eq!(say(&a, "one", "plain", "next").await.status, 202);
    assert_eq!(say(&b, "one", "plain", SLOW).await.status, 202);
    let figures = a.get("/metrics").await.text;
    for line in [
        "loomline_tenant_concurrent_runs{tenant=\"a\"} 1",
        "loomline_tenant_concurrent_runs_limit{tenant=\"a\"} 1",
        "loomline_tenant_queued_triggers{tenant=\"a\"} 1",
        "loomline_concurrent_runs 2",
    ] {
        assert!(figures.contains(line), "{line} is not in {figures}");
    }
    cancelled(&a, "one").await;
    for _ in 0..200 {
        if say(&a, "two", "plain", "hello").await.status == 202 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the slot is not free again");
}

#[tokio::test]
async fn a_message_beyond_the_queues_of_its_tenant_is_answered_with_429() {
    let server = limited("[limits.tenant]\nqueued_triggers = 1").await;
    let a = server.with_key("llk_a");
    for expected in [202, 202, 429] {
        let answer = say(&a, "one", "plain", SLOW).await;
        assert_eq!(answer.status, expected, "{}", answer.text);
        if expected == 429 {
            assert_eq!(limit(&answer), (429, "tenant.queued_triggers".into()));
        }
    }
}

#[tokio::test]
async fn a_run_of_a_full_model_is_refused_and_its_sub_agents_wait_for_calls() {
    let server = limited("").await;
    let (a, b) = (server.with_key("llk_a"), server.with_key("llk_b"));
    assert_eq!(say(&a, "one", "lead", SLOW).await.status, 202);
    let refused = say(&b, "two", "lead", "hello").await;
    assert_eq!(limit(&refused), (429, "models.NAME.concurrent_runs".into()));
    assert_eq!(say(&b, "two", "plain", "hello").await.status, 202);
    b.at_rest("two").await;
    cancelled(&a, "one").await;
    // Both agents ask the model that takes one call at a time.
    for _ in 0..200 {
        if say(&a, "three", "lead", "find query=gold").await.status == 202 {
            let events = a.at_rest("three").await;
            let end = events
                .iter()
                .find(|(_, it)| it["type"] == "execution.status.changed");
            assert_eq!(end.unwrap().1["to"], "completed");
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the slot is not free again");
}
