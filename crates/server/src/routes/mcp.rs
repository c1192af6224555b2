//! The Model Context Protocol over streamable HTTP: threads as resources, and tools to work with them.
//!
//! A request is one JSON-RPC message, and the server stores nothing of it after the response. Clients up
//! to 2025-11-25 receive a session anyway: their cancel notifications name a call only by a client's id.
//! See [`session`]. Each request is authorized separately.

mod calls;
mod handler;
mod message;
mod resources;
mod routes;
mod schema;
mod session;
mod start;
mod stream;
mod tools;

use crate::auth::Caller;
use crate::body::JsonText;
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use axum::body::Body;
use axum::extract::{FromRequest as _, Request, State};
use axum::response::Response;
use bytes::Bytes;
use calls::{Call, Calls};
use futures_util::StreamExt as _;
use handler::Handler;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, Full};
use message::{Message, no_message};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
pub(crate) use routes::PROTOCOL;
use std::sync::Arc;
use tower::ServiceExt as _;

/// The header with the client's session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The media types that the SDK requires clients to accept.
const ANSWERS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Maximum size of an error text of the SDK, in bytes.
const MAX_REFUSAL_BYTES: usize = 4096;

/// Answers one message of the Model Context Protocol.
///
/// The response to a call is a stream whose last event is the result; a notification gets 202. The tools
/// post to agents and read threads; resources are threads. The server has no stream for GET and no
/// sessions to DELETE.
#[utoipa::path(post, path = "/mcp", operation_id = "mcpCall", tag = "mcp", security(("key" = [])),
    params(("mcp-session-id" = Option<String>, Header), ("mcp-protocol-version" = Option<String>, Header)), request_body = Object,
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "A notification was taken"), (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(api): State<Api>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    let bounded = Request::from_parts(parts.clone(), body);
    let JsonText(text) = JsonText::from_request(bounded, &api).await?;
    let message = Message::read(&text)?;
    let session = parts.headers.get(SESSION).map(|named| {
        let named = named.to_str().ok();
        let named = named.filter(|named| session::is_of(named, &caller));
        named.map(str::to_owned).ok_or(ApiError::SessionNotFound)
    });
    let session = session.transpose()?;
    if let (Some(session), Some(cancels)) = (&session, &message.cancels) {
        api.shared::<Calls>().cancel(session, cancels);
    }
    let begins = message.is_initialize().then(|| session::new(&caller));
    let begins = begins.transpose()?;
    let call = match (&session, &message.id) {
        (Some(session), Some(id)) => api.shared::<Calls>().begin(session, id),
        _ => Call::default(),
    };
    let is_listen = message.is_listen();
    let mut handler = Handler::new(api.clone(), caller, message.params, call.stopped());
    if is_listen {
        handler.find_watched().await?;
    }
    if accepts_anything(&parts.headers) {
        parts.headers.insert(ACCEPT, ANSWERS);
    }
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(NeverSessionManager::default()),
        options(&api),
    );
    let request = Request::from_parts(parts, Full::new(Bytes::from(text)));
    let answered: Result<_, std::convert::Infallible> = service.oneshot(request).await;
    let mut response = match answered {
        Ok(response) => response.map(|body| until_stopped(body, call)),
        Err(never) => match never {},
    };
    if response.status().is_client_error() && !is_json(response.headers()) {
        return Err(refused(response).await);
    }
    if let Some(session) = begins.filter(|_| response.status().is_success()) {
        response.headers_mut().insert(SESSION, session);
    }
    Ok(response)
}

/// The SDK's options. The guard checks hosts and origins, and this module has its own sessions.
fn options(api: &Api) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(api.app().config().server.max_body_bytes)
        .with_cancellation_token(api.shutdown().child_token())
}

/// The response, which ends when its call is cancelled: the client no longer waits for it.
fn until_stopped(
    body: impl http_body::Body<Data = Bytes, Error = std::convert::Infallible> + Send + 'static,
    call: Call,
) -> Body {
    let stopped = call.stopped().cancelled_owned();
    let data = body.into_data_stream().take_until(stopped);
    Body::from_stream(data.map(move |data| {
        // The call is known as long as it is answered.
        let _ = &call;
        data
    }))
}

/// Whether a client accepts any media type, which the SDK does not recognize.
fn accepts_anything(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter();
    let mut ranges = accepted
        .filter_map(|accepted| accepted.to_str().ok())
        .flat_map(|accepted| accepted.split(','));
    ranges.any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let weight = |part: &str| part.strip_prefix("q=")?.parse::<f32>().ok();
        parts.next() == Some("*/*") && !parts.any(|part| weight(part).is_some_and(|it| it <= 0.0))
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"application/json"))
}

/// The error of a request that the SDK refuses with plain text instead of a protocol error.
async fn refused(response: Response) -> ApiError {
    let status = response.status();
    let reason = axum::body::to_bytes(response.into_body(), MAX_REFUSAL_BYTES).await;
    let reason = reason.unwrap_or_default();
    let reason = String::from_utf8_lossy(&reason).into_owned();
    // That it came as JSON is known: the SDK makes no message of it.
    if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return no_message(reason);
    }
    ApiError::McpTransport { status, reason }
}

/// A session's name as a header.
fn header(name: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(name).ok()
}
