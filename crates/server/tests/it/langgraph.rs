//! `LangGraph`'s API and the Agent Protocol: what their clients can't see of themselves.

mod agent_protocol;
mod answers;
mod passing;
mod protocol;
mod repeated;
mod resent;
mod rights;
mod rollback;
mod runs;
mod search;
mod store;
mod subagents;

use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

/// Agents that ask and one that doesn't.
pub(crate) const CONFIG: &str = r#"
default_agent = "demo"
[models.s]
provider = "scripted"
[agents.demo]
model = "s"
[agents.clerk]
model = "s"
tools = ["compute"]
requires_approval = ["compute"]
"#;

/// Whether a path is of these protocols.
pub(crate) fn has(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    [
        "threads",
        "runs",
        "agents",
        "assistants",
        "store",
        "info",
        "ok",
    ]
    .contains(&first)
}

impl Server {
    /// A request with a body of JSON, if it has one.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let request = self
            .request(method, path)
            .header(header::CONTENT_TYPE, "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(request.body(body).unwrap()).await
    }

    /// A new thread.
    pub(crate) async fn lang_thread(&self) -> String {
        let made = self.post("/threads", json!({})).await;
        assert_eq!(made.status, 200, "{}", made.text);
        made.json()["thread_id"].as_str().unwrap().to_owned()
    }

    /// What a run of the thread comes to.
    pub(crate) async fn lang_wait(&self, thread: &str, body: Value) -> Value {
        let path = format!("/threads/{thread}/runs/wait");
        let answer = self.post(&path, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }
}

/// The body of a run that says something.
pub(crate) fn says(agent: &str, text: &str) -> Value {
    json!({"assistant_id": agent, "input": {"messages": [{"role": "user", "content": text}]}})
}

/// The text that stands last in the values.
pub(crate) fn last(values: &Value) -> &str {
    let messages = values["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap()
}
