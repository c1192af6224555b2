//! How a body arrives: at a minimum rate, within the budgets.

use super::budget::BodyLease;
use crate::error::ApiError;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use runtime::LimitReached;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Time that a body may be behind its minimum rate.
pub(super) const SLACK: Duration = Duration::from_secs(5);

/// Why a body did not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArrivalError {
    /// It was too slow.
    #[error("the body did not arrive in time")]
    Timeout,
    /// A budget is spent.
    #[error(transparent)]
    Limit(LimitReached),
    /// The connection failed.
    #[error("the body broke off")]
    Broken(#[source] axum::Error),
}

impl From<ArrivalError> for ApiError {
    fn from(error: ArrivalError) -> Self {
        match error {
            ArrivalError::Timeout => Self::BodyTimeout,
            ArrivalError::Limit(reached) => reached.into(),
            ArrivalError::Broken(_) => Self::BodyBroken,
        }
    }
}

/// The deadlines of a body.
///
/// The allowance is [`SLACK`] at the start. Each byte adds the time that it may take at the minimum
/// rate, up to [`SLACK`] in advance.
struct Pace {
    bytes_per_second: usize,
    /// When the allowance is used up.
    due: Instant,
    /// When the whole body must have arrived.
    end: Instant,
}

impl Pace {
    fn new(bytes_per_second: usize, longest: Duration, now: Instant) -> Self {
        Self {
            bytes_per_second: bytes_per_second.max(1),
            due: now + SLACK,
            end: now + longest,
        }
    }

    fn advance(&mut self, bytes: usize, now: Instant) {
        let micros = (bytes as u128).saturating_mul(1_000_000) / self.bytes_per_second as u128;
        let earned = Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)).min(SLACK);
        self.due = (self.due + earned).min(now + SLACK);
    }

    fn deadline(&self) -> Instant {
        self.due.min(self.end)
    }
}

/// A body that fails if it is too slow, and takes its bytes from the budgets as they arrive.
pub(crate) struct Arriving {
    body: Body,
    lease: BodyLease,
    pace: Pace,
    /// Wakes at a deadline, which may be earlier than the current one.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Arriving {
    /// `longest` is the time limit of the whole body.
    pub(crate) fn new(
        body: Body,
        lease: BodyLease,
        bytes_per_second: usize,
        longest: Duration,
    ) -> Self {
        Self {
            body,
            lease,
            pace: Pace::new(bytes_per_second, longest, Instant::now()),
            alarm: None,
        }
    }

    /// The body's bytes, at most `limit` of them. Memory grows with what has arrived.
    pub(super) async fn collect(mut self, limit: usize) -> Result<Vec<u8>, ApiError> {
        // A longer body would never get through, however often it is sent.
        let limit = limit.min(self.lease.max());
        let too_large = || ApiError::BodyTooLarge { limit };
        if self.body.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        while let Some(frame) = self.frame().await {
            let Ok(piece) = frame?.into_data() else {
                continue;
            };
            if piece.len() > limit - bytes.len() {
                return Err(too_large());
            }
            grow(&mut bytes, piece.len());
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.pace.deadline();
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            ready!(alarm.as_mut().poll(context));
            if alarm.deadline() >= deadline {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(deadline);
        }
    }
}

/// Makes room for more bytes with a quarter to spare, since doubling would use twice the memory.
pub(crate) fn grow(bytes: &mut Vec<u8>, more: usize) {
    if bytes.capacity() - bytes.len() < more {
        bytes.reserve_exact(more.max(bytes.len() / 4));
    }
}

impl http_body::Body for Arriving {
    type Data = Bytes;
    type Error = ArrivalError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ArrivalError>>> {
        // First what is there: a server that was busy for a while does not blame the client.
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                return Poll::Ready(Some(Err(ArrivalError::Broken(error))));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {
                ready!(self.poll_late(context));
                return Poll::Ready(Some(Err(ArrivalError::Timeout)));
            }
        };
        if let Some(piece) = frame.data_ref() {
            self.pace.advance(piece.len(), Instant::now());
            if let Err(reached) = self.lease.take(piece.len()) {
                return Poll::Ready(Some(Err(ArrivalError::Limit(reached))));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_mins(2);

    #[test]
    fn a_body_at_its_minimum_rate_is_never_late() {
        let start = Instant::now();
        let mut pace = Pace::new(1024, LONGEST, start);
        for second in 1..=100 {
            let now = start + Duration::from_secs(second);
            assert!(pace.deadline() > now, "{second}");
            pace.advance(1024, now);
        }
    }

    #[test]
    fn a_body_below_its_minimum_rate_is_late_in_the_end() {
        let start = Instant::now();
        let mut pace = Pace::new(1024, LONGEST, start);
        let late = (1..100).find(|second| {
            let now = start + Duration::from_secs(*second);
            let is_late = pace.deadline() < now;
            pace.advance(512, now);
            is_late
        });
        assert_eq!(late, Some(10));
    }

    #[test]
    fn bytes_that_came_early_allow_no_longer_stall() {
        let start = Instant::now();
        let mut pace = Pace::new(1024, LONGEST, start);
        pace.advance(16 << 20, start);
        assert_eq!(pace.deadline(), start + SLACK);
        for elapsed in [5, 10, 15] {
            pace.advance(usize::MAX, start + Duration::from_secs(elapsed));
        }
        assert_eq!(pace.deadline(), start + SLACK * 4);
        pace.due = start + LONGEST * 2;
        assert_eq!(pace.deadline(), start + LONGEST);
    }
}
