//! `GET /v1/responses` as a WebSocket: one response after the other on one connection.

mod frames;
mod meter;
mod turn;
mod upgrade;

use crate::auth::Caller;
use crate::body::BodyLease;
use crate::error::openai;
use crate::error::{ApiError, ErrorBody};
use crate::state::{Api, OpenStream};
use axum::extract::State;
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use interop::responses::{ErrorKind, RequestError, socket_frame};
use meter::Metered;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use upgrade::{Socket, Upgrade};

/// How long a connection may last.
const MAX_AGE: Duration = Duration::from_hours(1);
/// Interval of the pings to the client.
const PING: Duration = Duration::from_secs(15);
/// Time limit of a message from its first frame to its last.
const LONGEST_MESSAGE: Duration = Duration::from_secs(30);
/// How many messages are read ahead while a response is made.
const AHEAD: usize = 8;
/// How much a message may exceed the body limit and still be read and refused, in bytes. A longer
/// message ends the connection, because its rest can't be distinguished from messages.
const READ_BEYOND: usize = 64 << 10;

/// Opens a WebSocket on which responses are made.
///
/// Each message of the client is `{"type": "response.create", …}` with the members of a request, except
/// `stream`, `stream_options` and `background`. Each event of a response is one message. Messages that
/// arrive meanwhile are queued. The last response that is not stored can be continued on its own
/// connection only.
#[utoipa::path(get, path = "/v1/responses", operation_id = "openResponsesSocket", tag = "responses", security(("key" = [])),
    responses((status = 101, description = "A WebSocket"), (status = "default", body = ErrorBody)))]
pub(crate) async fn open(
    State(api): State<Api>,
    caller: Caller,
    upgrade: Upgrade,
) -> Result<Response, ApiError> {
    let open = api.open_stream(&caller)?;
    let response = upgrade.response();
    let sockets = api.app().sockets().clone();
    sockets.spawn(async move {
        let limit = api.app().config().server.max_body_bytes;
        let lease = api.app().body_lease(&caller.tenant);
        let meter = |connection| Metered::new(connection, lease, LONGEST_MESSAGE);
        let socket = upgrade.socket(meter, limit.saturating_add(READ_BEYOND));
        if let Some(socket) = socket.await {
            let mut line = Line::new(&api, socket, open);
            Box::pin(turn::take_turns(&api, &caller, &mut line)).await;
            line.close().await;
        }
    });
    Ok(response)
}

/// The connection is over; nothing more can be sent.
#[derive(Debug)]
pub(super) struct Disconnected;

/// A message of the client.
pub(super) struct Incoming {
    /// Its text, or what is wrong with it.
    text: Result<Utf8Bytes, ApiError>,
    /// The memory that its bytes use.
    lease: BodyLease,
}

/// A connection, with the messages that wait.
pub(super) struct Line {
    socket: Socket,
    waiting: VecDeque<Incoming>,
    /// Maximum size of a message, in bytes.
    limit: usize,
    pings: Interval,
    /// When a ping was sent that may not have been answered.
    pinged: Option<Instant>,
    /// How long a client may stop reading.
    stalled: Duration,
    ends: Instant,
    open: OpenStream,
}

impl Line {
    fn new(api: &Api, socket: Socket, open: OpenStream) -> Self {
        let config = api.app().config();
        let stalled = config.limits.stalled_reader;
        let now = Instant::now();
        let every = PING.min(stalled / 2).max(Duration::from_millis(1));
        let mut pings = tokio::time::interval_at(now + every, every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            socket,
            waiting: VecDeque::new(),
            limit: config.server.max_body_bytes,
            pings,
            pinged: None,
            stalled,
            ends: now + MAX_AGE,
            open,
        }
    }

