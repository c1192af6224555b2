//! Strategies without state between requests.

use super::{Random, RetryStrategy, random, seconds};
use crate::error::{Code, Error};
use std::sync::Arc;
use std::time::Duration;

/// Doubles the wait with each retry (UPP §13).
///
/// It retries `RATE_LIMITED`, `NETWORK_ERROR`, `TIMEOUT` and `PROVIDER_ERROR`. Jitter multiplies
/// the wait by a random number from 0.5 to 1.5. Unlike in the TypeScript implementation,
/// `max_delay` is the limit of the wait with jitter.
#[derive(Clone)]
pub struct ExponentialBackoff {
    /// Retries at most: 3 means 4 requests.
    pub max_attempts: u32,
    /// The wait before the first retry, without jitter.
    pub initial_delay: Duration,
    /// The longest wait.
    pub max_delay: Duration,
    /// Whether waits are randomized, so that clients don't retry at the same instant.
    pub jitter: bool,
    /// The source of the jitter.
    pub random: Random,
}

impl Default for ExponentialBackoff {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            jitter: true,
            random: random(),
        }
    }
}

impl std::fmt::Debug for ExponentialBackoff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExponentialBackoff")
            .field("max_attempts", &self.max_attempts)
            .field("initial_delay", &self.initial_delay)
            .field("max_delay", &self.max_delay)
            .field("jitter", &self.jitter)
            .finish_non_exhaustive()
    }
}

impl RetryStrategy for ExponentialBackoff {
    fn on_retry(&self, error: &Error, attempt: u32) -> Option<Duration> {
        if attempt > self.max_attempts || !error.is_retryable() {
            return None;
        }
        let factor = 1_u32.checked_shl(attempt.saturating_sub(1));
        let delay = factor.map_or(Duration::MAX, |factor| {
            self.initial_delay.saturating_mul(factor)
        });
        let delay = delay.min(self.max_delay);
        if !self.jitter {
            return Some(delay);
        }
        let spread = (self.random)() + 0.5;
        Some(seconds(delay.as_secs_f64() * spread).min(self.max_delay))
    }

    fn fork(&self) -> Arc<dyn RetryStrategy> {
        Arc::new(self.clone())
    }
}

/// Waits `delay` times the number of the retry (UPP §13).
///
/// It retries `RATE_LIMITED`, `NETWORK_ERROR`, `TIMEOUT` and `PROVIDER_ERROR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearBackoff {
    /// Retries at most.
    pub max_attempts: u32,
    /// The wait before the first retry.
    pub delay: Duration,
}

impl Default for LinearBackoff {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            delay: Duration::from_secs(1),
        }
    }
}

impl RetryStrategy for LinearBackoff {
    fn on_retry(&self, error: &Error, attempt: u32) -> Option<Duration> {
        (attempt <= self.max_attempts && error.is_retryable())
            .then(|| self.delay.saturating_mul(attempt))
    }

    fn fork(&self) -> Arc<dyn RetryStrategy> {
        Arc::new(*self)
    }
}

/// Never retries (UPP §13); this is also what happens without a strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoRetry;

impl RetryStrategy for NoRetry {
    fn on_retry(&self, _error: &Error, _attempt: u32) -> Option<Duration> {
        None
    }

    fn fork(&self) -> Arc<dyn RetryStrategy> {
        Arc::new(*self)
    }
}

/// Waits as long as the provider's `Retry-After` requests (UPP §13). Retries `RATE_LIMITED` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// Retries at most.
    pub max_attempts: u32,
    /// The wait without a `Retry-After`.
    pub fallback_delay: Duration,
    /// Maximum wait; one hour unless set.
    pub max_delay: Duration,
}

impl Default for RetryAfter {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            fallback_delay: Duration::from_secs(5),
            max_delay: Duration::from_hours(1),
        }
    }
}

impl RetryStrategy for RetryAfter {
    fn on_retry(&self, error: &Error, attempt: u32) -> Option<Duration> {
        if attempt > self.max_attempts || error.code != Code::RateLimited {
            return None;
        }
        let delay = error.retry_after.unwrap_or(self.fallback_delay);
        Some(delay.min(self.max_delay))
    }

    fn fork(&self) -> Arc<dyn RetryStrategy> {
        Arc::new(*self)
    }
}
