//! Requests to a server, and their outcomes.

use super::catalog::{Entry, entry};
use super::config::McpServer;
use super::connection::Connection;
use super::error::McpError;
use super::handler::{Call, key};
use super::http::{self, Failure};
use super::text::{chain, clipped};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorData, JsonObject,
    ListToolsRequest, PaginatedRequestParams, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use upp::ToolCallId;

/// Maximum number of tools in a server's list, accepted or not.
const MAX_LISTED: usize = 10_000;

/// Maximum number of pages of a server's list.
const MAX_PAGES: usize = 1_000;

/// Timeout for sending the cancellation of a call.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a request has no result.
pub(super) enum End {
    /// The server has not received it; the connection is unusable.
    NotSent(String),
    /// The server may have received it; the connection is unusable.
    Lost(String),
    /// The server's answer is no result.
    Refused(String),
    /// It took too long; the server received a cancellation.
    TimedOut,
    /// The result is no longer needed; the server received a cancellation.
    Cancelled,
}

/// Calls a tool, and waits for its answer.
pub(super) async fn call(
    connection: &Connection,
    tool: &str,
    arguments: Option<JsonObject>,
    id: &ToolCallId,
    limit: Duration,
    stop: &CancellationToken,
) -> Result<CallToolResult, End> {
    let mut params = CallToolRequestParams::new(tool.to_owned());
    params.arguments = arguments;
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let mut handle = {
        let mut calls = connection.in_flight.0.lock().await;
        let handle = send(connection, request, None).await?;
        let call = Call {
            id: id.clone(),
            progress: f64::NEG_INFINITY,
        };
        calls.insert(key(&handle.progress_token), call);
        handle
    };
    let token = key(&handle.progress_token);
    let end = tokio::select! {
        biased;
        answer = &mut handle.rx => Ok(answer),
        () = stop.cancelled() => Err(End::Cancelled),
        () = tokio::time::sleep(limit) => Err(End::TimedOut),
    };
    connection.in_flight.0.lock().await.remove(&token);
    match end {
        Ok(answer) => {
            let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
            result(answer.map_err(|error| ended(connection, error))?)
        }
        Err(end) => {
            cancel(handle, &end).await;
            Err(end)
        }
    }
}

async fn cancel(handle: RequestHandle<RoleClient>, end: &End) {
    let reason = match end {
        End::TimedOut => "the call took too long",
        End::Cancelled | End::NotSent(_) | End::Lost(_) | End::Refused(_) => {
            "the result is no longer wanted"
        }
    };
    // A server that can't be told is about to be given up anyway.
    let told = handle.cancel(Some(reason.to_owned()));
    let _ = tokio::time::timeout(CANCEL_TIMEOUT, told).await;
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's enum grows")]
fn result(answer: ServerResult) -> Result<CallToolResult, End> {
    match answer {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::InputRequiredResult(_) => Err(End::Refused(
            "it asks for input of a user or a model, which this client does not give".to_owned(),
        )),
        _ => Err(End::Refused("its answer is no result of a tool".to_owned())),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's enum grows")]
async fn send(
    connection: &Connection,
    request: ClientRequest,
    timeout: Option<Duration>,
) -> Result<RequestHandle<RoleClient>, End> {
    let mut options = PeerRequestOptions::no_options();
    options.timeout = timeout;
    let sent = connection.peer.send_request_with_option(request, options);
    sent.await.map_err(|error| match error {
        ServiceError::TransportClosed => {
            connection.give_up();
            End::NotSent(ending(connection))
        }
        other => ended(connection, other),
    })
}

/// The outcome of a request that was sent.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's enum grows")]
fn ended(connection: &Connection, error: ServiceError) -> End {
    let end = match error {
        ServiceError::McpError(error) => End::Refused(refusal(&error)),
        ServiceError::Timeout { .. } => End::TimedOut,
        ServiceError::Cancelled { .. } => End::Cancelled,
        ServiceError::TransportSend(error) => match http::failure(error.error.as_ref()) {
            Some(Failure::NotSent(cause)) => End::NotSent(cause),
            Some(Failure::Lost(cause)) => End::Lost(cause),
            Some(Failure::Refused(cause)) => End::Refused(cause),
            None => End::Lost(ending(connection)),
        },
        ServiceError::TransportClosed => End::Lost(ending(connection)),
        other => End::Refused(chain(&other)),
    };
    if let End::NotSent(_) | End::Lost(_) = &end {
        connection.give_up();
    }
    end
}

fn ending(connection: &Connection) -> String {
    let ending = connection.ending().unwrap_or("the connection ended");
    ending.to_owned()
}

fn refusal(error: &ErrorData) -> String {
    format!("{} ({})", clipped(&error.message, 4096), error.code.0)
}

/// Reads the whole list of tools, from the server and not from a cache.
pub(super) async fn list(
    connection: &Connection,
    server: &McpServer,
) -> Result<Vec<Entry>, McpError> {
    let wrong = |what: String| McpError::List {
        server: Arc::clone(&server.name),
        what,
    };
    let mut entries = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor.take();
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let handle = send(connection, request, Some(server.limits.connect)).await;
        let handle = handle.map_err(|end| wrong(cause(end)))?;
        let answer = handle.await_response().await;
        let answer = answer.map_err(|error| wrong(cause(ended(connection, error))))?;
        let (page, next) = page(answer).map_err(|what| wrong(what.to_owned()))?;
        let n_before = entries.len();
        entries.extend(page.into_iter().map(|tool| match tool {
            Page::Read(tool) => Ok(*tool),
            Page::Raw(at, value) => entry(n_before + at, value),
        }));
        if entries.len() > MAX_LISTED {
            return Err(wrong(format!("it lists more than {MAX_LISTED} tools")));
        }
        match next {
            None => return Ok(entries),
            Some(next) => cursor = Some(next),
        }
    }
    Err(wrong(format!("its list has more than {MAX_PAGES} pages")))
}

fn cause(end: End) -> String {
    match end {
        End::NotSent(cause) | End::Lost(cause) | End::Refused(cause) => cause,
        End::TimedOut => "it does not answer in time".to_owned(),
        End::Cancelled => "the request was cancelled".to_owned(),
    }
}

enum Page {
    Read(Box<rmcp::model::Tool>),
    Raw(usize, Value),
}

/// One page, and the cursor of the next one. A page with a tool that the library can't parse is
/// returned as JSON.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's enum grows")]
fn page(answer: ServerResult) -> Result<(Vec<Page>, Option<String>), &'static str> {
    match answer {
        ServerResult::ListToolsResult(list) => {
            let tools = list.tools.into_iter();
            let tools = tools.map(|tool| Page::Read(Box::new(tool))).collect();
            Ok((tools, list.next_cursor))
        }
        ServerResult::CustomResult(custom) => {
            let Value::Object(mut fields) = custom.0 else {
                return Err("its list is no object");
            };
            let Some(Value::Array(tools)) = fields.shift_remove("tools") else {
                return Err("its list has no array of tools");
            };
            let next = match fields.shift_remove("nextCursor") {
                Some(Value::String(next)) => Some(next),
                Some(_) | None => None,
            };
            let tools = tools.into_iter().enumerate();
            Ok((tools.map(|(at, tool)| Page::Raw(at, tool)).collect(), next))
        }
        _ => Err("its answer is no list"),
    }
}
