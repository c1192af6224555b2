//! A thread whose two sub-agents have asked, and of which one goes on until it is stopped.

use crate::harness::{Answer, Server, TEAM};
use crate::langgraph::says;
use serde_json::{Value, json};
use std::time::Duration;

/// Agents beside the team's: one whose answer takes longer than any test once its tool has run.
const HOLDER: &str = r#"
[models.h]
provider = "scripted"
script = "SCRIPT"
[[agents.lead.subagents]]
agent = "holder"
name = "hold"
description = "Never comes to an end."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "{query}"
[agents.holder]
model = "h"
tools = ["compute"]
requires_approval = ["compute"]
"#;

/// Such a thread.
pub(crate) struct Held {
    pub(crate) server: Server,
    pub(crate) thread: String,
    /// What the one that is held asks, and the other one.
    pub(crate) asked: [String; 2],
}

impl Held {
    /// The other one computes.
    pub(crate) async fn new() -> Self {
        Self::beside("find", "compute 1 + 1").await
    }

    /// The other one is this one with this question.
    pub(crate) async fn beside(other: &str, query: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script.json");
        let call = json!({"name": "compute", "arguments": {"expression": "6 * 7"}});
        let turns = json!([{"tool_calls": [call]}, {"text": "At last.", "delay_ms": 3_600_000}]);
        std::fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
        let holder = HOLDER.replace("SCRIPT", script.to_str().unwrap());
        let server = Server::at(directory, &format!("{TEAM}{holder}")).await;
        let thread = server.lang_thread().await;
        let query = json!({"query": query});
        let text = format!("use hold {{\"query\": \"it\"}} and {other} {query}");
        let values = server.lang_wait(&thread, says("lead", &text)).await;
        let asked = values["__interrupt__"].as_array().unwrap();
        let id = |n: usize| asked[n]["id"].as_str().unwrap().to_owned();
        assert_eq!(asked.len(), 2, "{values}");
        Self {
            asked: [id(0), id(1)],
            server,
            thread,
        }
    }

    /// The body of a run that answers one of them.
    pub(crate) fn resume(&self, n: usize) -> Value {
        let id = &self.asked[n];
        json!({"assistant_id": "lead", "command": {"resume": {id: true}}})
    }

    /// The call of one of them, and the key of its thread.
    pub(crate) fn place(&self, n: usize) -> (&str, &str) {
        self.asked[n].split_once('@').unwrap()
    }

    /// Answers the one that is held; gives the id of the thread's run.
    pub(crate) async fn answer_first(&self) -> String {
        let path = format!("/threads/{}/runs", self.thread);
        let run = self.server.post(&path, self.resume(0)).await;
        assert_eq!(run.status, 200, "{}", run.text);
        run.json()["run_id"].as_str().unwrap().to_owned()
    }

    /// Waits until the thread has been woken for both, and lets the one that is held end.
    pub(crate) async fn let_go(&self) {
        let path = format!("/api/v1/threads/{}/events?limit=1000", self.thread);
        let events = async || -> Answer {
            let request = self.server.request("GET", &path);
            let request = request.header("accept", "application/json");
            let request = request.body(axum::body::Body::empty()).unwrap();
            self.server.send(request).await
        };
        let woken = async {
            while events().await.text.matches("\"via\":\"subagent\"").count() < 2 {
                tokio::task::yield_now().await;
            }
        };
        let woken = tokio::time::timeout(Duration::from_secs(20), woken).await;
        woken.expect("the thread is woken for both");
        let (_, key) = self.place(0);
        let path = format!("/api/v1/threads/{}/cancel", key.replace('/', "%2F"));
        let stopped = self.server.post(&path, json!({})).await;
        assert_eq!(stopped.status, 200, "{}", stopped.text);
    }
}
