//! Listening sockets.

use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Length of the queue of connections to accept; the system may use a shorter one.
const BACKLOG: u32 = 4_096;

/// Listens with room for a burst of connections. If the queue is full, a client retries only after a
/// second.
pub(crate) fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // On Windows the option would let two servers listen on one address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Disables Nagle's algorithm, since a stream's events are small and clients wait for each.
pub(crate) fn send_at_once(socket: &TcpStream) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps Nagle's algorithm");
    }
}