    /// The next message of the client.
    async fn next(&mut self) -> Result<Incoming, Disconnected> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            self.attend().await?;
        }
    }

    /// Waits for the connection's next own event and handles it: a message of the client, a ping that is
    /// due, or the end.
    pub(super) async fn attend(&mut self) -> Result<(), Disconnected> {
        let has_room = self.waiting.len() < AHEAD;
        if !has_room {
            self.socket.get_mut().pause();
        }
        tokio::select! {
            biased;
            why = self.open.unwanted() => {
                if let Some(error) = why {
                    self.refuse(&error).await?;
                }
                Err(Disconnected)
            }
            () = tokio::time::sleep_until(self.ends) => {
                let error = RequestError {
                    kind: ErrorKind::InvalidRequest,
                    code: "websocket_connection_limit_reached",
                    pointer: None,
                    message: "A connection lasts 60 minutes. Open another one to go on.".to_owned(),
                };
                self.refuse(&error.into()).await?;
                Err(Disconnected)
            }
            message = self.socket.next(), if has_room => match message {
                Some(Ok(message)) => self.take(message).await,
                Some(Err(error)) => self.broken(&error).await,
                None => Err(Disconnected),
            },
            _ = self.pings.tick() => self.ping().await,
        }
    }

    async fn take(&mut self, message: Message) -> Result<(), Disconnected> {
        match message {
            Message::Text(text) => {
                let (lease, limit) = (self.socket.get_mut().take_message(), self.limit);
                let text = if text.len() > limit {
                    lease.free_all();
                    Err(ApiError::BodyTooLarge { limit })
                } else {
                    Ok(text)
                };
                self.waiting.push_back(Incoming { text, lease });
                Ok(())
            }
            Message::Binary(_) => {
                drop(self.socket.get_mut().take_message());
                let what = "Messages are text, not binary.";
                let error = RequestError::at("", "invalid_request", what);
                self.refuse(&error.into()).await
            }
            // Pings are answered by the library.
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(()),
            Message::Close(_) => Err(Disconnected),
        }
    }

    /// Sends the client the error if a limit ended the connection.
    async fn broken(&mut self, error: &Error) -> Result<(), Disconnected> {
        let limit = self.limit;
        let fault = self.socket.get_mut().take_fault();
        let too_large = matches!(error, Error::Capacity(_));
        let fault = fault.or(too_large.then_some(ApiError::BodyTooLarge { limit }));
        if let Some(fault) = fault {
            self.refuse(&fault).await?;
        }
        Err(Disconnected)
    }

    /// Sends a ping; ends the connection if the client has sent nothing for too long.
    async fn ping(&mut self) -> Result<(), Disconnected> {
        let (now, heard) = (Instant::now(), self.socket.get_ref().last_received());
        let unanswered = self.pinged.filter(|pinged| heard < *pinged);
        if unanswered.is_some_and(|pinged| now - pinged >= self.stalled) {
            return Err(Disconnected);
        }
        self.pinged = unanswered.or(Some(now));
        self.send(Message::Ping(bytes::Bytes::new())).await
    }

    /// Sends a text.
    pub(super) async fn send_text(&mut self, text: &str) -> Result<(), Disconnected> {
        self.send(Message::Text(text.into())).await
    }

    /// Sends an error.
    pub(super) async fn refuse(&mut self, error: &ApiError) -> Result<(), Disconnected> {
        let (status, object) = openai::error_body(error);
        self.send_text(&socket_frame(status.as_u16(), &object))
            .await
    }

    async fn send(&mut self, message: Message) -> Result<(), Disconnected> {
        // A client that reads nothing does not keep the connection for ever.
        let until = self.ends.min(Instant::now() + self.stalled);
        let sent = tokio::time::timeout_at(until, self.socket.send(message));
        match sent.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Disconnected),
        }
    }

    async fn close(mut self) {
        // Whether it hears it is the client's business.
        let closed = self.socket.send(Message::Close(None));
        let _ = tokio::time::timeout(Duration::from_secs(1), closed).await;
    }
}
