//! MCP, as its own client for Rust sees it: in both of its lifecycles, with sessions and without.

mod cancel;
mod http;
mod repeated;
mod resources;
mod rights;
mod tools;

use crate::harness::{Served, Server};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Agents that ask and one that doesn't.
pub(super) const CONFIG: &str = r#"
default_agent = "demo"
[models.s]
provider = "scripted"
[agents.demo]
model = "s"
tools = ["compute"]
[agents.clerk]
model = "s"
tools = ["compute"]
requires_approval = ["compute"]
[[agents.clerk.external]]
name = "ask_user"
description = "Asks the user."
parameters = { type = "object", properties = { question = { type = "string" } }, required = ["question"] }
"#;

/// A client, which keeps what it is told meanwhile.
#[derive(Clone, Default)]
pub(super) struct Told {
    messages: Arc<Mutex<Vec<String>>>,
    more: Arc<Notify>,
}

impl Told {
    /// All that was told so far.
    pub(super) fn all(&self) -> Vec<String> {
        self.messages.lock().unwrap().clone()
    }

    /// Waits until something was told.
    pub(super) async fn something(&self) {
        while self.all().is_empty() {
            self.more.notified().await;
        }
    }
}

impl ClientHandler for Told {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let message = progress.message.unwrap_or_default();
        self.messages.lock().unwrap().push(message);
        self.more.notify_one();
    }
}

/// A client that is connected.
pub(super) type Client = RunningService<RoleClient, Told>;

/// Both lifecycles: with a session up to 2025-11-25, and without one since.
pub(super) fn lifecycles() -> [ClientLifecycleMode; 2] {
    [ClientLifecycleMode::Initialize, stateless()]
}

pub(super) fn stateless() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

/// A server on a socket, and the same one for requests of the native API.
pub(super) async fn served(config: &str) -> (Server, Served) {
    let server = Server::new(config).await;
    let socket = Served::new(server.app.clone()).await;
    (server, socket)
}

pub(super) async fn connect(
    served: &Served,
    key: Option<&str>,
    lifecycle: ClientLifecycleMode,
) -> Client {
    let mut config = StreamableHttpClientTransportConfig::with_uri(served.url("/mcp"));
    config.auth_header = key.map(str::to_owned);
    let transport = StreamableHttpClientTransport::with_client(web(), config);
    let connected = Told::default().serve_with_lifecycle(transport, lifecycle);
    connected.await.unwrap()
}

/// A client for HTTP alone.
pub(super) fn web() -> reqwest::Client {
    upp::http_client_builder("test").unwrap().build().unwrap()
}

pub(super) fn call(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("{arguments}")
    };
    CallToolRequestParams::new(name).with_arguments(arguments)
}

/// What a tool gives, which its schema allows.
pub(super) async fn structured(client: &Client, name: &'static str, arguments: Value) -> Value {
    let result = client.call_tool(call(name, arguments)).await.unwrap();
    assert_ne!(result.is_error, Some(true), "{result:?}");
    let given = result.structured_content.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    let tool = tools.iter().find(|tool| tool.name == name).unwrap();
    let schema = Value::Object((**tool.output_schema.as_ref().unwrap()).clone());
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let faults: Vec<String> = validator
        .iter_errors(&given)
        .map(|fault| format!("{fault} at {}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{faults:?}: {given}");
    given
}

/// The code and the pointer of a tool's failure.
pub(super) fn failure(result: &CallToolResult) -> (String, Option<String>) {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    assert_eq!(result.structured_content, None);
    let error = &result.meta.as_ref().unwrap().0["loomline/error"];
    let text = |field: &str| error[field].as_str().map(str::to_owned);
    (text("code").unwrap(), text("pointer"))
}

/// The thread's document, by the native API.
pub(super) async fn document(server: &Server, key: &str) -> Value {
    server
        .get(&format!("/api/v1/threads/{key}/document"))
        .await
        .json()
}
