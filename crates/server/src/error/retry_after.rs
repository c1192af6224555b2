//! When a refused request may be sent again.

use super::ApiError;
use runtime::{LimitKind, LimitReached, RuntimeError};
use std::time::Duration;

/// The wait before a client should repeat a refused request.
pub(super) fn retry_after(error: &ApiError) -> Duration {
    if let ApiError::RateLimited { wait }
    | ApiError::Runtime(RuntimeError::LimitReached(LimitReached {
        kind: LimitKind::Rate { wait },
        ..
    })) = error
    {
        return *wait + Duration::from_secs(1);
    }
    Duration::from_secs(1)
}
