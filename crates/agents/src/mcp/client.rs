//! The client of one server, with its connection if there is one.

use super::call;
use super::catalog::{Catalog, RejectedTool, entry};
use super::config::McpServer;
use super::connection::Connection;
use super::error::McpError;
use super::exchange;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use upp::Tool;

/// A client of one MCP server (UAP-14). Clones share it.
///
/// The connection, and the child process if there is one, lives until the client and all its tools
/// are dropped. It also ends with [`Self::close`], or when the signal passed at the start is
/// cancelled.
#[derive(Clone)]
pub struct McpClient {
    inner: Arc<Inner>,
}

/// The data that the client and its tools share.
pub(super) struct Inner {
    pub(super) server: McpServer,
    pub(super) calls: TaskTracker,
    signal: CancellationToken,
    changes: watch::Sender<u64>,
    catalog: RwLock<Arc<Catalog>>,
    slot: Mutex<Slot>,
}

/// The connection, or the state of the attempts to get one.
#[derive(Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    n_connected: u64,
    failed: Option<Failed>,
}

struct Failed {
    until: Instant,
    wait: Duration,
    error: McpError,
}

impl McpClient {
    /// Starts or connects to the server and lists its tools.
    ///
    /// Cancelling `signal` aborts this; later it ends the client for good.
    ///
    /// # Errors
    ///
    /// Any [`McpError`] except a collision. After an error no task or process is left.
    pub async fn connect(server: McpServer, signal: CancellationToken) -> Result<Self, McpError> {
        let client = Self::new(server, &signal, Catalog::default());
        client.refresh().await?;
        Ok(client)
    }

    /// Makes a client from an earlier [`Self::listing`]; the first call connects. So an agent can
    /// start while the server is down.
    ///
    /// # Errors
    ///
    /// [`McpError::List`] if `listing` is no array; [`McpError::TooManyTools`] and
    /// [`McpError::MissingTool`] as in [`Self::connect`].
    pub fn connect_lazy(
        server: McpServer,
        listing: &Value,
        signal: &CancellationToken,
    ) -> Result<Self, McpError> {
        let Value::Array(tools) = listing else {
            return Err(McpError::List {
                server: server.name,
                what: "the stored list is no array".to_owned(),
            });
        };
        let entries = tools.iter().cloned().enumerate();
        let entries = entries.map(|(at, tool)| entry(at, tool)).collect();
        let catalog = Catalog::new(&server, entries)?;
        Ok(Self::new(server, signal, catalog))
    }

    fn new(server: McpServer, signal: &CancellationToken, catalog: Catalog) -> Self {
        Self {
            inner: Arc::new(Inner {
                server,
                calls: TaskTracker::new(),
                signal: signal.child_token(),
                changes: watch::Sender::new(0),
                catalog: RwLock::new(Arc::new(catalog)),
                slot: Mutex::default(),
            }),
        }
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.inner.server.name
    }

    /// The tools as of the last listing, in the server's order, with prefix, effect and code.
    ///
    /// A returned list does not change; see "The list of tools is frozen" in the module's
    /// documentation.
    pub fn tools(&self) -> Vec<Tool> {
        let catalog = self.inner.catalog();
        let tools = catalog.tools.iter();
        tools.map(|tool| call::tool(&self.inner, tool)).collect()
    }

    /// The listed tools that can't be used, with the reasons.
    pub fn rejected(&self) -> Vec<RejectedTool> {
        self.inner.catalog().rejected.clone()
    }

    /// The server's listing of the tools in use: an array of the protocol's tool objects. Store it
    /// for [`Self::connect_lazy`].
    pub fn listing(&self) -> Value {
        json!(self.inner.catalog().listed)
    }

    /// Counts the server's notices of changed tools, and the reconnections, as the tools may differ
    /// after one.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Lists the tools again, for the next [`Self::tools`]. Returns whether they have changed. If
    /// it fails, the last list stays.
    pub async fn refresh(&self) -> Result<bool, McpError> {
        let server = &self.inner.server;
        let connection = self.inner.connected().await?;
        let catalog = Catalog::new(server, exchange::list(&connection, server).await?)?;
        let mut current = self
            .inner
            .catalog
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let differs = current.listed != catalog.listed || current.rejected != catalog.rejected;
        *current = Arc::new(catalog);
        Ok(differs)
    }

    /// Ends the connection and waits until calls and a child process have ended. Later calls fail.
    pub async fn close(&self) {
        self.inner.signal.cancel();
        let connection = self.inner.slot.lock().await.connection.take();
        if let Some(connection) = connection {
            connection.close().await;
        }
        self.inner.calls.close();
        self.inner.calls.wait().await;
    }
}

impl std::fmt::Debug for McpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpClient")
            .field("server", &self.inner.server)
            .finish_non_exhaustive()
    }
}

/// The tools of several servers, in the order of the servers.
///
/// # Errors
///
/// [`McpError::Collision`] where two servers offer tools of one name.
pub fn all_tools(clients: &[McpClient]) -> Result<Vec<Tool>, McpError> {
    let mut owners: BTreeMap<String, Arc<str>> = BTreeMap::new();
    let mut all = Vec::new();
    for client in clients {
        let server = &client.inner.server.name;
        for tool in client.tools() {
            if let Some(first) = owners.insert(tool.name.clone(), Arc::clone(server)) {
                return Err(McpError::Collision {
                    tool: tool.name,
                    first,
                    second: Arc::clone(server),
                });
            }
            all.push(tool);
        }
    }
    Ok(all)
}

impl Inner {
    fn catalog(&self) -> Arc<Catalog> {
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&catalog)
    }

    /// The connection; a new one if necessary. Concurrent callers share one attempt. After a failed
    /// attempt they fail with its error until the back-off is over.
    pub(super) async fn connected(&self) -> Result<Arc<Connection>, McpError> {
        let mut slot = self.slot.lock().await;
        if self.signal.is_cancelled() {
            return Err(McpError::Closed {
                server: Arc::clone(&self.server.name),
            });
        }
        if let Some(connection) = slot.connection.take_if(|connection| !connection.is_open()) {
            tracing::info!(
                server = %self.server.name,
                ending = connection.ending(),
                "an MCP server went away"
            );
        }
        if let Some(connection) = &slot.connection {
            return Ok(Arc::clone(connection));
        }
        if let Some(failed) = &slot.failed
            && Instant::now() < failed.until
        {
            return Err(failed.error.clone());
        }
        match Connection::open(&self.server, &self.changes, &self.signal).await {
            Ok(connection) => Ok(self.opened(&mut slot, connection)),
            Err(error) => {
                self.failed(&mut slot, &error);
                Err(error)
            }
        }
    }

    fn opened(&self, slot: &mut Slot, connection: Connection) -> Arc<Connection> {
        let connection = Arc::new(connection);
        slot.connection = Some(Arc::clone(&connection));
        slot.failed = None;
        if slot.n_connected > 0 {
            self.changes.send_modify(|n_changes| *n_changes += 1);
        }
        slot.n_connected += 1;
        connection
    }

    fn failed(&self, slot: &mut Slot, error: &McpError) {
        tracing::warn!(%error, "an MCP server can't be reached");
        let limits = &self.server.limits;
        let wait = match &slot.failed {
            Some(failed) => (failed.wait * 2).min(limits.max_backoff),
            None => limits.first_backoff,
        };
        slot.failed = Some(Failed {
            until: Instant::now() + wait,
            wait,
            error: error.clone(),
        });
    }
}
