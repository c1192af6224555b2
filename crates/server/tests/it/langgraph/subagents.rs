//! Runs whose sub-agents ask.

use super::{last, says};
use crate::harness::Server;
use serde_json::json;

const TEAM: &str = r#"
default_agent = "lead"
[models.m]
provider = "scripted"
[agents.lead]
model = "m"
[[agents.lead.subagents]]
agent = "finder"
name = "find"
description = "Finds something."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "{query}"
[agents.finder]
model = "m"
tools = ["compute"]
requires_approval = ["compute"]
"#;

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
