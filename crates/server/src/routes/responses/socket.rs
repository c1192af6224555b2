//! `GET /v1/responses` as a WebSocket: one response after the other on one connection.

mod turn;

use crate::auth::Caller;
use crate::body::parsed;
use crate::error::openai;
use crate::error::{ApiError, ErrorBody};
use crate::state::{Api, OpenStream};
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use interop::responses::{ErrorKind, RequestError, socket_frame};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// How long a connection may last.
const MAX_AGE: Duration = Duration::from_hours(1);
/// How often the client is asked whether it is there.
const PING: Duration = Duration::from_secs(15);
/// How many messages are read ahead while a response is made.
const AHEAD: usize = 8;
/// A message of up to so many times the length that it may have is read, and told that it is too long. At
/// one that is longer still the connection ends: what follows its head can't be told from messages.
const READ: usize = 2;

/// Opens a WebSocket on which responses are made.
///
/// Each message of the client is `{"type": "response.create", …}` with the members of a request, but
/// for `stream`, `stream_options` and `background`. The events of a response are a message each;
/// what comes meanwhile waits. The last response that is not stored can be gone on with on the
/// connection that made it.
#[utoipa::path(get, path = "/v1/responses", operation_id = "openResponsesSocket", tag = "responses", security(("key" = [])),
    responses((status = 101, description = "A WebSocket"), (status = "default", body = ErrorBody)))]
pub(crate) async fn open(
    State(api): State<Api>,
    caller: Caller,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| {
        let message = "This path takes POST requests, and GET requests that open a WebSocket.";
        RequestError::at("", "invalid_request", message)
    })?;
    let open = api.open_stream(&caller)?;
    let limit = api.app().config().server.max_body_bytes;
    let read = limit.saturating_mul(READ);
    let upgrade = upgrade.max_message_size(read).max_frame_size(read);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let now = Instant::now();
        let mut pings = tokio::time::interval_at(now + PING, PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut line = Line {
            socket,
            waiting: VecDeque::new(),
            limit,
            pings,
            ends: now + MAX_AGE,
            open,
        };
        turn::take_turns(&api, &caller, &mut line).await;
        line.close().await;
    }))
}

/// Why nothing more is said on a connection.
#[derive(Debug)]
pub(super) struct Gone;

/// A connection, with the messages that wait.
pub(super) struct Line {
    socket: WebSocket,
    /// Each as it came, or what is wrong with it.
    waiting: VecDeque<Result<String, ApiError>>,
    /// How many bytes a message may have.
    limit: usize,
    pings: Interval,
    ends: Instant,
    open: OpenStream,
}

impl Line {
    /// The next message of the client.
    async fn next(&mut self) -> Result<Result<String, ApiError>, Gone> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            self.attend().await?;
        }
    }

    /// Waits until something of the connection's own is to be done, and does it: reads a message,
    /// asks whether the client is there, ends.
    pub(super) async fn attend(&mut self) -> Result<(), Gone> {
        let has_room = self.waiting.len() < AHEAD;
        tokio::select! {
            biased;
            why = self.open.unwanted() => {
                if let Some(error) = why {
                    self.refuse(&error).await?;
                }
                Err(Gone)
            }
            () = tokio::time::sleep_until(self.ends) => {
                let error = RequestError {
                    kind: ErrorKind::InvalidRequest,
                    code: "websocket_connection_limit_reached",
                    pointer: None,
                    message: "A connection lasts 60 minutes. Open another one to go on.".to_owned(),
                };
                self.refuse(&error.into()).await?;
                Err(Gone)
            }
            _ = self.pings.tick() => self.send(Message::Ping(bytes::Bytes::new())).await,
            message = self.socket.recv(), if has_room => match message {
                Some(Ok(Message::Text(text))) => {
                    let limit = self.limit;
                    let is_too_long = text.len() > limit;
                    self.waiting.push_back(if is_too_long {
                        Err(ApiError::BodyTooLarge { limit })
                    } else {
                        Ok(text.as_str().to_owned())
                    });
                    Ok(())
                }
                Some(Ok(Message::Binary(_))) => {
                    let what = "Messages are text, not binary.";
                    self.refuse(&RequestError::at("", "invalid_request", what).into()).await
                }
                // Pings are answered by the library.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => Err(Gone),
            },
        }
    }

    /// Sends a text.
    pub(super) async fn tell(&mut self, text: &str) -> Result<(), Gone> {
        self.send(Message::Text(text.into())).await
    }

    /// Tells an error.
    pub(super) async fn refuse(&mut self, error: &ApiError) -> Result<(), Gone> {
        let (status, object) = openai::told(error);
        self.tell(&socket_frame(status.as_u16(), &object)).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Gone> {
        // A client that reads nothing does not keep the connection for ever.
        let sent = tokio::time::timeout_at(self.ends, self.socket.send(message));
        match sent.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }

    async fn close(mut self) {
        // Whether it hears it is the client's business.
        let closed = self.socket.send(Message::Close(None));
        let _ = tokio::time::timeout(Duration::from_secs(1), closed).await;
    }
}

/// A message as JSON, within the limits of bodies.
fn json_of(api: &Api, text: &str) -> Result<serde_json::Value, ApiError> {
    parsed(text, api.app().config().server.max_depth)
}
