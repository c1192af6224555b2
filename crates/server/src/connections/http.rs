//! HTTP on one connection, until it ends, is idle too long, or must make room.

use super::client::ClientAddress;
use super::connection::{Connection, Due, InProgress};
use super::socket::{Socket, SocketSlot, Stream};
use super::{Overflow, Shared};
use crate::held::HeldBody;
use axum::Router;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::{Either, ready};
use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

/// Maximum size of a request's head, in bytes. HTTP/1 also reads bodies and writes responses in chunks
/// of at most this size.
const MAX_HEAD: u32 = 64 << 10;
/// Maximum size of the send buffer of one HTTP/2 stream, in bytes.
const MAX_SEND_BUFFER: usize = 64 << 10;
/// Time without bytes after which the server pings an HTTP/2 client.
const PING_AFTER: Duration = Duration::from_secs(30);
/// Time limit for the response to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for closing an idle connection.
const CLOSING: Duration = Duration::from_secs(5);

/// The connection was closed to make room; the request that just arrived is not started.
#[derive(Debug, thiserror::Error)]
#[error("the connection was closed to make room")]
struct Closed;

/// Serves a connection from its first byte to its last.
pub(super) async fn serve(
    socket: TcpStream,
    connection: Arc<Connection>,
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    router: Router,
) {
    let place = SocketSlot(Arc::clone(&connection));
    let stream = match tls {
        None => Stream::Plain(socket),
        // In a box: it is larger than all that follows, and soon over.
        Some(tls) => match Box::pin(handshake(socket, &connection, &shared, tls)).await {
            Some(stream) => stream,
            None => return,
        },
    };
    let socket = Socket::new(stream, place);
    drive(socket, connection, &shared, router).await;
}

async fn handshake(
    socket: TcpStream,
    connection: &Connection,
    shared: &Shared,
    tls: TlsAcceptor,
) -> Option<Stream> {
    let done = tokio::select! {
        biased;
        () = connection.signal().cancelled() => return None,
        done = timeout(shared.tls_timeout, tls.accept(socket)) => done,
    };
    match done {
        Ok(Ok(stream)) => {
            connection.note_handshake();
            Some(Stream::Tls(Box::new(stream)))
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
        Err(_) => {
            connection.timed_out();
            tracing::debug!("a TLS handshake took too long");
            None
        }
    }
}

async fn drive(socket: Socket, connection: Arc<Connection>, shared: &Shared, router: Router) {
    let builder = builder(&connection, shared.http2_streams);
    let (overflow, client) = (connection.is_overflow(), connection.client());
    let own = Arc::clone(&connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let Some(held) = own.begin(request.version()) else {
            return Either::Left(ready(Err(Closed)));
        };
        Either::Right(answer(router.clone(), request, held, (overflow, client)))
    });
    let mut http = pin!(builder.serve_connection_with_upgrades(TokioIo::new(socket), service));
    let mut signal = pin!(connection.signal().cancelled());
    let mut timer = pin!(sleep_until(Instant::now()));
    let (mut is_stopping, mut is_closing) = (false, false);
    loop {
        tokio::select! {
            biased;
            () = &mut signal, if !is_stopping => {
                if connection.is_closed() {
                    return;
                }
                is_stopping = true;
                http.as_mut().graceful_shutdown();
            }
            () = &mut timer => match connection.due(Instant::now()) {
                Due::Later(at) => timer.as_mut().reset(at),
                Due::Idle if !is_closing => {
                    connection.timed_out();
                    is_closing = true;
                    http.as_mut().graceful_shutdown();
                    timer.as_mut().reset(Instant::now() + CLOSING);
                }
                Due::Idle => return,
                Due::Overdue => return connection.timed_out(),
            },
            served = &mut http => {
                if let Err(error) = served {
                    tracing::debug!(error, "a connection failed");
                }
                return;
            }
        }
    }
}

fn builder(connection: &Arc<Connection>, http2_streams: u32) -> Builder<Streams> {
    let mut builder = Builder::new(Streams(Arc::clone(connection)));
    builder
        .http1()
        .timer(TokioTimer::new())
        // Between requests it would count as well; the connection has both timeouts itself.
        .header_read_timeout(None)
        .max_buf_size(MAX_HEAD as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(http2_streams)
        .max_header_list_size(MAX_HEAD)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_TIMEOUT)
        // For WebSockets.
        .enable_connect_protocol();
    builder
}

fn answer(
    mut router: Router,
    mut request: Request<Incoming>,
    held: InProgress,
    (overflow, client): (bool, Option<ClientAddress>),
) -> impl Future<Output = Result<http::Response<HeldBody<Option<InProgress>>>, Closed>> {
    if overflow {
        request.extensions_mut().insert(Overflow);
    }
    if let Some(client) = client {
        request.extensions_mut().insert(client);
    }
    router.call(request).map(move |answered| {
        let Ok(mut response): Result<Response, Infallible> = answered;
        if overflow {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            held.keep();
            return Ok(response.map(|body| HeldBody::new(body, None)));
        }
        Ok(response.map(|body| HeldBody::new(body, Some(held))))
    })
}

/// Runs the streams of an HTTP/2 connection, and marks it as busy meanwhile.
#[derive(Clone)]
struct Streams(Arc<Connection>);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Streams {
    #[expect(
        clippy::disallowed_methods,
        reason = "the connection, which shutdown awaits, ends after its streams"
    )]
    fn execute(&self, stream: F) {
        let held = self.0.hold();
        tokio::spawn(stream.map(move |_| drop(held)));
    }
}
