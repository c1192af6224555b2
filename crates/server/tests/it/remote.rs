//! Agents elsewhere: one server asks an agent of another.

mod broken;
mod crash;
mod gate;
mod refused;
mod stopped;
mod talks;
mod team;

use crate::harness::{Served, Server};
use serde_json::{Value, json};
use std::time::Duration;

/// What can be spoken.
pub(crate) const PROTOCOLS: [&str; 3] = ["responses", "a2a", "threads"];

/// The server elsewhere.
const FAR: &str = r#"
default_agent = "helper"
[models.s]
provider = "scripted"
[agents.helper]
model = "s"
tools = ["compute"]
[agents.careful]
model = "s"
tools = ["compute"]
requires_approval = ["compute"]
[agents.asker]
model = "s"
[[agents.asker.external]]
name = "lookup"
description = "Looks something up."
parameters = { type = "object", properties = { what = { type = "string" } }, required = ["what"] }
"#;

/// A server here and one elsewhere.
pub(crate) struct Two {
    pub(crate) near: Server,
    pub(crate) far: Server,
    _served: Served,
}

/// Where an agent of the server elsewhere is.
pub(crate) fn address(protocol: &str, served: &Served, agent: &str) -> String {
    match protocol {
        "a2a" => format!("url = \"{}\"", served.url(&format!("/a2a/{agent}"))),
        _ => format!("url = \"{}\", agent = \"{agent}\"", served.url("/v1")),
    }
}

/// A configuration with agents that are those elsewhere.
pub(crate) fn near(protocol: &str, served: &Served) -> String {
    let [helper, asker, careful] =
        ["helper", "asker", "careful"].map(|agent| address(protocol, served, agent));
    format!(
        r#"
default_agent = "helper"
[outbound]
http = true
allow = ["127.0.0.0/8"]
[models.s]
provider = "scripted"
[agents.helper]
description = "Helps from afar."
remote = {{ protocol = "{protocol}", {helper} }}
[agents.asker]
remote = {{ protocol = "{protocol}", {asker} }}
[agents.careful]
remote = {{ protocol = "{protocol}", {careful} }}
[agents.lead]
model = "s"
handoffs = ["helper"]
[[agents.lead.subagents]]
agent = "helper"
name = "delegate"
description = "Does something."
parameters = {{ type = "object", properties = {{ task = {{ type = "string" }} }}, required = ["task"] }}
prompt = "{{task}}"
"#
    )
}

impl Two {
    pub(crate) async fn new(protocol: &str) -> Self {
        let far = Server::new(FAR).await;
        let served = Served::new(far.app.clone()).await;
        let near = Server::new(&near(protocol, &served)).await;
        Self {
            near,
            far,
            _served: served,
        }
    }

    /// Has an agent answer.
    pub(crate) async fn say(&self, key: &str, agent: &str, content: &str) -> Value {
        let path = format!("/api/v1/threads/{key}/messages");
        let body = json!({"content": content, "agent": agent, "stream": true});
        let answer = self.near.post(&path, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        self.messages(key).await
    }

    pub(crate) async fn messages(&self, key: &str) -> Value {
        let path = format!("/api/v1/threads/{key}/messages");
        self.near.get(&path).await.json()["messages"].clone()
    }

    /// The keys of the threads elsewhere.
    pub(crate) async fn far_threads(&self) -> Vec<String> {
        threads(&self.far).await
    }
}

/// The keys of a server's threads.
pub(crate) async fn threads(server: &Server) -> Vec<String> {
    let listed = server.get("/api/v1/threads").await.json();
    let threads = listed["threads"].as_array().unwrap().iter();
    threads
        .map(|thread| thread["key"].as_str().unwrap().to_owned())
        .collect()
}

/// The texts of a list of messages.
pub(crate) fn texts(messages: &Value) -> Vec<String> {
    let messages = messages.as_array().unwrap().iter();
    let parts =
        messages.flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    parts
        .filter_map(|part| Some(part["text"].as_str()?.to_owned()))
        .collect()
}

/// Waits until something is so; the caller's timeout is the runner's.
pub(crate) async fn until<F: Future<Output = bool>>(mut is_so: impl FnMut() -> F) {
    while !is_so().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
