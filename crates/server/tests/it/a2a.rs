//! A2A: cards, tasks and streams in both HTTP bindings, and who may have them.

mod cards;
mod rest;
mod rights;
mod rpc;
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

impl Server {
    /// A request of a client that speaks 1.0.
    pub(crate) async fn a2a(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let request = self
            .request(method, path)
            .header("a2a-version", "1.0")
            .header(header::CONTENT_TYPE, "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(request.body(body).unwrap()).await
    }

    /// A JSON-RPC call, whose answer says its id again.
    pub(crate) async fn rpc(&self, path: &str, method: &str, params: Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": "c1", "method": method, "params": params});
        let answer = self.a2a("POST", path, Some(&call)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let answer = answer.json();
        assert_eq!(answer["id"], "c1", "{answer}");
        answer
    }

    /// The task that a message comes to.
    pub(crate) async fn task(&self, path: &str, message: Value) -> Value {
        let answer = self.rpc(path, "SendMessage", says(message)).await;
        let task = answer["result"]["task"].clone();
        assert!(task["id"].is_string(), "{answer}");
        task
    }
}

/// The parameters of a message with these members, a text by itself among them.
pub(crate) fn says(mut message: Value) -> Value {
    if let Some(text) = message.as_str() {
        message = json!({"parts": [{"text": text}]});
    }
    for (key, value) in [("messageId", json!("m1")), ("role", json!("ROLE_USER"))] {
        if message.get(key).is_none() {
            message[key] = value;
        }
    }
    json!({ "message": message })
}

pub(crate) fn state(task: &Value) -> &str {
    let state = task["status"]["state"].as_str().unwrap();
    state.strip_prefix("TASK_STATE_").unwrap()
}

/// What a stream says.
pub(crate) fn told(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    frames(&answer.text)
}

/// The messages of a stream's text.
pub(crate) fn frames(text: &str) -> Vec<Value> {
    let frames = text.split_terminator("\n\n");
    let frames = frames.filter(|frame| !frame.starts_with(':'));
    frames
        .map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}
