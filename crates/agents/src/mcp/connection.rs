//! One connection to a server, from the handshake until it breaks.

use super::config::{McpLifecycle, McpServer, McpTransport};
use super::error::McpError;
use super::handler::{Handler, InFlight};
use super::http::{self, Failure};
use super::stdio::{Ending, LastLine, StdioTransport, log_stderr};
use super::text::chain;
use rmcp::ClientLifecycleMode;
use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{
    ClientInitializeError, Peer, RoleClient, RunningService, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::{DynamicTransportError, IntoTransport};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Maximum pause before a lost subscription is reopened.
const MAX_RELISTEN: Duration = Duration::from_mins(1);

/// Timeout for the standard error of a process that did not start.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection. Dropping it ends the connection and its child process.
pub(super) struct Connection {
    service: tokio::sync::Mutex<RunningService<RoleClient, Handler>>,
    pub(super) peer: Peer<RoleClient>,
    pub(super) in_flight: Arc<InFlight>,
    ending: Ending,
    broken: CancellationToken,
    /// Reads standard error and subscriptions; ends with the connection.
    _tasks: JoinSet<()>,
}

impl Connection {
    /// Connects to the server and performs the handshake.
    pub(super) async fn open(
        server: &McpServer,
        changes: &watch::Sender<u64>,
        signal: &CancellationToken,
    ) -> Result<Self, McpError> {
        let after = server.limits.connect;
        tokio::select! {
            biased;
            () = signal.cancelled() => Err(McpError::Closed { server: Arc::clone(&server.name) }),
            opened = tokio::time::timeout(after, Self::handshake(server, changes, signal)) => {
                opened.unwrap_or_else(|_| {
                    Err(McpError::Timeout { server: Arc::clone(&server.name), after })
                })
            }
        }
    }

    async fn handshake(
        server: &McpServer,
        changes: &watch::Sender<u64>,
        signal: &CancellationToken,
    ) -> Result<Self, McpError> {
        let in_flight = Arc::<InFlight>::default();
        let handler = Handler {
            server: Arc::clone(&server.name),
            in_flight: Arc::clone(&in_flight),
            changes: changes.clone(),
            on_progress: server.on_progress.clone(),
        };
        let ending: Ending = Arc::new(OnceLock::new());
        let mut tasks = JoinSet::new();
        let service = match &server.transport {
            McpTransport::Stdio(stdio) => {
                let (transport, stderr) =
                    StdioTransport::spawn(stdio, &server.limits, Arc::clone(&ending)).map_err(
                        |cause| connect(server, format!("it can't be started: {cause}")),
                    )?;
                let last = Arc::<LastLine>::default();
                tasks.spawn(log_stderr(
                    Arc::clone(&server.name),
                    stderr,
                    Arc::clone(&last),
                ));
                let running = serve(server, handler, transport, signal).await;
                match running {
                    Ok(service) => service,
                    Err(error) => {
                        // The process is dead by now, and has said all it will.
                        let _ = tokio::time::timeout(LAST_WORDS, tasks.join_next()).await;
                        let line = last.get();
                        tracing::warn!(server = %server.name, stderr = line, "an MCP server did not start");
                        return Err(initialize_error(server, &error, &ending));
                    }
                }
            }
            McpTransport::Http(address) => {
                let transport =
                    http::transport(address, &server.limits).map_err(|what| McpError::Config {
                        server: Arc::clone(&server.name),
                        what,
                    })?;
                let running = serve(server, handler, transport, signal).await;
                running.map_err(|error| initialize_error(server, &error, &ending))?
            }
        };
        let peer = service.peer().clone();
        if announces_changes(&peer) {
            tasks.spawn(listen(peer.clone(), changes.clone()));
        }
        Ok(Self {
            service: tokio::sync::Mutex::new(service),
            peer,
            in_flight,
            ending,
            broken: CancellationToken::new(),
            _tasks: tasks,
        })
    }

    /// Whether it can be used for a call.
    pub(super) fn is_open(&self) -> bool {
        !self.broken.is_cancelled()
            && !self.peer.is_transport_closed()
            && self.ending.get().is_none()
    }

    /// Marks the connection as broken, so that the next call connects again.
    pub(super) fn give_up(&self) {
        self.broken.cancel();
    }

    /// Why it ended, if that is known.
    pub(super) fn ending(&self) -> Option<&str> {
        self.ending.get().map(String::as_str)
    }

    /// Ends the connection, and waits until it and its child process have ended.
    pub(super) async fn close(&self) {
        self.broken.cancel();
        // What ended before, by itself or by a panic of a task, is closed as well.
        let _ = self.service.lock().await.close().await;
    }
}

async fn serve<T, E, A>(
    server: &McpServer,
    handler: Handler,
    transport: T,
    signal: &CancellationToken,
) -> Result<RunningService<RoleClient, Handler>, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let lifecycle = match server.lifecycle {
        McpLifecycle::Auto => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        McpLifecycle::Initialize => ClientLifecycleMode::Initialize,
    };
    serve_client_with_lifecycle_and_ct(handler, transport, lifecycle, signal.child_token()).await
}

fn connect(server: &McpServer, cause: String) -> McpError {
    McpError::Connect {
        server: Arc::clone(&server.name),
        cause,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's enum grows")]
fn initialize_error(
    server: &McpServer,
    error: &ClientInitializeError,
    ending: &Ending,
) -> McpError {
    if let Some(ending) = ending.get() {
        return connect(server, ending.clone());
    }
    // After a vain `server/discover` only the failure of `initialize` counts.
    let last = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
        error => error,
    };
    let transport = match last {
        ClientInitializeError::TransportError { error, .. } => Some(error),
        _ => None,
    };
    connect(
        server,
        transport
            .and_then(transport_cause)
            .unwrap_or_else(|| chain(error)),
    )
}

fn transport_cause(error: &DynamicTransportError) -> Option<String> {
    match http::failure(error.error.as_ref())? {
        Failure::NotSent(cause) | Failure::Lost(cause) | Failure::Refused(cause) => Some(cause),
    }
}

/// Whether the server announces changes of its tools through a subscription, as in protocol
/// versions from 2026-07-28 on.
fn announces_changes(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info().is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref();
        !info.protocol_version.has_initialize()
            && tools.is_some_and(|tools| tools.list_changed == Some(true))
    })
}

/// Counts the changes that a subscription reports, and reopens the subscription when it breaks.
async fn listen(peer: Peer<RoleClient>, changes: watch::Sender<u64>) {
    let mut wait = Duration::from_secs(1);
    while !peer.is_transport_closed() {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        if let Ok(mut subscription) = peer.listen(filter).await {
            while let Ok(Some(notification)) = subscription.next().await {
                wait = Duration::from_secs(1);
                if let ServerNotification::ToolListChangedNotification(_) = notification {
                    changes.send_modify(|n_changes| *n_changes += 1);
                }
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(MAX_RELISTEN);
    }
}
