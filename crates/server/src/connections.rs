//! Connections: accepting them, their timeouts, and closing idle ones to make room.
//!
//! Each connection is a task. The accept loop never waits for a client: TLS handshakes are part of the
//! task. At the cap, the server closes the connection that has been idle the longest. It never closes
//! one with a request in progress, such as an event stream. If none is idle, a few more connections are
//! accepted for health checks only, so that `/healthz` and `/readyz` are always answered.

mod addresses;
mod client;
mod connection;
mod descriptors;
mod group;
mod http;
pub(crate) mod listen;
mod socket;

use crate::config::{AddressRange, LimitsConfig};
use crate::metrics::ConnectionFigures;
use addresses::Addresses;
use axum::Router;
#[cfg(feature = "web")]
pub(crate) use client::ClientAddress;
use connection::{Connection, Timeouts};
use descriptors::{Caps, Spare};
use group::Group;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Number of connections beyond the cap, for health checks only.
const MAX_OVERFLOW: usize = 32;
/// Time limit for such a connection to send its request.
const OVERFLOW_HEADER: Duration = Duration::from_secs(5);
/// Time that such a connection stays open after the response.
const OVERFLOW_IDLE: Duration = Duration::from_secs(1);
/// Number of idle connections that are closed when the system has no descriptors left.
const CLOSED_AT_ONCE: usize = 16;
/// Minimum idle time of connections that are closed to free descriptors; otherwise their next request
/// may be on the way. The system reports exhaustion as soon as the last descriptor is used, even if no
/// client waits.
const MIN_IDLE: Duration = Duration::from_millis(200);
/// Pause of the accept loop after an error of the system.
const PAUSE: Duration = Duration::from_millis(20);

/// Marks a request of a connection beyond the cap: only health checks are answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overflow;

/// The state that all connections share.
struct Shared {
    figures: ConnectionFigures,
    addresses: Addresses,
    turns: AtomicU64,
    tls_timeout: Duration,
    http2_streams: u32,
}

impl Shared {
    /// A number for each time that a connection becomes idle, in order.
    fn next_turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }
}

/// Decides which connections are accepted.
struct Admission {
    shared: Arc<Shared>,
    all: Arc<Group>,
    overflow: Arc<Group>,
    timeouts: Timeouts,
    trusted_proxies: Vec<AddressRange>,
    shutdown: CancellationToken,
}

impl Admission {
    fn new(
        limits: &LimitsConfig,
        caps: Caps,
        figures: ConnectionFigures,
        shutdown: &CancellationToken,
    ) -> Self {
        let shared = Shared {
            figures,
            addresses: Addresses::new(caps.per_address),
            turns: AtomicU64::default(),
            tls_timeout: limits.tls_timeout,
            http2_streams: limits.http2_streams,
        };
        Self {
            shared: Arc::new(shared),
            all: Arc::new(Group::new(caps.total)),
            overflow: Arc::new(Group::new(MAX_OVERFLOW)),
            timeouts: Timeouts {
                header: limits.header_timeout,
                idle: limits.idle_timeout,
                stalled: limits.stalled_reader,
            },
            trusted_proxies: limits.trusted_proxies.clone(),
            shutdown: shutdown.clone(),
        }
    }

    /// Admits a connection within the limit, or else beyond it for health checks; `None` if neither is
    /// possible.
    fn admit(&self, client: IpAddr) -> Option<Arc<Connection>> {
        let is_proxy = self.trusted_proxies.iter().any(|it| it.contains(client));
        let address = (!is_proxy).then(|| self.shared.addresses.of(client));
        let address_has_room = address.as_ref().is_none_or(|(_, group)| group.has_room());
        if address_has_room && self.all.has_room() {
            let lane = Arc::clone(&self.all);
            return Some(self.connection(lane, address, self.timeouts));
        }
        self.shared.figures.refused.inc();
        self.admit_overflow()
    }

    /// Admits a connection for a health check; `None` if all of these have requests in progress.
    fn admit_overflow(&self) -> Option<Arc<Connection>> {
        let timeouts = Timeouts {
            header: self.timeouts.header.min(OVERFLOW_HEADER),
            idle: self.timeouts.idle.min(OVERFLOW_IDLE),
            ..self.timeouts
        };
        let lane = &self.overflow;
        let has_room = lane.has_room();
        has_room.then(|| self.connection(Arc::clone(lane), None, timeouts))
    }

    fn connection(
        &self,
        lane: Arc<Group>,
        address: Option<(IpAddr, Arc<Group>)>,
        timeouts: Timeouts,
    ) -> Arc<Connection> {
        let is_overflow = Arc::ptr_eq(&lane, &self.overflow);
        let shared = Arc::clone(&self.shared);
        let signal = self.shutdown.child_token();
        Connection::new(shared, lane, address, timeouts, signal, is_overflow)
    }
}

/// Serves connections until `shutdown` is cancelled and the requests in progress are answered. If it is
/// dropped earlier, it closes all connections.
pub(crate) async fn serve(
    sockets: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: &LimitsConfig,
    figures: ConnectionFigures,
    shutdown: &CancellationToken,
) {
    let caps = Caps::new(limits, descriptors::raise_limit());
    tracing::debug!(?caps, "connections");
    let admission = Admission::new(limits, caps, figures, shutdown);
    // Once for all connections: with its state every route is made anew.
    let router = router.with_state(());
    let mut tasks = JoinSet::new();
    let mut spare = Spare::default();
    // Whether a spare descriptor was given up for the next connection.
    let mut is_spare = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(_) = tasks.join_next() => continue,
            accepted = accept(&sockets, &mut spare, is_spare) => accepted,
        };
        match accepted {
            Ok((socket, client)) => {
                let connection = if std::mem::take(&mut is_spare) {
                    admission.admit_overflow()
                } else {
                    admission.admit(client)
                };
                if let Some(connection) = connection {
                    let shared = Arc::clone(&admission.shared);
                    let (tls, router) = (tls.clone(), router.clone());
                    tasks.spawn(http::serve(socket, connection, shared, tls, router));
                }
            }
            Err(error) if is_clients_fault(&error) => {}
            Err(error) => {
                spare.log(&error, Instant::now());
                let closed = (0..CLOSED_AT_ONCE)
                    .take_while(|_| admission.all.close_oldest_idle(MIN_IDLE))
                    .count();
                is_spare = closed == 0 && spare.release();
                if !is_spare {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
    drop(sockets);
    while tasks.join_next().await.is_some() {}
}

async fn accept(
    sockets: &TcpListener,
    spare: &mut Spare,
    is_spare: bool,
) -> io::Result<(TcpStream, IpAddr)> {
    if !is_spare {
        spare.refill();
    }
    let (socket, client) = sockets.accept().await?;
    listen::send_at_once(&socket);
    Ok((socket, client.ip()))
}

/// Whether the accept loop can continue at once: the error concerns only this client.
fn is_clients_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests;
