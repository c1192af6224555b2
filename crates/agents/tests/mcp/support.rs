//! Clients and servers for the tests.

use crate::toys::Toys;
use loomline_agents::mcp::{McpClient, McpHttp, McpLifecycle, McpServer, McpStdio};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use upp::{Tool, ToolContext, ToolOutput};

/// The server that cargo builds beside the tests.
pub(crate) fn program() -> String {
    let tests: PathBuf = std::env::current_exe().unwrap();
    let target = tests.parent().unwrap().parent().unwrap();
    let program = target.join("examples").join("mcp_test_server");
    program.into_os_string().into_string().unwrap()
}

pub(crate) fn stdio(mode: &str) -> McpServer {
    let stdio = McpStdio {
        command: program(),
        args: vec![mode.to_owned()],
        ..McpStdio::default()
    };
    McpServer::stdio("toys", stdio)
}

pub(crate) async fn connected(server: McpServer) -> McpClient {
    McpClient::connect(server, CancellationToken::new())
        .await
        .unwrap()
}

pub(crate) fn tool(client: &McpClient, name: &str) -> Tool {
    let tools = client.tools();
    tools.into_iter().find(|tool| tool.name == name).unwrap()
}

pub(crate) fn context(signal: &CancellationToken) -> ToolContext {
    ToolContext {
        idempotency_key: "thread:call-1".into(),
        agent_id: "agent".into(),
        ..ToolContext::new("call-1".into(), signal.clone())
    }
}

pub(crate) async fn call(client: &McpClient, name: &str, arguments: Value) -> ToolOutput {
    let context = context(&CancellationToken::new());
    tool(client, name).run.run(arguments, context).await
}

/// What a tool without arguments says.
pub(crate) async fn said(client: &McpClient, name: &str) -> String {
    let value = call(client, name, json!({})).await.unwrap();
    value.as_str().unwrap().to_owned()
}

/// Why a call failed.
pub(crate) async fn failed(client: &McpClient, name: &str, arguments: Value) -> String {
    call(client, name, arguments).await.unwrap_err().message
}

/// The toys behind HTTP. Dropping it kills the server; its port may be bound again.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    /// The `Authorization` and `X-Key` of each request.
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
    tasks: JoinSet<()>,
    sessions: CancellationToken,
}

impl Site {
    pub(crate) async fn start() -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    pub(crate) async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let sessions = CancellationToken::new();
        let mut config = StreamableHttpServerConfig::default();
        config.cancellation_token = sessions.clone();
        let toys = Toys::new();
        let service = StreamableHttpService::new(
            move || Ok(toys.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        let guard = move |request: axum::extract::Request, next: axum::middleware::Next| {
            let header = |name: &str| {
                let value = request.headers().get(name);
                value
                    .map_or("-", |value| value.to_str().unwrap())
                    .to_owned()
            };
            ear.lock()
                .unwrap()
                .push(format!("{} {}", header("authorization"), header("x-key")));
            let refused = header("x-key") == "wrong";
            async move {
                if refused {
                    use axum::response::IntoResponse as _;
                    return axum::http::StatusCode::UNAUTHORIZED.into_response();
                }
                next.run(request).await
            }
        };
        let app = axum::Router::new()
            .nest_service("/mcp", service)
            .layer(axum::middleware::from_fn(guard));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            heard,
            tasks,
            sessions,
        }
    }

    /// Ends all connections at once.
    pub(crate) async fn kill(mut self) -> SocketAddr {
        self.sessions.cancel();
        self.tasks.shutdown().await;
        self.address
    }

    pub(crate) fn server(&self, lifecycle: McpLifecycle) -> McpServer {
        let http = McpHttp {
            url: format!("http://{}/mcp", self.address),
            ..McpHttp::default()
        };
        let mut server = McpServer::http("site", http);
        server.lifecycle = lifecycle;
        server
    }
}
