//! When to send a failed request again (UPP §13).

mod backoff;
mod bucket;
mod config;
mod drive;

pub use backoff::{ExponentialBackoff, LinearBackoff, NoRetry, RetryAfter};
pub use bucket::TokenBucket;
pub use config::{RetryConfig, RetryConfigError};
pub use drive::{retry_stream, with_retries};

use crate::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// A source of random numbers, each at least 0 and below 1.
pub type Random = Arc<dyn Fn() -> f64 + Send + Sync>;

/// The random numbers of the system.
pub(crate) fn random() -> Random {
    Arc::new(fastrand::f64)
}

/// Decides whether a failed request is sent again, and when (UPP §13).
pub trait RetryStrategy: Send + Sync {
    /// The wait before retry number `attempt`, counted from 1; `None` gives up.
    fn on_retry(&self, error: &Error, attempt: u32) -> Option<Duration>;

    /// How long to wait before a request, the first one included.
    fn before_request(&self) -> Option<Duration> {
        None
    }

    /// Called after a request has succeeded.
    fn reset(&self) {}

    /// The strategy for one request and its retries. State of all requests, such as the tokens of a
    /// [`TokenBucket`], stays shared.
    fn fork(&self) -> Arc<dyn RetryStrategy>;
}

/// Seconds as a duration. A number that a duration can't hold is the longest one.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests;
