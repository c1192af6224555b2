//! A limit on requests in time.

use super::{RetryConfigError, RetryStrategy, seconds};
use crate::error::{Code, Error};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Returns the current instant.
type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Allows a burst of `capacity` requests, and `refill_rate` requests per second after that (UPP §13).
///
/// Each request takes a token. If none is left, it reserves the next one and waits for it, so concurrent
/// requests wait one after the other. It retries `RATE_LIMITED` only, after the time of two tokens.
/// Clones and forks share the tokens; a success returns none.
#[derive(Clone)]
pub struct TokenBucket {
    capacity: f64,
    refill_rate: f64,
    max_attempts: u32,
    clock: Clock,
    level: Arc<Mutex<Level>>,
}

/// How many tokens there were at an instant; below zero, they are promised.
struct Level {
    tokens: f64,
    at: Instant,
}

impl TokenBucket {
    /// A full bucket of `capacity` tokens that refills by `refill_rate` tokens per second. A request is
    /// retried at most `max_attempts` times.
    pub fn new(
        capacity: u32,
        refill_rate: f64,
        max_attempts: u32,
    ) -> Result<Self, RetryConfigError> {
        Self::with_clock(capacity, refill_rate, max_attempts, Arc::new(Instant::now))
    }

    /// Like [`TokenBucket::new`], with the time from `clock`.
    pub fn with_clock(
        capacity: u32,
        refill_rate: f64,
        max_attempts: u32,
        clock: Arc<dyn Fn() -> Instant + Send + Sync>,
    ) -> Result<Self, RetryConfigError> {
        if capacity == 0 {
            return Err(RetryConfigError::Capacity);
        }
        if !refill_rate.is_finite() || refill_rate <= 0.0 {
            return Err(RetryConfigError::RefillRate { refill_rate });
        }
        let capacity = f64::from(capacity);
        let level = Level {
            tokens: capacity,
            at: clock(),
        };
        Ok(Self {
            capacity,
            refill_rate,
            max_attempts,
            clock,
            level: Arc::new(Mutex::new(level)),
        })
    }
}

impl std::fmt::Debug for TokenBucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenBucket")
            .field("capacity", &self.capacity)
            .field("refill_rate", &self.refill_rate)
            .field("max_attempts", &self.max_attempts)
            .finish_non_exhaustive()
    }
}

impl RetryStrategy for TokenBucket {
    fn on_retry(&self, error: &Error, attempt: u32) -> Option<Duration> {
        (attempt <= self.max_attempts && error.code == Code::RateLimited)
            .then(|| seconds(2.0 / self.refill_rate))
    }

    fn before_request(&self) -> Option<Duration> {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (self.clock)();
        let elapsed = now.saturating_duration_since(level.at).as_secs_f64();
        level.tokens = (level.tokens + elapsed * self.refill_rate).min(self.capacity) - 1.0;
        level.at = now;
        (level.tokens < 0.0).then(|| seconds(-level.tokens / self.refill_rate))
    }

    fn fork(&self) -> Arc<dyn RetryStrategy> {
        Arc::new(self.clone())
    }
}
