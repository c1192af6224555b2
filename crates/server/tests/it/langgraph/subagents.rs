//! Runs whose sub-agents ask, and runs that hand over.

use super::{last, says};
use crate::harness::Server;
use axum::body::Body;
use futures_util::StreamExt as _;
use http::header;
use serde_json::json;

pub(super) const TEAM: &str = r#"
default_agent = "lead"
[models.m]
provider = "scripted"
[agents.lead]
model = "m"
handoffs = ["closer"]
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
[agents.closer]
model = "m"
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

#[tokio::test]
async fn who_answers_one_sub_agent_holds_nobody_up_who_answers_the_next_one() {
    let server = Server::new(TEAM).await;
    let thread = server.lang_thread().await;
    let find = |query: &str| format!("find {}", json!({"query": query}));
    let text = format!(
        "use {} and {}",
        find("compute 6 * 7"),
        find("compute 1 + 1")
    );
    let values = server.lang_wait(&thread, says("lead", &text)).await;
    let asked = values["__interrupt__"].as_array().unwrap();
    assert_eq!(asked.len(), 2, "{values}");
    let path = format!("/threads/{thread}/runs");
    let resume = |n: usize| {
        let id = asked[n]["id"].as_str().unwrap();
        let body = json!({"assistant_id": "lead", "command": {"resume": {id: true}}});
        server.post(&path, body)
    };
    // The thread goes on with one of them or with both, and each answer is told of the run it is in.
    let (one, other) = tokio::join!(resume(0), resume(1));
    for answer in [one, other] {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let run = answer.json();
        let path = format!("{path}/{}/join", run["run_id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.status, 200, "{run}");
    }
    let kept = server.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(kept["status"], "idle", "{kept}");
    let text = kept["values"].to_string();
    assert!(
        text.contains("gave 42.") && text.contains("gave 2."),
        "{text}"
    );
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
