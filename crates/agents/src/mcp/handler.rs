//! Handles the messages that servers send on their own.
#![expect(
    deprecated,
    reason = "servers of today still ask for roots, which the newest version drops"
)]

use super::config::{McpProgress, OnProgress};
use super::text::clipped;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationCreateRequestMethod, ErrorData, Implementation, ListRootsRequestMethod,
    ListRootsResult, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};
use upp::ToolCallId;

/// Maximum length of a progress notification's message, in bytes; longer ones are cut.
const MESSAGE_BYTES: usize = 1024;

/// The calls in flight, by their progress tokens.
///
/// The lock is held while a call is sent and registered, so that its first progress notification
/// finds it.
#[derive(Default)]
pub(super) struct InFlight(pub(super) Mutex<BTreeMap<String, Call>>);

/// A call in flight.
pub(super) struct Call {
    pub(super) id: ToolCallId,
    pub(super) progress: f64,
}

pub(super) fn key(token: &ProgressToken) -> String {
    token.0.to_string()
}

/// Handles a server's messages. The client offers nothing: all requests except pings are refused.
pub(super) struct Handler {
    pub(super) server: Arc<str>,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) changes: watch::Sender<u64>,
    pub(super) on_progress: Option<OnProgress>,
}

impl Handler {
    async fn progress(&self, params: ProgressNotificationParam) {
        let id = {
            let mut calls = self.in_flight.0.lock().await;
            match calls.get_mut(&key(&params.progress_token)) {
                // Notifications may overtake each other; what would lead back is left out.
                Some(call) if params.progress > call.progress => {
                    call.progress = params.progress;
                    call.id.clone()
                }
                Some(_) | None => return,
            }
        };
        let message = params.message.as_deref();
        let progress = McpProgress {
            server: Arc::clone(&self.server),
            tool_call_id: id,
            progress: params.progress,
            total: params.total,
            message: message.map(|message| clipped(message, MESSAGE_BYTES)),
        };
        tracing::debug!(?progress, "a call of an MCP tool goes on");
        if let Some(hook) = &self.on_progress {
            hook(&progress);
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("loomline", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), client)
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::method_not_found::<ElicitationCreateRequestMethod>())
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress(params).await;
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.send_modify(|n_changes| *n_changes += 1);
    }
}
