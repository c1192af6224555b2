//! Limits a client's input on a WebSocket: bytes within the budgets, messages within a time limit.

use super::frames::{Frames, Seen};
use crate::body::BodyLease;
use crate::error::ApiError;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The connection below a WebSocket. Reading fails if a budget is used up, or a message takes too long
/// from its first byte to its last.
pub(super) struct Metered<S> {
    inner: S,
    frames: Frames,
    /// Holds the bytes of the message that has not ended.
    lease: BodyLease,
    /// How many these are.
    n_open: usize,
    /// The leases of the messages that have ended and were not taken yet.
    ended: VecDeque<BodyLease>,
    /// Time limit of a message.
    longest: Duration,
    /// The deadline of the open message.
    due: Option<Pin<Box<Sleep>>>,
    /// The time of the client's last bytes.
    heard: Instant,
    /// Why reading failed.
    fault: Option<ApiError>,
}

impl<S> Metered<S> {
    pub(super) fn new(inner: S, lease: BodyLease, longest: Duration) -> Self {
        Self {
            inner,
            frames: Frames::default(),
            lease,
            n_open: 0,
            ended: VecDeque::new(),
            longest,
            due: None,
            heard: Instant::now(),
            fault: None,
        }
    }

    /// The lease of the oldest message that was read and not taken yet.
    pub(super) fn take_message(&mut self) -> BodyLease {
        let ended = self.ended.pop_front();
        ended.unwrap_or_else(|| self.lease.split(0))
    }

    /// Why reading failed, if it was for a limit.
    pub(super) fn take_fault(&mut self) -> Option<ApiError> {
        self.fault.take()
    }

    /// The time of the client's last bytes.
    pub(super) fn last_received(&self) -> Instant {
        self.heard
    }

    /// Notes that reading is paused, so that the client's silence does not count.
    pub(super) fn pause(&mut self) {
        self.heard = Instant::now();
        if self.due.is_some() {
            self.due = Some(Box::pin(sleep_until(self.heard + self.longest)));
        }
    }

    fn note(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        self.heard = Instant::now();
        let Self {
            frames,
            lease,
            n_open,
            ended,
            ..
        } = self;
        let mut noted = Ok(());
        let mut is_new = false;
        frames.read(bytes, |seen| match seen {
            Seen::Payload(n) if noted.is_ok() => {
                noted = lease.take(n).map_err(ApiError::from);
                *n_open += n;
            }
            Seen::Payload(_) => {}
            Seen::MessageEnd => {
                ended.push_back(lease.split(std::mem::take(n_open)));
                is_new = true;
            }
            Seen::LongControl => {
                let what = "a control frame has at most 125 bytes".to_owned();
                noted = Err(ApiError::InvalidMessage { what });
            }
        });
        match &self.due {
            _ if !self.frames.is_open() => self.due = None,
            // Bytes that never cease to come do not help a message that does not end.
            Some(due) if !is_new && due.deadline() < self.heard => {
                return noted.and(Err(ApiError::BodyTimeout));
            }
            Some(_) if !is_new => {}
            Some(_) | None => {
                self.due = Some(Box::pin(sleep_until(self.heard + self.longest)));
            }
        }
        noted
    }

    fn fail(&mut self, fault: ApiError) -> io::Error {
        let told = io::Error::other(fault.to_string());
        self.fault = Some(fault);
        told
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.inner).poll_read(context, buffer) {
            read?;
            let bytes = buffer.filled().get(before..).unwrap_or_default();
            let noted = self.note(bytes);
            return Poll::Ready(noted.map_err(|fault| self.fail(fault)));
        }
        let Some(due) = &mut self.due else {
            return Poll::Pending;
        };
        ready!(due.as_mut().poll(context));
        self.due = None;
        Poll::Ready(Err(self.fail(ApiError::BodyTimeout)))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::budget::BodyBudgets;
    use runtime::TenantId;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::sleep;

    const LONGEST: Duration = Duration::from_secs(30);
    /// The head of a masked text frame with 100 bytes, the first of its message.
    const FIRST: [u8; 6] = [0x01, 0xe4, 0, 0, 0, 0];
    /// An empty frame that continues a message.
    const MORE: [u8; 6] = [0x00, 0x80, 0, 0, 0, 0];
    /// An empty frame that ends a message.
    const LAST: [u8; 6] = [0x80, 0x80, 0, 0, 0, 0];
    const PING: [u8; 6] = [0x89, 0x80, 0, 0, 0, 0];

    fn metered(max: usize) -> (DuplexStream, Metered<DuplexStream>) {
        let (client, server) = duplex(1024);
        let lease = BodyBudgets::new(max).lease(&TenantId::from("a"), max);
        (client, Metered::new(server, lease, LONGEST))
    }

    /// Reads until the client closes; returns the fault, if one ended it, and the time it took.
    async fn read(mut metered: Metered<DuplexStream>) -> (Option<&'static str>, Duration) {
        let start = Instant::now();
        let read = metered.read_to_end(&mut Vec::new()).await;
        let fault = metered.take_fault().map(|fault| fault.failure().code);
        assert_eq!(read.is_err(), fault.is_some());
        (fault, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_trickles_ends_after_its_time() {
        let (mut client, metered) = metered(1 << 20);
        let trickle = async {
            while client.write_all(&FIRST[..1]).await.is_ok() {
                client.write_all(&FIRST[1..]).await.ok();
                for _ in 0..100 {
                    sleep(Duration::from_secs(1)).await;
                    if client.write_all(b"x").await.is_err() {
                        return;
                    }
                }
            }
        };
        let ((fault, elapsed), ()) = tokio::join!(read(metered), trickle);
        assert_eq!(fault, Some("body_timeout"));
        assert!((LONGEST..LONGEST * 2).contains(&elapsed), "{elapsed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn fragments_and_pings_do_not_extend_a_message() {
        let (mut client, metered) = metered(1 << 20);
        let fragments = async {
            client.write_all(&FIRST).await.unwrap();
            client.write_all(&[0; 100]).await.unwrap();
            while client.write_all(&[MORE, PING].concat()).await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
        };
        let ((fault, _), ()) = tokio::join!(read(metered), fragments);
        assert_eq!(fault, Some("body_timeout"));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_between_messages_is_no_fault() {
        let (mut client, metered) = metered(1 << 20);
        let messages = async move {
            for _ in 0..3 {
                client.write_all(&FIRST).await.unwrap();
                client.write_all(&[0; 100]).await.unwrap();
                client.write_all(&PING).await.unwrap();
                sleep(LONGEST / 2).await;
                client.write_all(&LAST).await.unwrap();
                sleep(LONGEST * 3).await;
            }
        };
        let ((fault, _), ()) = tokio::join!(read(metered), messages);
        assert_eq!(fault, None);
    }

    #[tokio::test]
    async fn a_message_holds_its_bytes_until_it_is_dropped() {
        let (mut client, mut metered) = metered(150);
        let message = [&FIRST[..], &[0; 100], &LAST].concat();
        let mut buffer = [0; 1024];
        client.write_all(&message).await.unwrap();
        assert_eq!(metered.read(&mut buffer).await.unwrap(), message.len());
        let taken = metered.take_message();
        client.write_all(&message).await.unwrap();
        assert!(metered.read(&mut buffer).await.is_err());
        let fault = metered.take_fault().map(|fault| fault.failure().code);
        assert_eq!(fault, Some("limit_reached"));
        drop((taken, metered.take_message()));
        client.write_all(&message).await.unwrap();
        assert_eq!(metered.read(&mut buffer).await.unwrap(), message.len());
    }
}
