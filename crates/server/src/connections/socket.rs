//! The socket of a connection; it reports reads and writes to the connection's state.

use super::connection::Connection;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The slot of an open socket among the connections; freed on drop.
pub(super) struct SocketSlot(pub(super) Arc<Connection>);

impl Drop for SocketSlot {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A socket that is counted until it is closed.
pub(super) struct Socket {
    // Dropped in this order: the socket is closed when its place is free.
    stream: Stream,
    place: SocketSlot,
}

/// The transport of the bytes.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    pub(super) fn new(stream: Stream, place: SocketSlot) -> Self {
        Self { stream, place }
    }

    fn sent(&self, polled: &Poll<io::Result<usize>>) {
        match polled {
            Poll::Pending => self.place.0.note_blocked(),
            Poll::Ready(Ok(1..)) => self.place.0.note_written(),
            Poll::Ready(_) => {}
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        if buffer.filled().len() > before {
            self.place.0.note_read();
        }
        polled
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        self.sent(&polled);
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Only TLS has a buffer of its own.
        let Stream::Tls(stream) = &mut self.stream else {
            return Poll::Ready(Ok(()));
        };
        let polled = Pin::new(stream).poll_flush(context);
        match &polled {
            Poll::Pending => self.place.0.note_blocked(),
            Poll::Ready(Ok(())) => self.place.0.note_written(),
            Poll::Ready(Err(_)) => {}
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
        };
        self.sent(&polled);
        polled
    }
}
