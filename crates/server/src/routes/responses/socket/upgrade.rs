//! Opens a WebSocket with metered input.

use super::meter::Metered;
use crate::error::ApiError;
use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::response::{IntoResponse as _, Response};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use interop::responses::RequestError;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// The socket of a client.
pub(super) type Socket = WebSocketStream<Metered<TokioIo<Upgraded>>>;

/// Memory for bytes that arrive, for each socket.
const READ_BUFFER: usize = 16 << 10;
/// Size from which events are written immediately, in bytes.
const WRITE_BUFFER: usize = 16 << 10;
/// Maximum size of an event and what waits before it.
const MAX_WRITE_BUFFER: usize = 64 << 20;

/// A request that opens a WebSocket.
pub(crate) struct Upgrade {
    accept: String,
    connection: OnUpgrade,
}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let refused = || {
            let message = "This path takes POST requests, and GET requests that open a WebSocket.";
            ApiError::from(RequestError::at("", "invalid_request", message))
        };
        let connection = parts.extensions.get().cloned().ok_or_else(refused)?;
        // It checks all headers but gives no access to the connection.
        let checked = WebSocketUpgrade::from_request_parts(parts, state).await;
        drop(checked.map_err(|_| refused())?);
        let key = parts.headers.get(header::SEC_WEBSOCKET_KEY);
        let key = key.ok_or_else(refused)?;
        Ok(Self {
            accept: derive_accept_key(key.as_bytes()),
            connection,
        })
    }
}

impl Upgrade {
    /// The answer that opens the socket.
    pub(super) fn response(&self) -> Response {
        let is = |value| HeaderValue::from_static(value);
        let headers = [
            (header::CONNECTION, is("upgrade")),
            (header::UPGRADE, is("websocket")),
        ];
        let accept = [(header::SEC_WEBSOCKET_ACCEPT, self.accept.as_str())];
        (StatusCode::SWITCHING_PROTOCOLS, headers, accept).into_response()
    }

    /// The socket after its answer is sent; `None` if the connection broke. It reads messages of up to
    /// `max_message` bytes.
    pub(super) async fn socket(
        self,
        meter: impl FnOnce(TokioIo<Upgraded>) -> Metered<TokioIo<Upgraded>>,
        max_message: usize,
    ) -> Option<Socket> {
        let upgraded = self.connection.await.ok()?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            .max_write_buffer_size(MAX_WRITE_BUFFER)
            .max_message_size(Some(max_message))
            .max_frame_size(Some(max_message));
        let metered = meter(TokioIo::new(upgraded));
        Some(WebSocketStream::from_raw_socket(metered, Role::Server, Some(config)).await)
    }
}
