//! The configured MCP servers: their clients, and the stored lists of their tools.
//!
//! A server that is down does not prevent the start. Its last list of tools is in the data directory and
//! is used again. A call then connects, or fails with the reason. If a server was never reached, only
//! the tools that the configuration names are known. Their schema accepts any object until a start
//! reaches the server.

use super::AgentsError;
use crate::config::{Config, ToolRef};
use agents::mcp::{McpClient, McpServer};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use stores::private;
use tokio_util::sync::CancellationToken;
use upp::Tool;

/// Maximum time that a start waits for the servers.
const START: Duration = Duration::from_secs(10);

/// The clients of the configured MCP servers.
pub(super) struct McpServers {
    clients: BTreeMap<String, McpClient>,
    /// The directory of the stored lists, if there is one.
    lists: Option<PathBuf>,
}

impl McpServers {
    /// Makes the clients, without starting or connecting to a server.
    pub(super) fn new(config: &Config, lists: Option<PathBuf>) -> Result<Self, AgentsError> {
        let mut clients = BTreeMap::new();
        for (name, server) in &config.mcp {
            clients.insert(
                name.clone(),
                client_of(name, server, config, lists.as_deref())?,
            );
        }
        Ok(Self { clients, lists })
    }

    /// Connects to all servers at once, and lists their tools. Returns whether any list changed.
    pub(super) async fn connect(&self) -> bool {
        let asked = self.clients.iter().map(|(name, client)| async move {
            match tokio::time::timeout(START, client.refresh()).await {
                Ok(Ok(changed)) => {
                    self.keep(name, client).await;
                    changed
                }
                Ok(Err(error)) => {
                    unreached(name, client, &error.to_string());
                    false
                }
                Err(_) => {
                    unreached(name, client, &format!("it was not ready within {START:?}"));
                    false
                }
            }
        });
        join_all(asked).await.contains(&true)
    }

    /// Stores the server's list for the next start. If this fails, the list is only missing while the
    /// server is down.
    async fn keep(&self, name: &str, client: &McpClient) {
        let Some(directory) = self.lists.clone() else {
            return;
        };
        let (file, list) = (file_of(&directory, name), client.listing());
        let written = tokio::task::spawn_blocking(move || write(&directory, &file, &list)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(server = name, %error, "the tools of an MCP server could not be kept");
        }
    }

    /// The tools of a reference, as far as they are known.
    pub(super) fn tools(&self, reference: &ToolRef) -> Vec<Tool> {
        let client = reference.server().and_then(|name| self.clients.get(name));
        let tools = client.map(McpClient::tools).unwrap_or_default();
        let meant = |tool: &Tool| is_meant(reference, tool);
        tools.into_iter().filter(meant).collect()
    }

    /// Closes all connections, and ends the servers that are child processes.
    pub(super) async fn close(&self) {
        join_all(self.clients.values().map(McpClient::close)).await;
    }
}

/// Whether a reference includes this tool.
pub(super) fn is_meant(reference: &ToolRef, tool: &Tool) -> bool {
    let origin = |field: &str| tool.metadata.get("mcp")?.get(field)?.as_str();
    match reference {
        ToolRef::Named(name) => tool.name == *name,
        ToolRef::Server(server) => origin("server") == Some(server),
        ToolRef::OfServer { server, tool } => {
            origin("server") == Some(server) && origin("tool") == Some(tool)
        }
    }
}

fn unreached(name: &str, client: &McpClient, cause: &str) {
    let n_tools = client.tools().len();
    tracing::warn!(
        server = name,
        n_tools,
        cause,
        "an MCP server can't be used now; agents have the tools that are known of it, whose calls connect anew or fail"
    );
}

fn client_of(
    name: &str,
    server: &McpServer,
    config: &Config,
    lists: Option<&Path>,
) -> Result<McpClient, AgentsError> {
    let signal = CancellationToken::new();
    if let Some(list) = lists.and_then(|directory| read(&file_of(directory, name))) {
        match McpClient::connect_lazy(server.clone(), &list, &signal) {
            Ok(client) => return Ok(client),
            Err(error) => {
                tracing::warn!(server = name, %error, "the kept list of an MCP server's tools is of no use");
            }
        }
    }
    let list = named(name, server, config);
    McpClient::connect_lazy(server.clone(), &list, &signal).map_err(AgentsError::Mcp)
}

/// The tools of a server that the configuration names, in the form of the server's list.
fn named(name: &str, server: &McpServer, config: &Config) -> Value {
    let mut names: BTreeSet<&str> = server.allow.iter().flatten().map(String::as_str).collect();
    for agent in config.agents.values() {
        for reference in &agent.tools {
            if let ToolRef::OfServer { server, tool } = reference
                && server == name
            {
                names.insert(tool);
            }
        }
    }
    let tool = |tool: &str| {
        let description = "What this tool does is not known: its server was not reached yet.";
        json!({"name": tool, "description": description, "inputSchema": {"type": "object"}})
    };
    names.into_iter().map(tool).collect()
}

fn file_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

fn read(file: &Path) -> Option<Value> {
    serde_json::from_str(&super::models::text_of(file).ok()?).ok()
}

/// Writes the file atomically: the whole new file, or the old one remains.
fn write(directory: &Path, file: &Path, list: &Value) -> std::io::Result<()> {
    private::make_directory(directory)?;
    let new = file.with_extension("new");
    let mut out = private::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&new)?;
    out.write_all(list.to_string().as_bytes())?;
    out.sync_all()?;
    std::fs::rename(&new, file)
}
