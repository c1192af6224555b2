//! Strategies as configuration.

use super::{ExponentialBackoff, LinearBackoff, NoRetry, RetryAfter, RetryStrategy, TokenBucket};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Why a strategy can't be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RetryConfigError {
    /// The capacity is 0, so that no request could be sent.
    #[error("capacity is 0; a token bucket holds at least 1 token")]
    Capacity,
    /// The refill rate is not above 0, so that after the first burst no request could be sent.
    #[error("refillRate is {refill_rate}; it is a number of tokens a second above 0")]
    RefillRate {
        /// The refused rate.
        refill_rate: f64,
    },
}

/// A strategy as configuration: `{"type": "exponential_backoff", "maxAttempts": 5}`.
///
/// Waits are in milliseconds. Absent fields have UPP's defaults (§13). The TypeScript implementation's
/// spellings `baseDelay` and `maxTokens` are accepted too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum RetryConfig {
    /// [`ExponentialBackoff`].
    ExponentialBackoff {
        /// Retries at most; 3.
        #[serde(default = "three")]
        max_attempts: u32,
        /// The first wait; 1,000.
        #[serde(default = "second", alias = "baseDelay")]
        initial_delay: u64,
        /// The longest wait; 30,000.
        #[serde(default = "half_a_minute")]
        max_delay: u64,
        /// Whether waits are spread; `true`.
        #[serde(default = "yes")]
        jitter: bool,
    },
    /// [`LinearBackoff`].
    LinearBackoff {
        /// Retries at most; 3.
        #[serde(default = "three")]
        max_attempts: u32,
        /// The first wait; 1,000.
        #[serde(default = "second")]
        delay: u64,
    },
    /// [`NoRetry`].
    NoRetry {},
    /// [`TokenBucket`].
    TokenBucket {
        /// Tokens at most; 10.
        #[serde(default = "ten", alias = "maxTokens")]
        capacity: u32,
        /// Tokens a second; 1.
        #[serde(default = "one")]
        refill_rate: f64,
        /// Retries at most; 3.
        #[serde(default = "three")]
        max_attempts: u32,
    },
    /// [`RetryAfter`].
    RetryAfter {
        /// Retries at most; 3.
        #[serde(default = "three")]
        max_attempts: u32,
        /// The wait without a `Retry-After`; 5,000.
        #[serde(default = "five_seconds")]
        fallback_delay: u64,
    },
}

fn one() -> f64 {
    1.0
}

fn three() -> u32 {
    3
}

fn ten() -> u32 {
    10
}

fn second() -> u64 {
    1_000
}

fn five_seconds() -> u64 {
    5_000
}

fn half_a_minute() -> u64 {
    30_000
}

fn yes() -> bool {
    true
}

impl RetryConfig {
    /// Makes the strategy.
    pub fn strategy(&self) -> Result<Arc<dyn RetryStrategy>, RetryConfigError> {
        Ok(match *self {
            Self::ExponentialBackoff {
                max_attempts,
                initial_delay,
                max_delay,
                jitter,
            } => Arc::new(ExponentialBackoff {
                max_attempts,
                initial_delay: Duration::from_millis(initial_delay),
                max_delay: Duration::from_millis(max_delay),
                jitter,
                ..ExponentialBackoff::default()
            }),
            Self::LinearBackoff {
                max_attempts,
                delay,
            } => Arc::new(LinearBackoff {
                max_attempts,
                delay: Duration::from_millis(delay),
            }),
            Self::NoRetry {} => Arc::new(NoRetry),
            Self::TokenBucket {
                capacity,
                refill_rate,
                max_attempts,
            } => Arc::new(TokenBucket::new(capacity, refill_rate, max_attempts)?),
            Self::RetryAfter {
                max_attempts,
                fallback_delay,
            } => Arc::new(RetryAfter {
                max_attempts,
                fallback_delay: Duration::from_millis(fallback_delay),
                ..RetryAfter::default()
            }),
        })
    }
}
